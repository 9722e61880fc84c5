package harness

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/internal/invoke"
	"github.com/pinch-agent/pinch/llm"
)

// Resources are skills and prompt templates that a program calls by name, with
// Skill and PromptFromTemplate, and that PromptText and hooks see. What a
// person types goes through Options.Expand instead.
type Resources struct {
	Skills    []Skill
	Templates []Template
}

// Skill is a skill with its instructions.
type Skill struct {
	Name        string
	Description string
	Content     string // the instructions
	// Read gives the instructions where Content is "", at each call; the
	// Instructions method of a skill that package resource found is one.
	Read     func() (string, error)
	FilePath string // named to the model
	BaseDir  string // that relative paths start from; "" for the folder of FilePath
	// DisableModelInvocation keeps the skill from being listed to the model.
	DisableModelInvocation bool
}

// Template is a prompt template.
type Template struct {
	Name        string
	Description string
	Content     string // with places such as $1, $@ and ${2:-text}
}

func (r Resources) clone() Resources {
	return Resources{slices.Clone(r.Skills), slices.Clone(r.Templates)}
}

// Resources are those in force.
func (h *Harness) Resources() Resources {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.resources.clone()
}

// SetResources changes the resources from the next turn on.
func (h *Harness) SetResources(r Resources) error {
	const op = "set resources"
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return closedError(op)
	}
	h.resources = r.clone()
	h.resourcesVersion++
	told := r.clone()
	h.post(Event{Event: agent.Event{Type: ResourcesUpdate}, Resources: &told})
	h.mu.Unlock()
	h.deliver()
	return nil
}

// Skill prompts with the skill of a name and what the caller adds, "" for
// nothing. An unknown name is an *Error of kind invalid_argument.
func (h *Harness) Skill(ctx context.Context, name, extra string) (*llm.Assistant, error) {
	const op = "skill"
	if err := h.mustBeIdle(op); err != nil {
		return nil, err
	}
	r := h.Resources()
	i := slices.IndexFunc(r.Skills, func(s Skill) bool { return s.Name == name })
	if i < 0 {
		return nil, &Error{KindInvalidArgument, op, fmt.Errorf("no skill is called %q", name)}
	}
	text, err := r.Skills[i].invoke(extra)
	if err != nil {
		return nil, &Error{KindInvalidArgument, op, err}
	}
	return h.PromptMessages(ctx, h.said(text, nil))
}

func (s *Skill) invoke(extra string) (string, error) {
	folder, body := s.BaseDir, s.Content
	if folder == "" {
		folder = filepath.Dir(s.FilePath)
	}
	if body == "" && s.Read != nil {
		var err error
		if body, err = s.Read(); err != nil {
			return "", err
		}
	}
	return invoke.Skill(s.Name, s.FilePath, folder, body, extra), nil
}

// PromptFromTemplate prompts with the template of a name, its places filled
// with args. An unknown name is an *Error of kind invalid_argument.
func (h *Harness) PromptFromTemplate(ctx context.Context, name string, args ...string) (*llm.Assistant, error) {
	const op = "prompt from template"
	if err := h.mustBeIdle(op); err != nil {
		return nil, err
	}
	r := h.Resources()
	i := slices.IndexFunc(r.Templates, func(t Template) bool { return t.Name == name })
	if i < 0 {
		return nil, &Error{KindInvalidArgument, op, fmt.Errorf("no template is called %q", name)}
	}
	return h.PromptMessages(ctx, h.said(invoke.Template(r.Templates[i].Content, args), nil))
}

// mustBeIdle refuses op early; who starts a run is decided when it is claimed.
func (h *Harness) mustBeIdle(op string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return closedError(op)
	case h.run != nil:
		return h.busy(op)
	}
	return nil
}
