package harness

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

// recordStart records model and thinking level where the branch has none, or
// another level. Another model records itself with its first answer, except that
// answers do not name a virtual one.
func (h *Harness) recordStart() error {
	c := h.sess.Context()
	had := h.chosen(&c)
	other := had == nil || had.Provider != h.model.Provider || had.ID != h.model.ID
	if other && !h.model.IsUnknown() && (len(c.Messages) == 0 || h.model.IsVirtual() || h.isVirtual(c.Chosen)) {
		if _, err := h.sess.Append(&session.ModelChangeEntry{Provider: h.model.Provider, ModelID: h.model.ID}); err != nil {
			return err
		}
	}
	// A level that the model has not stays recorded for one that has it.
	if !c.LevelRecorded || h.model.ClampLevel(c.ThinkingLevel) != h.level {
		_, err := h.sess.Append(&session.ThinkingLevelEntry{Level: h.level})
		return err
	}
	return nil
}

// AppendMessage adds a message to the conversation without a request: the
// outcome of a person's own shell command (*session.BashExecution), a note of
// the host (*session.Custom, which listeners see as message_start and
// message_end). During a run it is added when the turn ends, a shell command
// when the run does.
func (h *Harness) AppendMessage(m agent.Message) error {
	const op = "append message"
	if err := checkMessages(op, []agent.Message{m}); err != nil {
		return err
	}
	return h.commit(op, &session.MessageEntry{Message: m}, nil)
}

// commit records data now, or while a run is active when its turn is over: an
// entry between a call and its result would split what belongs together. done
// is called with h.mu held once data is sure to be recorded.
func (h *Harness) commit(op string, data session.Data, done func()) error {
	err := h.commitNow(op, data, done)
	h.deliver()
	return err
}

func (h *Harness) commitNow(op string, data session.Data, done func()) error {
	h.saving.Lock()
	defer h.saving.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return closedError(op)
	}
	if h.run != nil {
		if e, ok := data.(*session.MessageEntry); ok && e.Message.Role() == session.RoleBashExecution {
			h.runWrites = append(h.runWrites, data)
		} else {
			h.turnWrites = append(h.turnWrites, data)
		}
	} else {
		// No run begins without h.saving. Others need not wait for the disk.
		h.mu.Unlock()
		var err error
		if _, says := data.(*session.MessageEntry); says {
			err = h.giveUp()
		}
		if err == nil {
			err = h.flush(&h.turnWrites, &h.runWrites)
		}
		if err == nil {
			_, err = h.sess.Append(data)
		}
		if err == nil {
			h.endJournal() // of calls that were given up
		}
		h.mu.Lock()
		if err != nil {
			return &Error{KindSession, op, err}
		}
		h.announce(data)
	}
	if done != nil {
		done()
	}
	return nil
}

// announce tells listeners of a message that was added outside a run; h.mu is
// held.
func (h *Harness) announce(data session.Data) {
	e, ok := data.(*session.MessageEntry)
	if !ok || e.Message.Role() != session.RoleCustom {
		return
	}
	h.post(Event{Event: agent.Event{Type: agent.MessageStart, Message: e.Message}})
	h.post(Event{Event: agent.Event{Type: agent.MessageEnd, Message: e.Message}})
}

// flush writes what could not be written before and then lists of writes that
// waited, in order. One that fails stays, with those behind it, for the next
// flush, unless the session refuses it for good. h.saving is held.
func (h *Harness) flush(lists ...*[]session.Data) error {
	for {
		h.mu.Lock()
		if len(h.unsaved) == 0 {
			h.mu.Unlock()
			break
		}
		m := h.unsaved[0]
		h.mu.Unlock()
		if _, err := h.sess.AppendMessage(m); err != nil {
			return err
		}
		h.mu.Lock()
		h.unsaved = h.unsaved[1:]
		h.mu.Unlock()
	}
	for _, list := range lists {
		for {
			h.mu.Lock()
			if len(*list) == 0 {
				h.mu.Unlock()
				break
			}
			data := (*list)[0]
			h.mu.Unlock()
			_, err := h.sess.Append(data)
			if err != nil && !isRefused(err) {
				return err
			}
			h.mu.Lock()
			*list = (*list)[1:]
			if err == nil {
				h.announce(data)
			}
			h.mu.Unlock()
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// endTurn does the writes that waited for the end of the turn, and those that
// hooks drafted, and tells that the turn is saved.
func (h *Harness) endTurn(r *run) error {
	waited, err := h.writeWaiting(r)
	waited = waited || len(r.drafts) > 0
	if err = first(err, h.writeDrafts(r)); !isBroken(err) {
		h.mu.Lock()
		h.post(Event{Event: agent.Event{Type: SavePoint}, HadPendingMutations: waited})
		h.mu.Unlock()
	}
	h.deliver()
	return err
}

// writeWaiting does the writes that waited for the end of the turn and reports
// whether there were any. It is for the time between two turns.
func (h *Harness) writeWaiting(r *run) (waited bool, err error) {
	h.saving.Lock()
	defer h.saving.Unlock()
	h.mu.Lock()
	waited = len(h.turnWrites) > 0
	h.mu.Unlock()
	if err = h.flush(&h.turnWrites); err != nil {
		err = &Error{KindSession, r.op, err}
	}
	return waited, err
}

// save appends a message of the run to the session. One that cannot be written
// is kept in memory, and so is what follows it, so that the order stays.
func (h *Harness) save(m agent.Message) (*session.Entry, error) {
	h.saving.Lock()
	defer h.saving.Unlock()
	err := h.flush()
	var e *session.Entry
	if err == nil {
		e, err = h.sess.AppendMessage(m)
	}
	if err != nil && !isRefused(err) {
		h.mu.Lock()
		h.unsaved = append(h.unsaved, m)
		h.mu.Unlock()
	}
	return e, err
}

// checkMessages refuses what a conversation cannot take from outside.
func checkMessages(op string, messages []agent.Message) error {
	for _, m := range messages {
		var why error
		switch {
		case isNil(m):
			why = errors.New("a message is nil")
		case reflect.ValueOf(m).Kind() != reflect.Pointer:
			why = fmt.Errorf("a message must be a pointer, not a %T", m)
		case m.Role() == session.RoleBranchSummary, m.Role() == session.RoleCompactionSummary:
			why = errors.New("summaries are made by the session")
		case slices.ContainsFunc(blocks(m), func(b llm.Block) bool { return isNil(b) }):
			why = errors.New("a text or an image of a message is nil")
		}
		if why != nil {
			return &Error{KindInvalidArgument, op, why}
		}
	}
	return nil
}

// blocks are those of a message from outside.
func blocks(m agent.Message) []llm.Block {
	switch m := m.(type) {
	case *llm.User:
		return m.Content.Blocks
	case *llm.Assistant:
		return m.Content
	case *llm.ToolResult:
		return m.Content
	case *session.Custom:
		return m.Content.Blocks
	}
	return nil
}

// isNil reports whether v is nil, or a nil pointer of some type.
func isNil(v any) bool {
	p := reflect.ValueOf(v)
	return !p.IsValid() || p.Kind() == reflect.Pointer && p.IsNil()
}

// checkTools refuses tools that a model could not call.
func checkTools(op string, tools []*agent.Tool) error {
	names := map[string]bool{}
	for _, t := range tools {
		var why error
		switch {
		case t == nil || t.Name == "" || t.Execute == nil:
			why = errors.New("a tool needs a name and an Execute function")
		case names[t.Name]:
			why = fmt.Errorf("two tools are called %q", t.Name)
		case t.Parameters != nil && !t.Parameters.IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)):
			why = fmt.Errorf("the parameters of tool %q are no JSON", t.Name)
		}
		if why != nil {
			return &Error{KindInvalidArgument, op, why}
		}
		names[t.Name] = true
	}
	return nil
}
