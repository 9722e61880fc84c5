package harness

import (
	"cmp"
	_ "embed"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

// What a model reads in place of a result that a crash took.
var (
	//go:embed outcome_unknown.md
	outcomeUnknown string
	//go:embed not_started.md
	notStarted string
)

// Recovery tells what New found of a run that was cut off, and did about it. The
// zero value says that there was nothing.
type Recovery struct {
	// CutOff says that the conversation ends in the calls of that run: Continue
	// goes on with it.
	CutOff bool

	Results    int // calls that had ended: their results are in the session now
	Unknown    int // calls that had begun and whose outcome nobody knows: their results say so
	NotStarted int // calls that had not begun: likewise
	Again      int // calls of tools that are safe to replay: Continue runs them, a prompt gives them up

	// Dropped are results for which the branch has no place any more: it ends
	// elsewhere, has gone on without them, or lacks the answer with the calls. They
	// are in the session as a custom entry of type DroppedType, unseen by models.
	Dropped int
	// Err says why the journal could not be read. The conversation goes on without it,
	// but no call of a tool begins while it stands there.
	Err error
}

// Recovered is what New found of a run that was cut off.
func (h *Harness) Recovered() Recovery { return h.recovery }

// DroppedType is the type of the custom entries with results that a branch has no
// place for: a list of tool result messages.
const DroppedType = "dropped-results"

// recoverable is what becomes of the calls of a run that was cut off.
type recoverable struct {
	Recovery
	results []*llm.ToolResult // to append, in the order of their calls
	dropped []*llm.ToolResult // to keep elsewhere
	cutOff
}

// cutOff are calls that wait to be run again.
type cutOff struct {
	answer *session.Entry // with the calls; nil when there is no place for results
	again  []*llm.ToolCall
	lost   []*llm.ToolResult // their results when they are given up
}

// decide compares a journal with a session. entries are all of the session, path
// those from the root to its leaf; safe says which tools may run a call twice,
// and now stamps the results that are made up.
//
// Results belong behind the answer with their calls, with nothing that a model
// sees in between. Where the branch does not end in that answer and results of
// it, nothing is appended.
func decide(entries, path []*session.Entry, j journal, safe func(tool string) bool, now int64) recoverable {
	var out recoverable
	answer, have := openAnswer(path)
	if answer == nil || !j.of(answer, path[len(path)-1]) {
		out.dropped = dropped(entries, j)
		out.Dropped = len(out.dropped)
		return out
	}
	out.CutOff, out.answer = true, answer
	for i, c := range answer.Message().(*llm.Assistant).ToolCalls() {
		if have[c.ID] > 0 {
			have[c.ID]--
			continue
		}
		key := callKey{answer.ID, i}
		id, began := j.began[key]
		if began && id != c.ID { // not this call
			began = false
			j.damaged = true
		}
		if result := j.finished[key]; began && result != nil {
			out.Results++
			out.results = append(out.results, result)
			continue
		}
		text := notStarted
		if began || j.damaged {
			text = outcomeUnknown
		}
		lost := lostResult(c, text, now)
		switch {
		case safe(c.Name):
			out.Again++
			out.again, out.lost = append(out.again, c), append(out.lost, lost)
			continue
		case text == outcomeUnknown:
			out.Unknown++
		default:
			out.NotStarted++
		}
		out.results = append(out.results, lost)
	}
	return out
}

// openAnswer is the answer at the end of a path, nil when something else is
// there, and how many results its calls have, by id.
func openAnswer(path []*session.Entry) (*session.Entry, map[string]int) {
	have := map[string]int{}
	hidden := map[string]bool{}
	for i := len(path) - 1; i >= 0; i-- {
		e := path[i]
		switch d := e.Data().(type) {
		case *session.MessageEntry:
			switch m := d.Message.(type) {
			case *llm.Assistant:
				if hidden[e.ID] {
					return nil, nil
				}
				return e, have
			case *llm.ToolResult:
				have[m.ToolCallID]++
			default:
				return nil, nil
			}
		case *session.CompactionEntry, *session.BranchSummaryEntry, *session.CustomMessageEntry:
			return nil, nil
		case *session.ContextEditEntry:
			hidden[d.TargetID] = true
		}
	}
	return nil, nil
}

// dropped are the results in the journal that the session does not have.
func dropped(entries []*session.Entry, j journal) (out []*llm.ToolResult) {
	type at struct{ answer, id string }
	have := map[at]int{}
	// The answer that an entry hangs below, with nothing but results in between.
	below := map[string]string{}
	for _, e := range entries {
		switch m := e.Message().(type) {
		case *llm.Assistant:
			below[e.ID] = e.ID
		case *llm.ToolResult:
			answer := below[e.ParentID]
			below[e.ID] = answer
			have[at{answer, m.ToolCallID}]++
		case nil:
			below[e.ID] = below[e.ParentID]
		}
	}
	keys := slices.SortedFunc(maps.Keys(j.finished), func(a, b callKey) int {
		return cmp.Or(cmp.Compare(a.answer, b.answer), a.index-b.index)
	})
	for _, key := range keys {
		result := j.finished[key]
		if k := (at{key.answer, result.ToolCallID}); have[k] > 0 {
			have[k]--
		} else {
			out = append(out, result)
		}
	}
	return out
}

func lostResult(c *llm.ToolCall, text string, now int64) *llm.ToolResult {
	return &llm.ToolResult{
		ToolCallID: c.ID, ToolName: c.Name,
		Content: []llm.Block{&llm.Text{Text: strings.TrimSpace(text)}}, Details: jsontext.Value("{}"),
		IsError: true, Timestamp: now,
	}
}

// takeUp brings the session up to what the journal of a run knows that was cut
// off. It may be cut off itself: what it has appended is in the session the next
// time, and the journal stays until all of it is.
func (h *Harness) takeUp() error {
	if !h.sess.HasJournal() {
		return nil
	}
	data, err := h.sess.LoadJournal()
	if err != nil || len(data) == 0 {
		h.recovery.Err = err
		return nil
	}
	safe := func(name string) bool {
		for _, t := range h.tools {
			if t.Name == name {
				return t.ReplaySafe
			}
		}
		return false
	}
	d := decide(h.sess.Entries(), h.sess.Path(), readJournal(data), safe, h.now().UnixMilli())
	h.recovery = d.Recovery
	for _, m := range d.results {
		if _, err := h.sess.AppendMessage(m); err != nil {
			return err
		}
	}
	if len(d.dropped) > 0 {
		list := jsonwire.AppendArray(nil, d.dropped, (*llm.ToolResult).AppendJSON)
		if _, err := h.sess.Append(&session.CustomEntry{CustomType: DroppedType, Value: list}); err != nil {
			return err
		}
	}
	if len(d.again) > 0 {
		h.cutOff = &d.cutOff
		return nil
	}
	return h.sess.RemoveJournal()
}

// takeCutOff takes the calls that wait to be run again, nil when there are none
// or the leaf is elsewhere by now. h.saving is held.
func (h *Harness) takeCutOff() *cutOff {
	c := h.cutOff
	h.cutOff = nil
	if c == nil {
		return nil
	}
	if answer, _ := openAnswer(h.sess.Path()); answer != c.answer {
		return nil
	}
	return c
}

// giveUp gives the calls that wait to be run again results that say what became
// of them: something else follows. h.saving is held.
func (h *Harness) giveUp() error {
	c := h.takeCutOff()
	if c == nil {
		return nil
	}
	for i, m := range c.lost {
		if _, err := h.sess.AppendMessage(m); err != nil {
			c.again, c.lost = c.again[i:], c.lost[i:]
			h.cutOff = c
			return err
		}
	}
	return nil
}
