package completions

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/transcript"
)

// ID is the name of the wire format.
const ID = "openai-completions"

// Config is what an API gets from its program. The zero value works.
type Config struct {
	Client  *http.Client        // nil for a client of its own
	Version string              // of the program, for the User-Agent
	Getenv  func(string) string // process environment; nil for os.Getenv
	Now     func() time.Time    // nil for time.Now

	// Wait waits between attempts; nil for a timer. Random gives the jitter of
	// the delays, in [0, 1); nil for a random one.
	Wait   func(ctx context.Context, d time.Duration) error
	Random func() float64
}

// API is the wire format. It is safe for concurrent use.
type API struct {
	host *wire.Host

	mu      sync.Mutex
	compats map[compatKey]*Compat
}

// New makes the wire format.
func New(c Config) *API {
	return &API{host: wire.Host{
		Client: c.Client, Version: c.Version, Getenv: c.Getenv, Now: c.Now, Wait: c.Wait, Random: c.Random,
	}.Default()}
}

// ID implements llm.API.
func (a *API) ID() string { return ID }

// Options are what a request can say beyond llm.Options.
type Options struct {
	// ReasoningEffort is the thinking level, sent as the model maps it; "" for
	// none. Options.Reasoning has no say beside it.
	ReasoningEffort llm.ThinkingLevel
	// ToolChoice is "auto", "none" or "required" as a JSON string, or an object
	// in the form of the protocol; nil for llm.Options.ToolChoice.
	ToolChoice jsontext.Value
}

// Stream implements llm.API. The level of thinking is the supported one nearest
// to the one asked for, and a token limit is always sent: the wished one or the
// model's, cut to what the context window has room for. Its error is a
// *llm.KeyError: there is neither a key nor a header field that authorizes.
func (a *API) Stream(ctx context.Context, m *llm.Model, req *llm.Request) (*llm.Stream, error) {
	if !authorized(m, &req.Options) {
		return nil, &llm.KeyError{Provider: m.Provider}
	}
	x := a.exchange(m, req)
	x.limited = true
	if req.Reasoning != "" {
		x.level = m.ClampLevel(req.Reasoning)
	}
	return x.stream(ctx), nil
}

// StreamWith is Stream with the options of this wire format. It sends
// MaxTokens as it is, and none when it is 0. Missing credentials arrive as the
// stream's last event.
func (a *API) StreamWith(ctx context.Context, m *llm.Model, req *llm.Request, o Options) *llm.Stream {
	x := a.exchange(m, req)
	x.own = o
	x.level = o.ReasoningEffort
	return x.stream(ctx)
}

func (a *API) exchange(m *llm.Model, req *llm.Request) *exchange {
	return &exchange{
		host: a.host, model: m, compat: a.compat(m), req: req,
		modelJSON: string(jsonwire.AppendString(nil, m.ID)),
	}
}

func (x *exchange) stream(ctx context.Context) *llm.Stream {
	if x.level == llm.LevelOff {
		x.level = ""
	}
	return llm.NewStream(wire.NewSource(ctx, x.host, ID, x.model, &x.req.Options, x))
}

// authorized reports whether a request has a key or a header in its place.
func authorized(m *llm.Model, o *llm.Options) bool {
	if o.APIKey != "" {
		return true
	}
	for _, name := range []string{"authorization", "cf-aig-authorization"} {
		if v, _ := wire.HeaderOverride(name, m, o); v != nil && *v != "" {
			return true
		}
	}
	return false
}

// compatKey is all that a Compat is made of.
type compatKey struct{ provider, model, baseURL, flags string }

// maxCompats bounds the flags that are kept parsed.
const maxCompats = 256

func (a *API) compat(m *llm.Model) *Compat {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.compats[compatKey{m.Provider, m.ID, m.BaseURL, string(m.Compat)}]; c != nil {
		return c
	}
	c := new(CompatOf(m))
	if a.compats == nil || len(a.compats) >= maxCompats {
		a.compats = map[compatKey]*Compat{}
	}
	a.compats[compatKey{m.Provider, m.ID, m.BaseURL, string(m.Compat)}] = c
	return c
}

// historyKey tells apart what the encoding of a message depends on.
type historyKey struct {
	provider, model   string
	images, developer bool
	inPlace, addTools bool
	strict, grammar   bool
	nonNull, asText   bool
	bridge            bool
	reasoningContent  bool
	resultName        bool
}

func (e *encoder) historyKey() historyKey {
	c := e.compat
	return historyKey{
		provider: e.model.Provider, model: e.model.ID,
		images: e.model.AcceptsImages(), developer: e.systemRole() == "developer",
		inPlace: c.SupportsMidConvoSystemMessages, addTools: c.SupportsMidConvoToolAdditions,
		strict: c.SupportsStrictMode, grammar: c.SupportsOpenAIGrammarTools,
		nonNull: c.RequiresNonNullAssistantContent, asText: c.RequiresThinkingAsText,
		bridge:           c.RequiresAssistantAfterToolResult,
		reasoningContent: e.needsReasoningContent(),
		resultName:       c.RequiresToolResultName,
	}
}

// rules are what the format asks of a transcript.
func (e *encoder) rules() *transcript.Rules {
	r := &transcript.Rules{
		Model:         e.model,
		SystemInPlace: e.compat.SupportsMidConvoSystemMessages,
		NormalizeID:   func(id string, _ *llm.Assistant) string { return normalizeID(e.model.Provider, id) },
	}
	if e.model.Provider == "openai" {
		r.LegalID = func(id string) bool { return normalizeID("openai", id) == id }
		r.VariantID = variantID
	}
	if r.SystemInPlace && e.compat.SupportsMidConvoToolAdditions {
		r.Tools = transcript.ToolAdditions
	}
	return r
}

// headers makes the request's header fields.
func (x *exchange) headers() http.Header {
	o := &x.req.Options
	header := x.host.Header(x.model, o)
	if o.APIKey != "" {
		header.Set("Authorization", "Bearer "+o.APIKey)
	}
	if x.compat.SendSessionAffinityHeaders && x.session != "" {
		names := []string{"Session_id", "X-Client-Request-Id", "X-Session-Affinity"}
		switch x.compat.SessionAffinityFormat {
		case "openrouter":
			names = []string{"X-Session-Id"}
		case "openai-nosession":
			names = names[1:]
		}
		for _, name := range names {
			header.Set(name, x.session)
		}
	}
	if x.model.Provider == "github-copilot" {
		wire.Copilot(header, x.req.Messages)
	}
	wire.Override(header, x.model, o)
	return header
}
