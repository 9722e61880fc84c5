package llm_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pinch-agent/pinch/llm"
)

// named is a wire format that only has a name.
type named struct{ id, text string }

func (n named) ID() string { return n.id }

func (n named) Stream(_ context.Context, m *llm.Model, _ *llm.Request) (*llm.Stream, error) {
	return llm.Failed(m, errors.New(n.text), 1), nil
}

func TestRegistry(t *testing.T) {
	r := llm.NewRegistry(named{"a", "first"})
	r.Register(named{"b", "second"})
	r.Register(named{"a", "replaced"})
	if ids := r.IDs(); len(ids) != 2 || ids[0] != "a" || ids[1] != "b" {
		t.Errorf("ids %v", ids)
	}
	s, err := r.Stream(t.Context(), &llm.Model{API: "a", Provider: "p", ID: "m"}, &llm.Request{})
	if err != nil {
		t.Fatal(err)
	}
	if m := s.Result(); m.StopReason != llm.StopError || m.ErrorMessage != "replaced" || m.Model != "m" {
		t.Errorf("%+v", m)
	}
	_, err = r.Stream(t.Context(), &llm.Model{API: "c"}, &llm.Request{})
	if _, ok := errors.AsType[*llm.UnknownAPIError](err); !ok {
		t.Errorf("unknown format: %v", err)
	}
}
