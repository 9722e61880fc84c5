package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

// ledger is what the tools of a conversation did, by the mark in the arguments
// of a call: what a journal must not forget.
type ledger struct {
	mu      sync.Mutex
	effects map[string]effect
	open    map[string]bool // began in a turn that has not ended
	again   map[string]bool // a crash cut them off and they may run once more
}

type effect struct {
	runs int
	told string // what tool_execution_end said, "" before
}

var marks = regexp.MustCompile(`<c\d+>`)

// markOf is the mark in the arguments of a call, "" for none.
func markOf(args []byte) string {
	return marks.FindString(strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(args)))
}

// after is the ledger of a life behind this one.
func (b *ledger) after() *ledger {
	b.mu.Lock()
	defer b.mu.Unlock()
	return &ledger{effects: maps.Clone(b.effects), open: maps.Clone(b.open), again: map[string]bool{}}
}

// begins books that the body of a tool begins, which the journal must say.
func (l *life) begins(name string, args []byte) {
	mark := markOf(args)
	for _, e := range slices.Backward(l.h.Session().Entries()) {
		m, ok := e.Message().(*llm.Assistant)
		if !ok || l.w.unnoted {
			continue
		}
		i := slices.IndexFunc(m.ToolCalls(), func(c *llm.ToolCall) bool { return markOf(c.Arguments) == mark })
		if i < 0 {
			continue
		}
		l.store.mu.Lock()
		if !noted(l.store.journal(), "call", e.ID, i) {
			l.w.failf("the call %s begins and is not in the journal", mark)
		}
		l.store.mu.Unlock()
		break
	}
	b := l.ledger
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.effects[mark]
	if mark == "" || e.runs > 0 && !b.again[mark] {
		l.w.failf("the call %s of %s runs %d times", mark, name, e.runs+1)
	}
	delete(b.again, mark)
	e.runs++
	b.effects[mark], b.open[mark] = e, true
}

// ends books what was told of a call.
func (b *ledger) ends(ev *harness.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	mark := markOf(ev.Args)
	if e := b.effects[mark]; b.open[mark] {
		e.told = contentOf(&llm.ToolResult{Content: ev.Result.Content})
		b.effects[mark] = e
	}
}

// turnEnds books that the results of a turn are where they belong, or that the
// run failed.
func (b *ledger) turnEnds() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.open)
}

func contentOf(r *llm.ToolResult) string {
	return string((&llm.ToolResult{Content: r.Content}).AppendJSON(nil))
}

// LoadJournal and the others implement session.Journal.
func (s *store) LoadJournal() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mem == nil {
		return s.Store.(session.Journal).LoadJournal()
	}
	return bytes.Clone(s.notes), nil
}

func (s *store) AppendJournal(lines []byte, fresh bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full == 0 && s.life != nil {
		if w := s.life.w; w.at("note").one(80) && w.step("write: a note does not fit") {
			s.full = 1
		}
	}
	if s.full > 0 {
		s.full--
		s.mayStay = true
		s.lost = append(s.lost, lines...)
		return &session.Error{Kind: session.DiskFull, Op: "append to journal"}
	}
	if s.mem == nil {
		if err := s.Store.(session.Journal).AppendJournal(lines, fresh); err != nil {
			return err
		}
	} else {
		if n := len(s.notes); n > 0 && s.notes[n-1] != '\n' {
			s.notes = append(s.notes, '\n')
		}
		s.notes = append(s.notes, lines...)
	}
	s.wrote(false, 12, len(lines))
	return nil
}

func (s *store) RemoveJournal() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.inRun.Load() {
		s.life.w.failf("the journal goes before its run has ended")
	}
	s.mayStay, s.tearable = false, false
	if s.mem == nil {
		return s.Store.(session.Journal).RemoveJournal()
	}
	s.notes = nil
	return nil
}

// announced checks that the journal knew of answers with calls before the log
// gets them. s.mu is held.
func (s *store) announced(lines []byte) {
	if s.life == nil || s.life.h == nil || s.life.w.unnoted || s.mayStay {
		return
	}
	for line := range bytes.Lines(lines) {
		var e struct {
			ParentID string
			Message  struct {
				Role, StopReason string
				Content          json.RawMessage
			}
		}
		if json.Unmarshal(line, &e) != nil || e.Message.Role != string(llm.RoleAssistant) || !bytes.Contains(e.Message.Content, []byte(`"type":"toolCall"`)) ||
			e.Message.StopReason == string(llm.StopError) || e.Message.StopReason == string(llm.StopAborted) {
			continue
		}
		notes := s.journal()
		if at := bytes.LastIndex(notes, []byte(`{"type":"answer"`)); at < 0 || !bytes.HasPrefix(notes[at:], fmt.Appendf(nil, `{"type":"answer","after":%q}`, e.ParentID)) {
			s.life.w.failf("an answer with calls is saved below %q that the journal does not know of: %s\n%s", e.ParentID, notes, line)
		}
	}
}

// journal is what there is of one, nil for none. s.mu is held.
func (s *store) journal() []byte {
	if s.mem != nil {
		return bytes.Clone(s.notes)
	}
	data, _ := os.ReadFile(s.path + ".run")
	return data
}

// wrote notes a write of n bytes, in which the process may die. s.mu is held.
func (s *store) wrote(log bool, odds, n int) {
	s.tearable = log
	if s.life == nil {
		return
	}
	w := s.life.w
	if d := w.at("write"); d.one(odds) && s.life.crash() == nil && w.step("write: die at a write") {
		c := s.image()
		torn := d.IntN(n + 1)
		if log {
			if c.cut = torn; int(s.lastFrom) == 0 { // nothing is a session without its first line
				c.cut = 0
			}
		} else {
			c.notes = c.notes[:len(c.notes)-torn]
		}
		s.life.dead(c)
	}
}

// image is what the disk has at this moment, and what happened before it. s.mu
// is held, so that nothing is written meanwhile.
func (s *store) image() *crash {
	c := &crash{beside: map[string][]byte{}, notes: s.journal(), lostNotes: bytes.Clone(s.lost), ledger: s.life.ledger.after()}
	if s.mem != nil {
		c.log = s.mem.Bytes()
		return c
	}
	c.log, _ = os.ReadFile(s.path)
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(s.path), "session.*"))
	for _, f := range files {
		if rest := strings.TrimPrefix(filepath.Base(f), "session"); rest != ".jsonl" && rest != ".jsonl.run" && !strings.HasSuffix(rest, ".lock") {
			c.beside[rest], _ = os.ReadFile(f)
		}
	}
	return c
}

// dead keeps the first image of a life; what it does from now on nobody sees.
func (l *life) dead(c *crash) {
	l.mu.Lock()
	if l.crashed == nil {
		l.crashed = c
	}
	l.mu.Unlock()
	if l.h != nil {
		l.w.beside(l.h.Abort)
	}
}

// withoutJournal is a store that keeps none.
type withoutJournal struct{ session.Store }

// asStore is the store that sessions of the episode get.
func (w *trial) asStore(s *store) session.Store {
	if w.unnoted {
		return withoutJournal{s}
	}
	return s
}

// opened is a session before a harness takes it up.
type opened struct {
	entries []*session.Entry
	leaf    string
	answer  *session.Entry // whose calls end the branch, nil for none
	notes   []byte         // whole lines of the journal
	damaged bool           // one was torn, and others followed before the next answer
	had     bool           // there was a journal
}

// look sees what a session has before a harness takes it up.
func (l *life) look(s *session.Session) opened {
	l.store.mu.Lock()
	notes := l.store.journal()
	l.store.mu.Unlock()
	o := opened{entries: s.Entries(), had: len(notes) > 0}
	for line := range bytes.Lines(notes) {
		text := bytes.TrimSpace(line)
		switch {
		case json.Valid(text): // a line break may be all that the last line lacks
			o.notes = append(append(o.notes, text...), '\n')
			o.damaged = o.damaged && !bytes.Contains(text, []byte(`"type":"answer"`))
		case len(text) > 0 && bytes.HasSuffix(line, []byte{'\n'}):
			o.damaged = true
		}
	}
	id := s.LeafID()
	if leaf := s.Leaf(); l.w.opts.Embedded && leaf != nil && leaf.Type == session.TypeLeaf {
		if target := leaf.Data().(*session.LeafEntry).TargetID; s.Entry(target) != nil || target == "" {
			id = target
		}
	}
	o.leaf = id
	hidden := map[string]bool{}
	for _, e := range slices.Backward(s.PathTo(id)) {
		if edit, ok := e.Data().(*session.ContextEditEntry); ok {
			hidden[edit.TargetID] = true
		}
		if _, ok := e.Message().(*llm.Assistant); ok && !hidden[e.ID] {
			o.answer = e
		}
		if !isResult(e) && says(e) {
			break
		}
	}
	return o
}

func isResult(e *session.Entry) bool {
	_, ok := e.Message().(*llm.ToolResult)
	return ok
}

// says reports whether an entry is more than a note between an answer and the
// results of its calls.
func says(e *session.Entry) bool {
	switch e.Type {
	case session.TypeMessage, session.TypeCompaction, session.TypeBranchSummary, session.TypeCustomMessage:
		return true
	}
	return false
}

// about reports whether the journal tells of the calls of an answer.
func (o *opened) about(answer *session.Entry) bool {
	if answer == nil || len(o.notes) == 0 {
		return false
	}
	last := o.notes[bytes.LastIndexByte(o.notes[:len(o.notes)-1], '\n')+1:]
	if bytes.Contains(last, []byte(`"type":"answer"`)) {
		after := func(id string) bool { return id != "" && bytes.Contains(last, fmt.Appendf(nil, `"after":%q`, id)) }
		return after(answer.ParentID) || after(o.leaf)
	}
	return bytes.Contains(last, fmt.Appendf(nil, `"answer":%q`, answer.ID))
}

// noted reports whether the journal has a line of a call.
func noted(notes []byte, typ, answer string, index int) bool {
	return bytes.Contains(notes, fmt.Appendf(nil, `{"type":%q,"answer":%q,"index":%d,`, typ, answer, index))
}

// resultsOf are the results of the calls of answers, in the order of the log.
func resultsOf(entries []*session.Entry) map[string][]*llm.ToolResult {
	out, below := map[string][]*llm.ToolResult{}, map[string]string{}
	for _, e := range entries {
		below[e.ID] = below[e.ParentID]
		switch m := e.Message().(type) {
		case *llm.Assistant:
			below[e.ID] = e.ID
		case *llm.ToolResult:
			out[below[e.ID]] = append(out[below[e.ID]], m)
		}
	}
	return out
}

// recovered checks what a harness made of what a crash left.
func (l *life) recovered(o opened, tools []*agent.Tool) {
	w, r := l.w, l.h.Recovered()
	after := l.h.Session().Entries()
	if r.Err != nil {
		w.failf("the journal cannot be read: %v", r.Err)
	}
	if w.unnoted || !o.had {
		if r != (harness.Recovery{}) {
			w.failf("without a journal %+v", r)
		}
		if !w.unnoted {
			l.kept(o, after)
		}
		return
	}
	w.note("  a journal, damaged: %t, of\n%s", o.damaged, o.notes)
	before, now := resultsOf(o.entries), resultsOf(after)
	var want harness.Recovery
	if want.CutOff = o.about(o.answer); want.CutOff {
		calls := o.answer.Message().(*llm.Assistant).ToolCalls()
		results := now[o.answer.ID]
		had := len(before[o.answer.ID])
		appended := results[min(had, len(results)):]
		seen := map[string]int{}
		for _, m := range before[o.answer.ID] {
			seen[m.ToolCallID]++
		}
		for i, c := range calls {
			if seen[c.ID] > 0 {
				seen[c.ID]--
				continue
			}
			mark := markOf(c.Arguments)
			e := l.ledger.effects[mark]
			safe := slices.ContainsFunc(tools, func(t *agent.Tool) bool { return t.Name == c.Name && t.ReplaySafe })
			has := noted(o.notes, "result", o.answer.ID, i)
			if e.told != "" && !has && !noted(l.store.lost, "result", o.answer.ID, i) {
				w.failf("the result of %s was told and is not in the journal", mark)
			}
			if e.runs > 0 && !noted(o.notes, "call", o.answer.ID, i) {
				w.failf("the call %s began and is not in the journal", mark)
			}
			if !has && safe {
				want.Again++
				l.ledger.again[mark] = true
				continue
			}
			if len(appended) == 0 {
				w.failf("the call %s has no result after a crash", mark)
				return
			}
			got := appended[0]
			appended = appended[1:]
			if got.ToolCallID != c.ID {
				w.failf("the result of %q is where that of %q belongs", got.ToolCallID, c.ID)
			}
			text := strings.TrimSpace(llm.TextOf(got.Content, ""))
			switch {
			case has:
				want.Results++
				if e.told != "" && e.told != contentOf(got) {
					w.failf("the call %s gave %s and after a crash %s", mark, e.told, contentOf(got))
				}
				if text == w.outcomeUnknown || text == w.notStarted {
					w.failf("the result of %s is in the journal and not in the session", mark)
				}
			case o.damaged || e.runs > 0 || noted(o.notes, "call", o.answer.ID, i):
				want.Unknown++
				if text != w.outcomeUnknown {
					w.failf("the call %s had begun, and its result says %q", mark, text)
				}
			default:
				want.NotStarted++
				if text != w.notStarted {
					w.failf("the call %s had not begun, and its result says %q", mark, text)
				}
			}
		}
		if len(appended) > 0 {
			w.failf("%d results more than calls after a crash", len(appended))
		}
		if want.Again > 0 {
			l.waitsFor, l.resumes = o.answer, true
		}
	}
	l.kept(o, after)
	for what, n := range map[string]int{"result": r.Results, "unknown": r.Unknown, "not started": r.NotStarted, "again": r.Again, "dropped": r.Dropped} {
		w.tally.count("recovered: "+what, n)
	}
	if want.Dropped = r.Dropped; r != want {
		w.failf("recovered %+v, and it was %+v", r, want)
	}
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	if there := len(l.store.journal()) > 0; there != (want.Again > 0) {
		w.failf("%d calls wait, and there is a journal: %t", want.Again, there)
	}
}

// kept checks that no result that was told is lost, and none is there twice.
func (l *life) kept(o opened, after []*session.Entry) {
	had, have := map[string]bool{}, map[string]bool{}
	for token := range unique(o.notes) {
		had[token] = true
	}
	for _, e := range after {
		if custom, ok := e.Data().(*session.CustomEntry); e.Type == session.TypeMessage || ok && custom.CustomType == harness.DroppedType {
			for token := range unique(e.Raw()) {
				if have[token] && strings.HasPrefix(token, "<r") {
					l.w.failf("the result %s is kept twice", token)
				}
				have[token] = true
			}
		}
	}
	for token := range had {
		if !have[token] {
			l.w.failf("the result %s was in the journal and is lost", token)
		}
	}
	for mark := range l.ledger.open {
		for token := range unique([]byte(l.ledger.effects[mark].told)) {
			if !have[token] && !bytes.Contains(l.store.lost, []byte(token)) {
				l.w.failf("the result %s of %s was told and is lost in a crash", token, mark)
			}
		}
	}
	clear(l.ledger.open)
}

// noted checks the journal of an idle harness, and what became of calls that
// waited.
func (l *life) noted() {
	l.store.mu.Lock()
	there, may := len(l.store.journal()) > 0, l.store.mayStay
	l.store.mu.Unlock()
	if o := l.waitsFor; o != nil {
		path := l.h.Session().Path()
		at := slices.IndexFunc(path, func(e *session.Entry) bool { return e.ID == o.ID })
		behind := slices.IndexFunc(path[at+1:], func(e *session.Entry) bool { return says(e) && !isResult(e) })
		if behind < 0 {
			return // they still wait, or have run and that was all
		}
		l.waitsFor = nil
		// Elsewhere nobody asks for them, and the run that was to make them may
		// have failed before it came to all of them.
		if m, ok := path[at+1+behind].Message().(*llm.Assistant); at >= 0 && !l.cutShort.Load() && (!ok || m.StopReason != llm.StopError) {
			ids := map[string]int{}
			for _, m := range resultsOf(l.h.Session().Entries())[o.ID] {
				ids[m.ToolCallID]++
			}
			for _, c := range o.Message().(*llm.Assistant).ToolCalls() {
				ids[c.ID]--
			}
			for id, n := range ids {
				if n != 0 {
					l.w.failf("the call %q waited, and has %d results too many", id, n)
				}
			}
		}
	}
	if there && !may {
		l.w.failf("the run has settled, and there is a journal")
	}
}
