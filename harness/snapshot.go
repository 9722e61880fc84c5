package harness

import (
	"context"
	"maps"
	"slices"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

// PromptKind says where the system prompt lives.
type PromptKind string

// The kinds of prompts.
const (
	// RecordedPrompt: the prompt and the tools are system messages of the
	// transcript, and what changed is added to it.
	RecordedPrompt PromptKind = "recorded"
	// FixedPrompt: the prompt and the tools travel beside the transcript, in a
	// system message at the head of each request that is recorded nowhere.
	// System messages that the session has are not sent.
	FixedPrompt PromptKind = "fixed"
)

// TurnState is what a turn runs with.
type TurnState struct {
	Model         *llm.Model
	ThinkingLevel llm.ThinkingLevel
	Tools         []*agent.Tool
	Resources     Resources
	Session       *session.Session // to be read
}

// snapshot is what the requests of one turn are made of. It is taken when a
// prompt begins and again between turns, so that what is set meanwhile never
// changes a request on its way.
type snapshot struct {
	model     *llm.Model
	level     llm.ThinkingLevel // clamped to model
	tools     []*agent.Tool
	resources Resources
	version   int // of resources
	request   llm.Options

	prompt string      // rendered, of a fixed prompt
	head   *llm.System // the fixed prompt and its tools; nil when recorded, or when there are none
	patch  *llm.System // what brings the recorded prompt up to date; nil for nothing
}

// sameSettings reports whether a prompt for s is one for o.
func (s *snapshot) sameSettings(o *snapshot) bool {
	return s.model == o.model && s.level == o.level && s.version == o.version && slices.Equal(s.tools, o.tools)
}

func (h *Harness) fixed() bool { return h.opts.Prompt == FixedPrompt }

// capture takes a snapshot. before is the last one of the run, nil for none: a
// recorded prompt is made anew only for other settings.
func (h *Harness) capture(ctx context.Context, before *snapshot) (*snapshot, error) {
	h.mu.Lock()
	s := &snapshot{
		model: h.model, level: h.model.ClampLevel(h.level), tools: h.tools,
		resources: h.resources, version: h.resourcesVersion, request: h.request,
	}
	h.mu.Unlock()
	if s.request.SessionID == "" {
		s.request.SessionID = h.sess.ID()
	}
	s.request.Memo = &h.memo
	if h.fixed() {
		sections, err := h.wanted(ctx, s)
		if err != nil {
			return nil, err
		}
		s.prompt = session.Prompt(&llm.System{Sections: sections})
		s.head = h.headFor(s.prompt, s.tools)
		return s, nil
	}
	if before != nil && before.sameSettings(s) {
		return s, nil
	}
	sections, err := h.wanted(ctx, s)
	if err != nil {
		return nil, err
	}
	if patch := llm.DiffSections(h.recordedSections(), sections); len(patch) > 0 {
		s.patch = &llm.System{Sections: patch, Timestamp: h.now().UnixMilli()}
	}
	return s, nil
}

// patches is the patch as messages.
func (s *snapshot) patches() []agent.Message {
	if s.patch == nil {
		return nil
	}
	return []agent.Message{s.patch}
}

// wanted are the sections of the prompt for s.
func (h *Harness) wanted(ctx context.Context, s *snapshot) ([]llm.Section, error) {
	text := h.opts.SystemPrompt
	switch {
	case h.opts.Sections != nil:
		return ask(ctx, h.grace(), func(context.Context) ([]llm.Section, error) {
			return h.opts.Sections(slices.Clone(s.tools)), nil
		})
	case h.opts.PromptText != nil:
		var err error
		text, err = ask(ctx, h.grace(), func(ctx context.Context) (string, error) {
			return h.opts.PromptText(ctx, TurnState{
				Model: s.model, ThinkingLevel: s.level, Tools: slices.Clone(s.tools),
				Resources: s.resources.clone(), Session: h.sess,
			})
		})
		if err != nil {
			return nil, err
		}
	}
	if text == "" {
		return nil, nil
	}
	return []llm.Section{{Name: "preamble", Text: text}}, nil
}

// recorded is the prompt that the first n messages of a context make. It
// belongs to the goroutine of the run.
type recorded struct {
	known    bool
	revision uint64
	n        int
	sections []llm.Section
}

// recordedSections are the sections that the transcript has. They cost what is
// new in it.
func (h *Harness) recordedSections() []llm.Section {
	c := h.sess.Context()
	p := &h.recorded
	if !p.known || p.revision != c.Revision || p.n > len(c.Messages) {
		*p = recorded{known: true, revision: c.Revision}
	}
	for _, m := range c.Messages[p.n:] {
		if s, ok := m.(*llm.System); ok {
			p.sections = llm.PatchSections(p.sections, s.Sections)
		}
	}
	p.n = len(c.Messages)
	return p.sections
}

// headFor is the system message of a fixed prompt: the same pointer as long as
// it says the same, so that it is encoded once.
func (h *Harness) headFor(prompt string, tools []*agent.Tool) *llm.System {
	if prompt == "" && len(tools) == 0 {
		return nil
	}
	if h.head.message == nil || h.head.prompt != prompt || !slices.Equal(h.head.tools, tools) {
		m := &llm.System{Content: llm.Plain(prompt)}
		for _, t := range tools {
			m.ToolsAdded = append(m.ToolsAdded, t.Tool)
		}
		h.head = head{message: m, prompt: prompt, tools: tools}
	}
	return h.head.message
}

// head is the system message of a fixed prompt and what it was made of. It
// belongs to the goroutine of the run.
type head struct {
	message *llm.System
	prompt  string
	tools   []*agent.Tool
}

// spoken is what a run of the loop goes on from: the context, or with a fixed
// prompt that prompt and the context without others. It grows with the context,
// and has room into which the loop puts the messages of its run: a copy for each
// run would grow with the conversation. It belongs to the goroutine of the run.
type spoken struct {
	head     *llm.System // nil for a prompt in the context
	fixed    bool
	revision uint64
	n        int // messages of the context that are in it
	messages []agent.Message
}

// of is the list for a context. The caller may write behind its end; whoever
// else gets the list must not.
func (s *spoken) of(head *llm.System, fixed bool, c session.Context) []agent.Message {
	if s.messages == nil || s.head != head || s.fixed != fixed || s.revision != c.Revision || s.n > len(c.Messages) {
		*s = spoken{head: head, fixed: fixed, revision: c.Revision, messages: withRoom(nil, len(c.Messages))}
		if head != nil {
			s.add(head)
		}
	}
	for _, m := range c.Messages[s.n:] {
		if !fixed || m.Role() != llm.RoleSystem {
			s.add(m)
		}
	}
	s.n = len(c.Messages)
	return s.messages
}

// add adds a message, which the loop may have put behind the end already. Where
// it put another one the list is copied: the loop still has that.
func (s *spoken) add(m agent.Message) {
	n := len(s.messages)
	if n == cap(s.messages) {
		s.messages = withRoom(s.messages, n)
	}
	switch at := s.messages[:n+1][n]; at {
	case m:
		s.messages = s.messages[:n+1]
		return
	case nil:
	default:
		s.messages = withRoom(s.messages, n)
	}
	s.messages = append(s.messages, m)
}

// withRoom is a copy of a list with room for n messages and some turns more.
func withRoom(list []agent.Message, n int) []agent.Message {
	return append(make([]agent.Message, 0, n+n/4+64), list...)
}

// conversation is what the loop goes on from under s. There is room behind it
// for what the loop adds.
func (h *Harness) conversation(s *snapshot) (messages []agent.Message, revision uint64) {
	c := h.sess.Context()
	var head *llm.System
	if h.fixed() {
		head = s.head
	}
	return h.spoken.of(head, h.fixed(), c), c.Revision
}

// copyOptions is o with maps of its own.
func copyOptions(o llm.Options) llm.Options {
	o.Headers, o.Env, o.ThinkingBudgets = maps.Clone(o.Headers), maps.Clone(o.Env), maps.Clone(o.ThinkingBudgets)
	o.Metadata, o.SamplingParams = slices.Clone(o.Metadata), slices.Clone(o.SamplingParams)
	return o
}

// Request are the options of every request.
func (h *Harness) Request() llm.Options {
	h.mu.Lock()
	defer h.mu.Unlock()
	return copyOptions(h.request)
}

// SetRequest changes the options of requests from the next turn on.
func (h *Harness) SetRequest(o llm.Options) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return closedError("set request")
	}
	h.request = copyOptions(o)
	return nil
}
