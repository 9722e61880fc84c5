package conformance

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/compact"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/jsonl"
	"github.com/pinch-agent/pinch/session/memory"
)

// trial is one episode: a conversation, what is done to it and what is known of
// it.
type trial struct {
	places []place
	dir    string
	seed   [2]uint64
	tally  tally

	steps  atomic.Int64
	budget atomic.Int64 // steps that are left
	calm   atomic.Bool  // nothing fails any more

	mu      sync.Mutex
	sites   map[string]*rand.Rand
	log     []string
	failure string
	ids     int

	others sync.WaitGroup // goroutines beside the one that lives
	lives  int            // harnesses so far
	onDisk bool
	opts   harness.Options
	*life

	unnoted                    bool // stores keep no journal
	outcomeUnknown, notStarted string
}

// life is one harness of an episode, from its opening to its close, crash or
// fork.
type life struct {
	w     *trial
	h     *harness.Harness
	store *store
	model *faux.API
	watch watch
	books books

	asking   atomic.Int64 // calls that wait for the harness
	executed atomic.Int64 // tool calls that ran
	hooked   atomic.Bool  // there have been hooks
	cutShort atomic.Bool  // a Continue failed
	inRun    atomic.Bool  // between agent_start and agent_end

	ledger   *ledger
	waitsFor *session.Entry // the answer whose calls wait to be run again, nil for none
	resumes  bool           // there were some

	mu      sync.Mutex
	hooks   []func() // that take hooks off
	opaque  int      // hooks that change what requests show
	crashed *crash
}

func newTrial(places []place, dir string, seed uint64, n int) *trial {
	return &trial{places: places, dir: dir, seed: [2]uint64{seed, uint64(n)}, sites: map[string]*rand.Rand{}}
}

// at draws from the generator of a place.
func (w *trial) at(site string) draw {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.sites[site]
	if r == nil {
		h := uint64(14695981039346656037)
		for i := range len(site) {
			h = (h ^ uint64(site[i])) * 1099511628211
		}
		r = rand.New(rand.NewPCG(w.seed[0], w.seed[1]<<32^h))
		w.sites[site] = r
	}
	return draw{rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))}
}

// draw is a source of decisions.
type draw struct{ *rand.Rand }

func (d draw) one(in int) bool { return d.IntN(in) == 0 }

// delay is some time that hardly anything else takes.
func (d draw) delay(most time.Duration) time.Duration {
	return 1 + time.Duration(d.Int64N(int64(most)))
}

func pick[T any](d draw, list ...T) T { return list[d.IntN(len(list))] }

// Read gives the ids of sessions and entries.
func (d draw) Read(p []byte) (int, error) {
	for i := 0; i < len(p); i += 8 {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], d.Uint64())
		copy(p[i:], b[:])
	}
	return len(p), nil
}

func (w *trial) note(format string, args ...any) {
	line := fmt.Sprintf("%9.3f ", float64(time.Now().UnixMicro()%1_000_000_000)/1000) + fmt.Sprintf(format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, line)
}

func (w *trial) trace() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.log, "\n")
}

// failf keeps the first thing that is wrong and lets the episode run out.
func (w *trial) failf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.note("FAILURE: %s", text)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure == "" {
		w.failure = text
	}
	w.calm.Store(true)
}

func (w *trial) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failure != ""
}

// caught makes a failure of a panic; it is deferred.
func (w *trial) caught() {
	if p := recover(); p != nil {
		w.failf("%v\n%s", p, debug.Stack())
	}
}

// beside does something in a goroutine of its own.
func (w *trial) beside(do func()) {
	w.others.Go(func() {
		defer w.caught()
		do()
	})
}

// step counts one, and is false when there are none left.
func (w *trial) step(what string) bool {
	if w.calm.Load() || w.budget.Add(-1) < 0 {
		return false
	}
	w.steps.Add(1)
	kind := what
	if i := strings.LastIndex(what, ": "); i >= 0 {
		kind = what[i+2:]
	}
	w.tally.count(kind, 1)
	w.note("* %s", what)
	return true
}

// token is a mark that no other message has.
func (w *trial) token(kind string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids++
	return fmt.Sprintf("<%s%d>", kind, w.ids)
}

// live is the episode.
func (w *trial) live() {
	d := w.at("world")
	w.budget.Store(int64(40 + d.IntN(160)))
	w.onDisk, w.unnoted = d.one(4), d.one(6)
	w.outcomeUnknown, w.notStarted = w.text("outcome_unknown"), w.text("not_started")
	zero := func(n int) *int64 { v := int64(d.IntN(n)); return &v }
	w.opts = harness.Options{
		Prompt:       pick(d, harness.RecordedPrompt, harness.RecordedPrompt, harness.FixedPrompt),
		Embedded:     d.one(3),
		Execution:    pick(d, agent.Parallel, agent.Parallel, agent.Sequential),
		SteeringMode: pick(d, harness.OneAtATime, harness.All),
		FollowUpMode: pick(d, harness.OneAtATime, harness.All),
		Retry:        harness.Retry{Disabled: d.one(8), MaxRetries: 1 + d.IntN(4), BaseDelay: 20 * time.Millisecond},
		Compaction:   compact.Settings{Disabled: d.one(5), ReserveTokens: zero(300), KeepRecentTokens: zero(400)},
		HookGrace:    10 * time.Millisecond,
	}
	if d.one(2) {
		w.opts.BranchReserveTokens = zero(300)
	}
	w.open(nil)
	for i := 0; w.budget.Load() > 0 && !w.failed(); i++ {
		w.turn(w.at("steps"))
		w.others.Wait()
		w.settled()
		if c := w.crash(); c != nil {
			w.rise(c)
		}
	}
	w.end()
	w.others.Wait()
	time.Sleep(time.Second) // for hooks that nobody waits for any more
}

// text is what a model reads in place of a result.
func (w *trial) text(name string) string {
	data, err := os.ReadFile(filepath.Join("..", "..", "harness", name+".md"))
	if err != nil {
		w.failf("%v", err)
	}
	return strings.TrimSpace(string(data))
}

// open begins a life, of a session that is there already or of a new one.
func (w *trial) open(s *session.Session) bool {
	d := w.at("open")
	w.lives++
	l := &life{w: w}
	if s == nil {
		l.store = w.newStore()
		var err error
		l.ledger = &ledger{effects: map[string]effect{}, open: map[string]bool{}, again: map[string]bool{}}
		if s, err = session.Open(w.asStore(l.store), session.Options{CWD: "/project", Rand: w.at("ids")}); err != nil {
			w.failf("a new session cannot be opened: %v", err)
			return false
		}
	} else {
		l.store, l.ledger = w.life.store, w.life.ledger
	}
	l.store.life = l
	l.model = faux.New(faux.Options{Models: []llm.Model{{ID: "x"}}, Seed: d.Uint64()})
	o := w.opts
	o.Session, o.Model, o.Stream = s, w.randomModel(d), l.stream
	o.ThinkingLevel = pick(d, llm.ThinkingLevels()...)
	o.Tools = l.tools(d)
	o.Request = llm.Options{APIKey: accountToken}
	o.Router = func(m *llm.Model) llm.Router {
		if !m.IsVirtual() {
			return nil
		}
		return llm.RouterFunc(w.route)
	}
	o.Credentials = func(context.Context, *llm.Model) (harness.Credentials, error) {
		if d := w.at("credentials"); d.one(60) && w.step("credentials fail") {
			return harness.Credentials{}, errors.New("no key today")
		}
		return harness.Credentials{}, nil
	}
	switch d.IntN(3) {
	case 0:
		o.SystemPrompt = "Be brief."
	case 1:
		o.PromptText = func(_ context.Context, t harness.TurnState) (string, error) {
			if d := w.at("prompt text"); d.one(80) && w.step("the prompt cannot be made") {
				return "", errors.New("no prompt")
			}
			return fmt.Sprintf("You are %s with %d tools.", t.Model.ID, len(t.Tools)), nil
		}
	}
	l.books.init(s)
	found := l.look(s)
	h, err := harness.New(o)
	if err != nil {
		w.failf("New: %v", err)
		return false
	}
	l.h = h
	l.recovered(found, o.Tools)
	l.watch.life = l
	h.SubscribeAll(l.watch.event)
	h.Subscribe(func(ctx context.Context, ev harness.Event) error {
		d := w.at("event")
		// What a run took goes back when a listener fails before it is said.
		if (ev.Type == harness.QueueUpdate || ev.Type == agent.AgentStart) && d.one(10) && w.step(string(ev.Type)+": fail") {
			return errors.New("failed on purpose")
		}
		return l.act(ctx, d, 14, string(ev.Type))
	})
	w.life = l
	return true
}

// store is a session's store whose disk can be full, and which remembers where
// its last write began.
type store struct {
	session.Store
	mem  *memory.Store // nil on disk
	path string

	life *life // that writes, nil before it begins

	mu       sync.Mutex
	full     int // writes that will fail
	lastFrom session.Position
	tearable bool   // the last write was to the log
	notes    []byte // the journal of a store in memory
	lost     []byte // notes that could not be written
	mayStay  bool   // a journal may outlast its run: a write failed
}

func (w *trial) newStore() *store {
	s := &store{}
	if w.onDisk {
		s.path = filepath.Join(w.dir, fmt.Sprint(w.lives), "session.jsonl")
		if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
			w.failf("%v", err)
		}
		s.Store = jsonl.NewStore(s.path, jsonl.Options{})
		return s
	}
	s.mem = memory.New()
	s.Store = s.mem
	return s
}

func (s *store) Append(at session.Position, lines []byte) (session.Position, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full > 0 {
		s.full--
		s.mayStay = true
		return 0, &session.Error{Kind: session.DiskFull, Op: "append"}
	}
	s.announced(lines)
	next, err := s.Store.Append(at, lines)
	if err == nil {
		s.lastFrom = at
		s.wrote(true, 200, len(lines))
	}
	return next, err
}

func (s *store) isFull() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.full > 0
}

func (s *store) fill(writes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full = writes
}

// crash is what is left of a process that died.
type crash struct {
	acked     []*session.Entry // that were recorded before
	log       []byte           // nil for none
	cut       int              // bytes of its last write that are lost
	notes     []byte           // the journal, nil for none
	lostNotes []byte           // that could not be written
	ledger    *ledger
	beside    map[string][]byte // other files, by what follows the log's name
}

// die makes an image of the log at this moment; the harness is then left alone.
func (l *life) die(d draw) {
	acked := l.h.Session().Entries()
	s := l.store
	s.mu.Lock()
	c := s.image()
	if n := len(c.log) - int(s.lastFrom); s.tearable && s.lastFrom > 0 && n > 0 && d.one(2) {
		c.cut = d.IntN(n) // the last write was torn
	}
	s.mu.Unlock()
	c.acked = acked
	l.dead(c)
}

func (l *life) crash() *crash {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.crashed
}

// rise opens what a crash left.
func (w *trial) rise(c *crash) {
	old := w.life
	old.store.fill(0)
	_ = old.h.Close()
	w.lives++
	l := &life{w: w, store: w.newStore(), ledger: c.ledger}
	l.store.lost = c.lostNotes
	log := c.log[:len(c.log)-c.cut]
	if len(log) > 0 {
		if l.store.mem != nil {
			l.store.mem, l.store.notes = memory.NewFrom(log), c.notes
			l.store.Store = l.store.mem
		} else {
			stem := strings.TrimSuffix(l.store.path, ".jsonl")
			if c.beside[".jsonl"] = log; len(c.notes) > 0 {
				c.beside[".jsonl.run"] = c.notes
			}
			for rest, data := range c.beside {
				if err := os.WriteFile(stem+rest, data, 0o600); err != nil {
					w.failf("%v", err)
					return
				}
			}
		}
	}
	w.life = l
	s, err := session.Open(w.asStore(l.store), session.Options{CWD: "/project", Rand: w.at("ids")})
	if err != nil {
		w.failf("after a crash the session cannot be opened: %v", err)
		return
	}
	if len(log) > 0 {
		for i, e := range c.acked {
			got := s.Entry(e.ID)
			if got == nil && c.cut > 0 && !strings.Contains(string(log), string(e.Raw())) {
				continue
			}
			if got == nil || string(got.Raw()) != string(e.Raw()) {
				w.failf("entry %d (%s) is lost in a crash", i, e.Raw())
			}
		}
	}
	w.note("risen with %d entries", len(s.Entries()))
	if w.open(s) && w.at("risen").one(2) {
		w.say("continue", func(ctx context.Context) (*llm.Assistant, error) { return w.h.Continue(ctx) })
	}
}

// reopen closes the session and opens its log again.
func (w *trial) reopen() bool {
	old := w.life
	before := old.h.Session()
	clearedUp := w.closeLife()
	if !before.Saved() {
		return w.open(nil)
	}
	l := &life{w: w, store: &store{path: old.store.path, notes: old.store.notes, lost: old.store.lost, mayStay: old.store.mayStay}, ledger: old.ledger.after()}
	if old.store.mem != nil {
		l.store.mem = memory.NewFrom(old.store.mem.Bytes())
		l.store.Store = l.store.mem
	} else {
		l.store.Store = jsonl.NewStore(l.store.path, jsonl.Options{})
	}
	w.life = l
	s, err := session.Open(w.asStore(l.store), session.Options{Rand: w.at("ids")})
	if err != nil {
		w.failf("the session cannot be opened again: %v", err)
		return false
	}
	if clearedUp {
		w.same(before, s)
	}
	return w.open(s)
}

// same compares a session with itself, opened again.
func (w *trial) same(a, b *session.Session) {
	if a, b := a.Entries(), b.Entries(); !slices.EqualFunc(a, b, func(x, y *session.Entry) bool {
		return x.ID == y.ID && x.ParentID == y.ParentID && string(x.Raw()) == string(y.Raw())
	}) {
		w.failf("%d entries, opened again %d, or others", len(a), len(b))
		return
	}
	if leaf := b.Leaf(); leaf != nil {
		if err := b.Branch(a.LeafID()); err != nil { // the leaf after opening is the last entry
			w.failf("the leaf %s is gone: %v", a.LeafID(), err)
		}
		defer func() { _ = b.Branch(leaf.ID) }()
	}
	x, y := a.Context(), b.Context()
	if !slices.EqualFunc(x.Messages, y.Messages, func(m, o agent.Message) bool {
		return string(m.AppendJSON(nil)) == string(o.AppendJSON(nil))
	}) || x.ThinkingLevel != y.ThinkingLevel {
		w.failf("opened again, the session shows another conversation")
	}
}

// fork goes on in a fork of the session.
func (w *trial) fork(d draw) {
	old := w.life
	s := old.h.Session()
	entries := s.Entries()
	id := s.LeafID()
	if len(entries) > 0 && d.one(2) {
		id = pick(d, entries...).ID
	}
	if cancelled, err := old.h.BeforeFork(context.Background(), harness.Forking{EntryID: id, Position: "at"}); cancelled || err != nil {
		w.note("  the hooks refuse")
		return
	}
	w.lives++
	l := &life{w: w, store: w.newStore(), ledger: old.ledger.after()}
	f, err := s.Fork(w.asStore(l.store), id, session.Options{Rand: w.at("ids")})
	if err != nil {
		w.failf("fork at %s: %v", id, err)
		return
	}
	if !slices.EqualFunc(session.ContextOf(s.PathTo(id)).Messages, f.Context().Messages, func(m, o agent.Message) bool {
		return string(m.AppendJSON(nil)) == string(o.AppendJSON(nil))
	}) && id != "" {
		w.failf("the fork at %s shows another conversation", id)
	}
	w.closeLife()
	w.life = l
	w.open(f)
}

// closeLife closes the harness and looks at its books; it reports whether
// everything could be written.
func (w *trial) closeLife() bool {
	if w.at("close").one(2) {
		w.store.fill(0)
	}
	err := w.h.Close()
	if err != nil {
		w.note("  close: %v", err)
		if !errors.Is(err, &session.Error{Kind: session.DiskFull}) {
			w.failf("close: %v", err)
		}
	}
	w.watch.over()
	w.noted()
	w.books.closed(w.life, err == nil)
	if _, err := w.h.Prompt(context.Background(), "too late"); err == nil {
		w.failf("a closed harness takes a prompt")
	}
	return err == nil
}

// end lets everything that waits be said, and closes.
func (w *trial) end() {
	if w.life == nil || w.life.h == nil || w.failed() {
		if w.life != nil && w.life.h != nil {
			_ = w.h.Close()
		}
		return
	}
	w.calm.Store(true)
	w.store.fill(0)
	w.dropHooks()
	for i := 0; ; i++ {
		l := w.life
		l.say("prompt", func(ctx context.Context) (*llm.Assistant, error) { return l.h.Prompt(ctx, "The end.") })
		if q := l.h.Queued(); len(q.Steering)+len(q.FollowUp) == 0 || w.failed() {
			break
		}
		if i > 200 {
			w.failf("the queues do not empty: %+v", l.h.Queued())
			break
		}
	}
	w.settled()
	w.store.mayStay = false // all was said and written by now
	w.noted()
	if !w.failed() {
		w.books.balanced(w.life)
		w.reopen()
	}
	_ = w.h.Close()
}
