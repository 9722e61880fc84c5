package conformance

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

// watch checks the events of one harness as they come. They come one at a time.
type watch struct {
	*life
	mu sync.Mutex

	running    bool // between agent_start and agent_settled
	begun      bool // between agent_start and agent_end
	inTurn     bool
	turns      int // of the run
	open       agent.Message
	calls      map[string]int // that run, by id
	results    []*llm.ToolResult
	attempt    int    // of the retries that are under way, 0 for none
	gaveUp     string // why the last ones ended
	compacting bool
	lastQueues harness.Queued
	lastNext   int // messages for the next turn, as queue_update told

	starts, ends, settled int
	begunCalls            int64
	ran, maybe            int // calls that ran, and that may have
}

func (o *watch) fail(ev *harness.Event, format string, args ...any) {
	o.w.failf("event %s: %s", ev.Type, fmt.Sprintf(format, args...))
}

func (o *watch) event(_ context.Context, ev harness.Event) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if ev.Type != agent.MessageUpdate {
		o.w.note("    %s%s", ev.Type, about(ev))
	}
	custom := ev.Message != nil && ev.Message.Role() == session.RoleCustom
	switch ev.Type {
	case agent.AgentStart:
		if o.begun || o.compacting {
			o.fail(&ev, "a run within a run")
		}
		o.running, o.begun, o.turns, o.calls = true, true, 0, map[string]int{}
		o.starts++
		o.inRun.Store(true)
	case agent.TurnStart:
		if !o.begun || o.inTurn || o.open != nil || ev.TurnIndex != o.turns {
			o.fail(&ev, "turn %d of %d; in a run: %t, in a turn: %t", ev.TurnIndex, o.turns, o.begun, o.inTurn)
		}
		o.inTurn, o.results = true, nil
		clear(o.calls)
	case agent.MessageStart:
		if o.open != nil || !custom && (!o.inTurn || o.inFlight() > 0) {
			o.fail(&ev, "a %s message in a turn: %t, in a message: %t, %d calls run", ev.Message.Role(), o.inTurn, o.open != nil, o.inFlight())
		}
		o.open = ev.Message
		if m, ok := ev.Message.(*llm.Assistant); ok && m.StopReason == llm.StopPending {
			if len(o.results) > 0 && !o.resumes {
				o.fail(&ev, "%d results before the answer", len(o.results))
			}
			o.results = nil
		}
	case agent.MessageUpdate:
		if o.open == nil || o.open.Role() != llm.RoleAssistant || ev.Update == nil {
			o.fail(&ev, "no answer arrives")
		}
	case agent.MessageEnd:
		if o.open == nil || o.open.Role() != ev.Message.Role() {
			o.fail(&ev, "another message than began")
			break
		}
		o.open = nil
		o.books.said(ev.Message)
		if r, ok := ev.Message.(*llm.ToolResult); ok {
			o.results = append(o.results, r)
		}
	case agent.ToolExecutionStart:
		if !o.inTurn || o.open != nil {
			o.fail(&ev, "outside of a turn, or within a message")
		}
		o.calls[ev.ToolCallID]++
		o.begunCalls++
	case agent.ToolExecutionUpdate, agent.ToolExecutionEnd:
		if o.calls[ev.ToolCallID] <= 0 {
			o.fail(&ev, "the call %q does not run", ev.ToolCallID)
		}
		if ev.Type == agent.ToolExecutionEnd {
			o.ledger.ends(&ev)
			o.calls[ev.ToolCallID]--
		}
	case agent.TurnEnd:
		m, _ := ev.Message.(*llm.Assistant)
		if !o.inTurn || o.open != nil || m == nil || ev.TurnIndex != o.turns {
			o.fail(&ev, "no turn ends here")
			break
		}
		o.inTurn = false
		o.ledger.turnEnds()
		o.turns++
		if o.inFlight() > 0 {
			o.fail(&ev, "%d calls run", o.inFlight())
		}
		if m.StopReason == llm.StopError || m.StopReason == llm.StopAborted {
			break
		}
		calls := m.ToolCalls()
		if len(calls) != len(ev.ToolResults) || !slices.Equal(ev.ToolResults, o.results) {
			o.fail(&ev, "%d calls, %d results, of which %d were said", len(calls), len(ev.ToolResults), len(o.results))
			break
		}
		for i, c := range calls {
			if ev.ToolResults[i].ToolCallID != c.ID {
				o.fail(&ev, "result %d is of %q and not of %q", i, ev.ToolResults[i].ToolCallID, c.ID)
			}
		}
	case agent.AgentEnd:
		if !o.begun || o.inTurn || o.open != nil {
			o.fail(&ev, "no run ends here")
		}
		o.begun = false
		o.ends++
		o.inRun.Store(false)
	case harness.AgentSettled:
		if o.begun || o.attempt > 0 || o.compacting || !o.running {
			o.fail(&ev, "in a run: %t, retrying: %t, compacting: %t; begun since the last: %t", o.begun, o.attempt > 0, o.compacting, o.running)
		}
		if !ev.Aborted && o.gaveUp == "Request was aborted" {
			o.fail(&ev, "retries were aborted, and the run was not")
		}
		o.running, o.gaveUp = false, ""
		o.settled++
		if o.w.opts.Embedded && ev.NextTurnCount != o.lastNext {
			o.fail(&ev, "%d wait for the next turn, queue_update said %d", ev.NextTurnCount, o.lastNext)
		}
		if !o.h.IsIdle() && o.asking.Load() <= 1 { // else somebody else has begun
			o.fail(&ev, "the harness is not idle")
		}
	case harness.AutoRetryStart:
		if o.attempt++; o.begun || ev.Attempt != o.attempt || ev.Attempt > ev.MaxAttempts {
			o.fail(&ev, "attempt %d of %d; in a run: %t", ev.Attempt, ev.MaxAttempts, o.begun)
		}
	case harness.AutoRetryEnd:
		if o.attempt == 0 || ev.Attempt != o.attempt {
			o.fail(&ev, "attempt %d, and %d was made", ev.Attempt, o.attempt)
		}
		o.attempt, o.gaveUp = 0, ev.FinalError
	case harness.CompactionStart:
		if o.compacting || o.inTurn {
			o.fail(&ev, "compacting: %t, in a turn: %t", o.compacting, o.inTurn)
		}
		o.compacting = true
	case harness.CompactionEnd:
		gaveUp := ev.Reason == "overflow" && strings.Contains(ev.ErrorMessage, "still too long")
		if !o.compacting && !gaveUp {
			o.fail(&ev, "nothing is being compacted")
		}
		if (ev.Compacted != nil) == (ev.Aborted || ev.ErrorMessage != "") {
			o.fail(&ev, "neither made nor failed, or both: %+v", ev)
		}
		o.compacting = false
	case harness.QueueUpdate:
		o.lastQueues, o.lastNext = harness.Queued{Steering: ev.Steering, FollowUp: ev.FollowUp}, len(ev.NextTurn)
	case harness.SavePoint:
		if o.inTurn {
			o.fail(&ev, "within a turn")
		}
		o.books.check(o.life, running)
	}
	return nil
}

// inFlight counts the calls that run.
func (o *watch) inFlight() (n int) {
	for _, k := range o.calls {
		n += k
	}
	return n
}

func about(ev harness.Event) string {
	switch {
	case ev.Message != nil:
		text := string(ev.Message.Role())
		if m, ok := ev.Message.(*llm.Assistant); ok {
			text += " " + string(m.StopReason) + " " + m.ErrorMessage
		}
		return " " + text + " " + strings.Join(tokens.FindAllString(string(ev.Message.AppendJSON(nil)), -1), " ")
	case ev.ToolCallID != "":
		return fmt.Sprintf(" %s %.20q", ev.ToolName, ev.ToolCallID)
	case ev.ErrorMessage != "" || ev.FinalError != "":
		return " " + ev.ErrorMessage + ev.FinalError
	}
	return ""
}

// called books a call that runs.
func (o *watch) called(what string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch kindOf(err) {
	case "":
		if what == "submit" || o.books.anyHandled() { // it may have been queued, or never run
			o.maybe++
		} else {
			o.ran++
		}
	case harness.KindUnknown, harness.KindHook, harness.KindSession, harness.KindCompaction:
		o.maybe++
	}
}

// over checks that everything that began has ended.
func (o *watch) over() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.running || o.begun || o.inTurn || o.open != nil || o.attempt > 0 || o.compacting {
		o.w.failf("idle, and not over: running %t, begun %t, in a turn %t, in a message %t, retrying %t, compacting %t",
			o.running, o.begun, o.inTurn, o.open != nil, o.attempt > 0, o.compacting)
	}
	if o.starts != o.ends {
		o.w.failf("%d agent_start, %d agent_end", o.starts, o.ends)
	}
	if n := o.executed.Load(); n > o.begunCalls {
		o.w.failf("%d calls began and %d tools ran", o.begunCalls, n)
	}
	if o.settled < o.ran || o.settled > o.ran+o.maybe {
		o.w.failf("%d calls ran, %d may have, %d agent_settled", o.ran, o.maybe, o.settled)
	}
}

// settled checks an idle harness.
func (w *trial) settled() {
	l := w.life
	if w.failed() || l.h == nil {
		return
	}
	if err := l.h.WaitForIdle(context.Background()); err != nil || l.h.Phase() != harness.PhaseIdle || !l.h.IsIdle() {
		w.failf("not idle: %v, %s", err, l.h.Phase())
	}
	l.watch.over()
	l.watch.mu.Lock()
	told := l.watch.lastQueues
	l.watch.mu.Unlock()
	if q := l.h.Queued(); !slices.Equal(q.Steering, told.Steering) || !slices.Equal(q.FollowUp, told.FollowUp) {
		w.failf("%v waits, queue_update says %v", q, told)
	}
	l.books.check(l, idle)
	l.noted()
}

var tokens = regexp.MustCompile(`<(?:m|a|r)\d+>`)

// fate is what must have become of a message.
type fate int

const (
	undecided fate = iota // nobody knows yet, or it is one's own when it failed
	taken                 // accepted: it is somewhere, once
	never                 // refused: it is nowhere
)

// books say where every message of a life is: each has a token of its own, and
// so do answers and results.
type books struct {
	mu      sync.Mutex
	fates   map[string]fate
	waits   map[string]wait
	heard   map[string]int // message_end
	back    map[string]int // taken back from the queues
	swallow map[string]bool
	skip    int // entries that were looked at
	found   map[string]int
}

// init takes over what a session has.
func (b *books) init(s *session.Session) {
	b.fates, b.waits, b.swallow = map[string]fate{}, map[string]wait{}, map[string]bool{}
	b.heard, b.back, b.found = map[string]int{}, map[string]int{}, map[string]int{}
	b.count(s)
	for token := range b.found {
		b.fates[token] = taken
	}
}

// count counts the tokens of entries that are new.
func (b *books) count(s *session.Session) {
	entries := s.Entries()
	for _, e := range entries[min(b.skip, len(entries)):] {
		if e.Type != session.TypeMessage && e.Type != session.TypeCustomMessage {
			continue
		}
		for token := range unique(e.Raw()) {
			b.found[token]++
		}
	}
	b.skip = len(entries)
}

// unique are the tokens of a text, each once: a message may hold its own twice.
func unique(text []byte) map[string]bool {
	out := map[string]bool{}
	text = []byte(strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(text)))
	for _, token := range tokens.FindAll(text, -1) {
		out[string(token)] = true
	}
	return out
}

// wait says where a message may wait.
type wait int

const (
	inQueue     wait = iota
	forTurn          // for the end of a turn, where nobody sees it
	forNextTurn      // for the next prompt, where nobody sees it either
)

// issue books a token that is about to be said.
func (b *books) issue(token string, waits wait) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fates[token], b.waits[token] = undecided, waits
}

// outcome books what a call said of its message.
func (b *books) outcome(token string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch kindOf(err) {
	case "":
		b.fates[token] = taken
		if b.swallow[token] {
			b.fates[token] = never
		}
	case harness.KindBusy, harness.KindInvalidState, harness.KindInvalidArgument, harness.KindAuth:
		b.fates[token] = never
	}
}

func (b *books) handled(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for token := range unique([]byte(text)) {
		b.swallow[token] = true
	}
}

func (b *books) anyHandled() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.swallow) > 0
}

func (b *books) returned(texts []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, text := range texts {
		for token := range unique([]byte(text)) {
			b.back[token]++
		}
	}
}

func (b *books) said(m agent.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for token := range unique(m.AppendJSON(nil)) {
		b.heard[token]++
	}
}

// moment is when the books are checked.
type moment int

const (
	running moment = iota
	idle           // what was accepted is in the conversation, or waits
	atEnd          // and nothing waits where nobody sees it
)

// check compares the books with the session, what could not be written yet and
// the queues.
func (b *books) check(l *life, when moment) {
	b.mu.Lock()
	defer b.mu.Unlock()
	messages := l.h.Messages()
	shown := l.h.Session().Context().Messages
	b.count(l.h.Session())
	places := map[string]int{}
	add := func(text []byte) {
		for token := range unique(text) {
			places[token]++
		}
	}
	for _, m := range messages[min(len(shown), len(messages)):] {
		add(m.AppendJSON(nil))
	}
	unsaved := map[string]int{}
	for k, v := range places {
		unsaved[k] = v
	}
	if when >= idle {
		q := l.h.Queued()
		for _, text := range slices.Concat(q.Steering, q.FollowUp) {
			add([]byte(text))
		}
	}
	for token, n := range b.back {
		places[token] += n
	}
	for token, n := range b.found {
		places[token] += n
		if n > 1 {
			l.w.failf("%s is in the session %d times", token, n)
		}
	}
	for token, n := range b.heard {
		if in := b.found[token] + unsaved[token]; n != 1 || in != 1 {
			l.w.failf("%s was heard %d times and is in the conversation %d times", token, n, in)
		}
	}
	for token, n := range places {
		if n > 1 {
			l.w.failf("%s is in %d places: in the session %d, unsaved %d, taken back %d", token, n, b.found[token], unsaved[token], b.back[token])
		}
	}
	for token, f := range b.fates {
		switch n := places[token]; {
		case f == never && n != 0:
			l.w.failf("%s was refused and is in the conversation", token)
		case f == taken && n != 1 && (when == atEnd || when == idle && b.waits[token] == inQueue):
			l.w.failf("%s was accepted and is lost", token)
		}
	}
}

// balanced checks the books when nothing waits any more.
func (b *books) balanced(l *life) { b.check(l, atEnd) }

// closed checks the session of a closed harness.
func (b *books) closed(l *life, wrote bool) {
	if b.check(l, idle); !wrote {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for token := range b.heard {
		if b.found[token] != 1 {
			l.w.failf("%s was heard, and closing did not write it", token)
		}
	}
	for token, f := range b.fates {
		if f == taken && b.waits[token] == forTurn && b.found[token] != 1 {
			l.w.failf("%s was accepted, and closing did not write it", token)
		}
	}
}

// tally counts what the steps were.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func (t *tally) count(what string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = map[string]int{}
	}
	t.counts[what] += n
}

func (t *tally) add(o *tally) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for what, n := range o.counts {
		t.count(what, n)
	}
}

func (t *tally) String() string {
	var out []string
	for _, what := range slices.Sorted(maps.Keys(t.counts)) {
		out = append(out, fmt.Sprintf("%s %d", what, t.counts[what]))
	}
	return strings.Join(out, ", ")
}

// covered fails when a kind of step never came.
func (t *tally) covered(tb testing.TB) {
	for _, what := range []string{"prompt", "continue", "compact", "navigate", "branch", "fork", "reopen", "crash", "die at a write", "a note does not fit", "steer", "follow up", "abort",
		"abort and clear", "model", "tools", "full disk", "add hooks", "fail", "panic", "a tool fails", "a tool panics",
		"the model fails passing", "the model overflows", "the model hangs", "the model ends early"} {
		if t.counts[what] == 0 {
			tb.Errorf("no step was %q", what)
		}
	}
}
