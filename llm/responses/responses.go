package responses

import (
	"context"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

// ID is the name of the wire format of OpenAI itself and of services like it.
const ID = "openai-responses"

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

func (c Config) host() *wire.Host {
	return wire.Host{
		Client: c.Client, Version: c.Version, Getenv: c.Getenv, Now: c.Now, Wait: c.Wait, Random: c.Random,
	}.Default()
}

// Options are what a request can say beyond llm.Options.
type Options struct {
	// ReasoningEffort is the thinking level, sent as the model maps it; "" for
	// none. llm.Options.Reasoning has no say beside it.
	ReasoningEffort llm.ThinkingLevel
	// ReasoningSummary is how reasoning is told: auto, concise or detailed; ""
	// for auto. Without an effort it asks for medium, except of ChatGPT.
	ReasoningSummary string
	// ServiceTier is the price class: auto, default, flex, priority or another
	// word of the service; "" to send none.
	ServiceTier string
	// ToolChoice is "auto", "none" or "required" as a JSON string, or an object
	// in the form of the protocol; nil for llm.Options.ToolChoice.
	ToolChoice jsontext.Value
}

// API is the wire format openai-responses. It is safe for concurrent use.
type API struct{ service *service }

// New makes the wire format openai-responses.
func New(c Config) *API { return &API{newService(c, openAI())} }

// ID implements llm.API.
func (a *API) ID() string { return ID }

// Stream implements llm.API. The level of thinking is the supported one nearest
// to the one asked for, and a token limit is always sent: the wished one or the
// model's, cut to what the context window has room for. Its error is a
// *llm.KeyError: there is neither a key nor a header field that authorizes.
func (a *API) Stream(ctx context.Context, m *llm.Model, req *llm.Request) (*llm.Stream, error) {
	if !authorized(m, &req.Options) {
		return nil, &llm.KeyError{Provider: m.Provider}
	}
	x := a.service.exchange(m, req)
	x.simple()
	return x.stream(ctx), nil
}

// StreamWith is Stream with the options of this wire format. It sends
// MaxTokens as it is, and none when it is 0. Missing credentials arrive as the
// stream's last event.
func (a *API) StreamWith(ctx context.Context, m *llm.Model, req *llm.Request, o Options) *llm.Stream {
	x := a.service.exchange(m, req)
	x.with(o)
	return x.stream(ctx)
}
