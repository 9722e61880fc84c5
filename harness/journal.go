package harness

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

// A journal is JSON lines. The first kind says that an answer with calls is about
// to be saved below an entry. The others name a call: the entry of the answer
// that made it, its place among the calls of that answer, and its id, as a check.
//
//	{"type":"answer","after":"77d0b5e1"}
//	{"type":"call","answer":"0f3a91c2","index":0,"id":"toolu_01"}
//	{"type":"result","answer":"0f3a91c2","index":0,"id":"toolu_01","message":{"role":"toolResult",…}}
//
// A call line stands there before the body of the tool starts, a result line
// before anybody is told of the result.
const (
	recordAnswer = "answer"
	recordCall   = "call"
	recordResult = "result"
)

// callKey names a call.
type callKey struct {
	answer string // entry id
	index  int
}

// journal is what the lines of one say.
type journal struct {
	began    map[callKey]string // ids of the calls
	finished map[callKey]*llm.ToolResult
	answer   string // of the last call; "" when an answer was to follow
	after    string // the entry below which the last answer was to be saved
	// damaged says that a line could not be read, so that a call without one may
	// have begun all the same.
	damaged bool
}

// readJournal reads lines. A last line that a crash tore says nothing: what it
// was to tell had not happened yet, or is not known to have. Types of lines that
// are not known are passed over.
func readJournal(data []byte) journal {
	j := journal{began: map[callKey]string{}, finished: map[callKey]*llm.ToolResult{}}
	for line := range bytes.Lines(data) {
		text, whole := bytes.CutSuffix(line, []byte{'\n'})
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		if !j.readLine(text) && whole {
			j.damaged = true
		}
	}
	return j
}

func (j *journal) readLine(line []byte) bool {
	var r jsonwire.Reader
	r.Reset(line)
	if r.Kind() != '{' {
		return false
	}
	var typ, id, after string
	var message []byte
	key := callKey{index: -1}
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "type":
			typ = r.Text()
		case "after":
			after = r.Text()
		case "answer":
			key.answer = r.Text()
		case "index":
			key.index = int(r.Int())
		case "id":
			id = r.Text()
		case "message":
			message = r.Raw()
		default:
			r.Skip()
		}
	}
	if r.End() != nil || typ == "" {
		return false
	}
	switch typ {
	case recordAnswer:
		j.answer, j.after, j.damaged = "", after, false // what stands before tells of other calls
		return after != ""
	case recordCall, recordResult:
	default:
		return true
	}
	if key.answer == "" || key.index < 0 {
		return false
	}
	if known, ok := j.began[key]; ok && known != id {
		return false // a call has one id
	}
	if typ == recordResult {
		m, err := llm.ParseMessage(message)
		result, ok := m.(*llm.ToolResult)
		if err != nil || !ok || result.ToolCallID != id {
			return false
		}
		j.finished[key] = result
	}
	j.began[key] = id
	j.answer = key.answer
	return true
}

// appendRecord appends a line; result is nil where the call begins.
func appendRecord(dst []byte, key callKey, id string, result *llm.ToolResult) []byte {
	o := jsonwire.Begin(dst)
	if result == nil {
		o.Text("type", recordCall)
	} else {
		o.Text("type", recordResult)
	}
	o.Text("answer", key.answer)
	o.Int("index", int64(key.index))
	o.Text("id", id)
	if result != nil {
		o.Key("message")
		o.B = result.AppendJSON(o.B)
	}
	return append(o.End(), '\n')
}

// underWay are the calls of a run that have begun, by id. Two calls of one
// answer may have the same id; their tools and arguments then tell them apart.
type underWay map[string][]begunCall

type begunCall struct {
	callKey
	call *llm.ToolCall
}

// places are those of the calls among the calls of one answer.
type places struct {
	answer *llm.Assistant
	calls  []*llm.ToolCall
	next   int
}

// of is the place of a call, -1 where the answer has none such. Calls begin in
// their order, so the next one is looked at first.
func (p *places) of(answer *llm.Assistant, call *llm.ToolCall) int {
	if p.answer != answer {
		*p = places{answer: answer, calls: answer.ToolCalls()}
	}
	i := p.next
	if i >= len(p.calls) || p.calls[i] != call {
		i = slices.Index(p.calls, call)
	}
	p.next = i + 1
	return i
}

// end takes out the call that an event tells the end of. A call that was refused
// has not begun, even where another one with its id has.
func (u underWay) end(ev agent.Event) (callKey, bool) {
	begun := u[ev.ToolCallID]
	i := slices.IndexFunc(begun, func(c begunCall) bool {
		return c.call.Name == ev.ToolName && bytes.Equal(c.call.Arguments, ev.Args)
	})
	if i < 0 {
		return callKey{}, false
	}
	key := begun[i].callKey
	u[ev.ToolCallID] = slices.Delete(begun, i, i+1)
	return key, true
}

// of reports whether the calls of an answer are those that the journal tells of,
// or those before an answer that was never saved. leaf is where the branch ends.
func (j *journal) of(answer, leaf *session.Entry) bool {
	if j.answer == "" {
		return j.after != "" && (answer.ParentID == j.after || leaf.ID == j.after)
	}
	return answer.ID == j.answer
}

// noteAnswer puts into the journal that an answer with calls is about to be
// saved. Without that, a crash right behind it would leave calls of which nobody
// knows whether they have begun.
func (h *Harness) noteAnswer(r *run, m *llm.Assistant) {
	if !h.sess.HasJournal() || m.StopReason == llm.StopError || m.StopReason == llm.StopAborted || len(m.ToolCalls()) == 0 {
		return
	}
	h.saving.Lock()
	defer h.saving.Unlock()
	r.noted(h.note(h.wrote(), func(dst []byte) []byte {
		o := jsonwire.Begin(dst)
		o.Text("type", recordAnswer)
		o.Text("after", h.sess.LeafID())
		return append(o.End(), '\n')
	}))
}

// note writes a line into the journal. h.saving is held.
func (h *Harness) note(fresh bool, line func(dst []byte) []byte) error {
	b := line(h.noteBuf[:0])
	if cap(b) <= maxNoteBuf {
		h.noteBuf = b
	}
	return h.sess.AppendJournal(b, fresh)
}

// maxNoteBuf is the size, in bytes, up to which the memory of a line is kept for
// the next one.
const maxNoteBuf = 256 << 10

// noted keeps the failure to note something, which ends the run with its turn.
func (r *run) noted(err error) {
	if err != nil && r.unnoted == nil {
		r.unnoted = &Error{KindSession, r.op, fmt.Errorf("no call runs that the journal of the run cannot note: %w", err)}
	}
}

// noteCall puts into the journal that a call is about to begin. A call that
// could not be noted must not run: after a crash it would be taken for one that
// never began. The error is for the model.
func (h *Harness) noteCall(r *run, info agent.CallInfo) error {
	if !h.sess.HasJournal() || r.lastID == "" {
		return nil
	}
	if r.unnoted != nil {
		return errors.Unwrap(r.unnoted)
	}
	key := callKey{r.lastID, r.places.of(info.Message, info.Call)}
	h.saving.Lock()
	err := h.note(false, func(dst []byte) []byte { return appendRecord(dst, key, info.Call.ID, nil) })
	h.saving.Unlock()
	if r.noted(err); err != nil {
		return errors.Unwrap(r.unnoted)
	}
	if r.calls == nil {
		r.calls = underWay{}
	}
	r.calls[info.Call.ID] = append(r.calls[info.Call.ID], begunCall{key, info.Call})
	return nil
}

// noteResult puts the result of a call into the journal, so that it outlasts a
// crash before the results of the turn are in the session. A result that cannot
// be noted is in danger only until then, and the run goes on.
func (h *Harness) noteResult(r *run, ev agent.Event) {
	key, noted := r.calls.end(ev)
	if !noted {
		return
	}
	m := &llm.ToolResult{
		ToolCallID: ev.ToolCallID, ToolName: ev.ToolName,
		Content: ev.Result.Content, Details: ev.Result.Details, Usage: ev.Result.Usage,
		IsError: ev.Result.IsError, Timestamp: h.now().UnixMilli(), DurationMs: ev.DurationMs,
	}
	h.saving.Lock()
	defer h.saving.Unlock()
	_ = h.note(false, func(dst []byte) []byte { return appendRecord(dst, key, ev.ToolCallID, m) })
}

// wrote reports whether the session has everything that was said.
func (h *Harness) wrote() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.unsaved) == 0
}

// endJournal takes the journal away when the run has settled and all that it
// said is in the session. h.saving is held.
func (h *Harness) endJournal() {
	if h.cutOff != nil || !h.wrote() {
		return
	}
	_ = h.sess.RemoveJournal() // one that stays says nothing that the session does not
}
