package mistral

import (
	"context"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/transcript"
)

// ID is the name of the wire format.
const ID = "mistral-conversations"

// headerWait bounds the wait for response headers where a request names no
// bound: the service begins to answer before the model does.
const headerWait = time.Minute

// Config is what an API gets from its program. The zero value works.
type Config struct {
	Client  *http.Client        // nil for a client of its own
	Version string              // of the program, for the User-Agent
	Getenv  func(string) string // process environment; nil for os.Getenv
	Now     func() time.Time    // nil for time.Now
}

// API is the wire format. It is safe for concurrent use.
type API struct{ host *wire.Host }

// New makes the wire format.
func New(c Config) *API {
	return &API{host: wire.Host{Client: c.Client, Version: c.Version, Getenv: c.Getenv, Now: c.Now}.Default()}
}

// ID implements llm.API.
func (a *API) ID() string { return ID }

// Options are what a request can say beyond llm.Options.
type Options struct {
	// ToolChoice is "auto", "none", "any" or "required" as a JSON string, or an
	// object that names a function; nil for llm.Options.ToolChoice.
	ToolChoice jsontext.Value
	// ReasoningEffort is the service's word for how much to think, such as
	// "high" or "none"; "" says nothing.
	ReasoningEffort string
	// PromptMode is "reasoning" for models that think by a prompt of the
	// service; "" says nothing.
	PromptMode string
}

// Stream implements llm.API. The level of thinking is the supported one nearest
// to the one asked for, and a token limit is always sent: the wished one or the
// model's, cut to what the context window has room for. Its error is a
// *llm.KeyError.
func (a *API) Stream(ctx context.Context, m *llm.Model, req *llm.Request) (*llm.Stream, error) {
	if req.APIKey == "" {
		return nil, &llm.KeyError{Provider: m.Provider}
	}
	x := a.exchange(m, req)
	x.limited = true
	x.own.ReasoningEffort, x.own.PromptMode = thinking(m, req.Reasoning)
	return x.stream(ctx), nil
}

// StreamWith is Stream with the options of this wire format; Options.Reasoning
// has no say beside them. It sends MaxTokens as it is, and none when it is 0.
// A missing key arrives as the stream's last event.
func (a *API) StreamWith(ctx context.Context, m *llm.Model, req *llm.Request, o Options) *llm.Stream {
	x := a.exchange(m, req)
	x.own = o
	return x.stream(ctx)
}

func (a *API) exchange(m *llm.Model, req *llm.Request) *exchange {
	return &exchange{host: a.host, model: m, compat: compatOf(m), req: req}
}

func (x *exchange) stream(ctx context.Context) *llm.Stream {
	return llm.NewStream(wire.NewSource(ctx, x.host, ID, x.model, x.options(), x))
}

// options are the request's, with the bound on the wait for headers.
func (x *exchange) options() *llm.Options {
	if x.req.Timeout != 0 {
		return &x.req.Options
	}
	o := x.req.Options
	o.Timeout = headerWait
	return &o
}

// compat is what Model.Compat says about this wire format.
type compat struct {
	strict  bool // supportsStrictMode
	inPlace bool // supportsMidConvoSystemMessages
}

func compatOf(m *llm.Model) (c compat) {
	var r jsonwire.Reader
	r.Reset(m.Compat)
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "supportsStrictMode":
			c.strict = r.Bool()
		case "supportsMidConvoSystemMessages":
			c.inPlace = r.Bool()
		default:
			r.Skip()
		}
	}
	return c
}

// thinking is how a model is told how much to think: by the effort or by the
// prompt mode, or not at all.
func thinking(m *llm.Model, asked llm.ThinkingLevel) (effort, promptMode string) {
	if !m.Reasoning {
		return "", ""
	}
	level := llm.LevelOff
	if asked != "" {
		level = m.ClampLevel(asked)
	}
	word := m.ThinkingLevelMap[level]
	switch {
	case word != nil:
		return *word, ""
	case level == llm.LevelOff:
		return "", ""
	case m.ThinkingLevelMap != nil:
		return "high", ""
	default:
		return "", "reasoning"
	}
}

// historyKey tells apart what the encoding of a message depends on.
type historyKey struct {
	provider, model string
	images          bool
	compat          compat
}

// rules are what the service asks of a transcript.
func (x *exchange) rules() *transcript.Rules {
	return &transcript.Rules{
		Model:         x.model,
		SystemInPlace: x.compat.inPlace,
		NormalizeID:   func(id string, _ *llm.Assistant) string { return shortID(id, 0) },
		LegalID:       legalID,
		VariantID:     func(id string, n int) string { return shortID(id, n-1) },
	}
}

// headers makes the request's header fields.
func (x *exchange) headers() http.Header {
	o := &x.req.Options
	header := x.host.Header(x.model, o)
	header.Set("Accept", "text/event-stream")
	header.Set("Authorization", "Bearer "+o.APIKey)
	if x.session != "" {
		header.Set("X-Affinity", x.session)
	}
	wire.Override(header, x.model, o)
	return header
}
