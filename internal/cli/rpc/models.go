package rpc

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/catalog"
)

func (s *server) setModel(c *command) {
	provider, err := c.text("provider")
	id := ""
	if err == nil {
		id, err = c.text("modelId")
	}
	var m *llm.Model
	if err == nil {
		if m = s.c.Models.Find(provider, id); m == nil || !s.c.Models.HasCredentials(m.Provider) {
			err = fmt.Errorf("Model not found: %s/%s", provider, id)
		}
	}
	if err == nil {
		err = s.c.Harness.SetModel(m)
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	s.settled()
	s.done(c, func(dst []byte) []byte { return appendModel(dst, m) })
}

func (s *server) cycleModel(c *command) {
	scoped := len(s.c.Scope) > 0
	choices := s.c.Scope
	if !scoped {
		for _, m := range s.c.Models.Available() {
			choices = append(choices, catalog.Choice{Model: m})
		}
	}
	if len(choices) < 2 {
		s.done(c, null)
		return
	}
	h := s.c.Harness
	at := slices.IndexFunc(choices, func(o catalog.Choice) bool { return o.Model.Ref() == h.Model().Ref() })
	next := choices[(at+1)%len(choices)]
	err := h.SetModel(next.Model)
	if err == nil {
		err = h.SetThinkingLevel(cmp.Or(next.Level, h.ThinkingLevel()))
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	s.settled()
	level := h.ThinkingLevel()
	s.done(c, object(func(o *jsonwire.Object) {
		o.Key("model")
		o.B = appendModel(o.B, next.Model)
		o.Text("thinkingLevel", string(level))
		o.Bool("isScoped", scoped)
	}))
}

func (s *server) availableModels(c *command) {
	models := s.c.Models.Available()
	s.done(c, object(func(o *jsonwire.Object) {
		o.Key("models")
		o.B = jsonwire.AppendArray(o.B, models, func(m *llm.Model, dst []byte) []byte { return appendModel(dst, m) })
	}))
}

func (s *server) setThinkingLevel(c *command) {
	level, err := c.text("level")
	if err == nil {
		err = s.c.Harness.SetThinkingLevel(llm.ThinkingLevel(level))
	}
	s.finish(c, err)
}

func (s *server) cycleThinkingLevel(c *command) {
	h := s.c.Harness
	if !h.Model().Reasoning {
		s.done(c, null)
		return
	}
	levels := h.Model().SupportedLevels()
	next := levels[(slices.Index(levels, h.ThinkingLevel())+1)%len(levels)]
	if err := h.SetThinkingLevel(next); err != nil {
		s.fail(c, err)
		return
	}
	s.settled()
	s.done(c, object(func(o *jsonwire.Object) { o.Text("level", string(next)) }))
}

func (s *server) availableThinkingLevels(c *command) {
	levels := s.c.Harness.Model().SupportedLevels()
	s.done(c, object(func(o *jsonwire.Object) { texts(o, "levels", levels) }))
}

func null(dst []byte) []byte { return append(dst, "null"...) }

// appendModel appends what a client may know of a model: headers may hold keys.
func appendModel(dst []byte, m *llm.Model) []byte {
	shown := *m
	shown.Headers = nil
	b, err := json.Marshal(&shown, json.Deterministic(true))
	if err != nil { // a value of models.json that is no JSON cannot get here
		return null(dst)
	}
	return append(dst, b...)
}

// shownModel is what appendModel appends for the model that was shown last:
// clients ask for the state all the time.
type shownModel struct {
	of   *llm.Model
	json []byte
}

func (s *server) model(m *llm.Model) []byte {
	if s.shown.of != m {
		s.shown = shownModel{m, appendModel(nil, m)}
	}
	return s.shown.json
}
