package harness

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

// Model is the model in force.
func (h *Harness) Model() *llm.Model {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.model
}

// ThinkingLevel is the level in force.
func (h *Harness) ThinkingLevel() llm.ThinkingLevel {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.level
}

// Tools lists the tools in force.
func (h *Harness) Tools() []*agent.Tool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.tools)
}

// SetModel changes the model from the next turn on, clamps the thinking level
// to it, and records both in the session. After an error the model is the old
// one.
func (h *Harness) SetModel(m *llm.Model) error {
	const op = "set model"
	if m == nil {
		return &Error{KindInvalidArgument, op, errors.New("no model given")}
	}
	var level llm.ThinkingLevel
	err := h.commit(op, &session.ModelChangeEntry{Provider: m.Provider, ModelID: m.ID}, func() {
		h.post(Event{Event: agent.Event{Type: ModelSelect}, Model: m, PreviousModel: h.model})
		h.model = m
		level = m.ClampLevel(h.level)
	})
	if err != nil || h.opts.Embedded {
		return err
	}
	return h.setLevel(op, level)
}

// SetThinkingLevel changes the level from the next turn on, clamped to what the
// model supports, and records it in the session.
func (h *Harness) SetThinkingLevel(l llm.ThinkingLevel) error {
	return h.setLevel("set thinking level", h.Model().ClampLevel(l))
}

func (h *Harness) setLevel(op string, level llm.ThinkingLevel) error {
	if h.ThinkingLevel() == level && !h.opts.Embedded {
		return nil
	}
	return h.commit(op, &session.ThinkingLevelEntry{Level: level}, func() {
		h.post(Event{Event: agent.Event{Type: ThinkingLevelSelect}, Level: string(level), PreviousLevel: string(h.level)})
		if h.level != level {
			h.post(Event{Event: agent.Event{Type: ThinkingLevelChanged}, Level: string(level)})
		}
		h.level = level
	})
}

// SetTools changes the tools from the next turn on; those that are named in
// active are in force, all of them when none is named. With a recorded prompt
// the change is declared to the model in the transcript. An unknown name is an
// *Error of kind invalid_argument, which changes nothing.
func (h *Harness) SetTools(tools []*agent.Tool, active ...string) error {
	const op = "set tools"
	if err := checkTools(op, tools); err != nil {
		return err
	}
	inForce := slices.Clone(tools)
	if len(active) > 0 {
		var err error
		if inForce, err = pickTools(op, tools, active); err != nil {
			return err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.allTools, h.tools = slices.Clone(tools), inForce
	return nil
}

// AllTools lists the tools that SetActiveTools can choose from.
func (h *Harness) AllTools() []*agent.Tool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.allTools)
}

// SetActiveTools puts the tools of these names in force from the next turn on,
// in this order, and no others. An unknown name is an *Error of kind
// invalid_argument, which changes nothing.
func (h *Harness) SetActiveTools(names ...string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	tools, err := pickTools("set active tools", h.allTools, names)
	if err != nil {
		return err
	}
	h.tools = tools
	return nil
}

// restoreTools puts the tools in force that the branch had, as far as they are
// there. A branch that says nothing of tools changes nothing, nor does one whose
// prompt is fixed.
func (h *Harness) restoreTools() {
	names := session.DeclaredTools(h.sess.Context().Messages)
	if names == nil || h.fixed() {
		return
	}
	h.tools = nil
	for _, name := range names {
		if i := slices.IndexFunc(h.allTools, func(t *agent.Tool) bool { return t.Name == name }); i >= 0 {
			h.tools = append(h.tools, h.allTools[i])
		}
	}
}

// pickTools are the tools of some names.
func pickTools(op string, tools []*agent.Tool, names []string) ([]*agent.Tool, error) {
	out := make([]*agent.Tool, 0, len(names))
	for _, name := range names {
		i := slices.IndexFunc(tools, func(t *agent.Tool) bool { return t.Name == name })
		if i < 0 {
			return nil, &Error{KindInvalidArgument, op, fmt.Errorf("no tool is called %q", name)}
		}
		if !slices.Contains(out, tools[i]) {
			out = append(out, tools[i])
		}
	}
	return out, nil
}

// SetName gives the session a name for lists, on one line; an empty one takes
// the name away. A name says nothing to the model and is written at once.
func (h *Harness) SetName(name string) error {
	const op = "set name"
	h.saving.Lock()
	h.mu.Lock()
	closed := h.closed
	h.mu.Unlock()
	var err error
	if closed {
		err = closedError(op)
	} else if _, e := h.sess.SetName(name); e != nil {
		err = &Error{KindSession, op, e}
	} else {
		h.mu.Lock()
		h.post(Event{Event: agent.Event{Type: SessionInfoChanged}, Name: h.sess.Name()})
		h.mu.Unlock()
	}
	h.saving.Unlock()
	h.deliver()
	return err
}
