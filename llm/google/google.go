package google

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

// The names of the wire formats.
const (
	ID       = "google-generative-ai"
	VertexID = "google-vertex"
)

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

	// ReadFile reads a file with credentials; nil for os.ReadFile. Only Vertex
	// uses it.
	ReadFile func(name string) ([]byte, error)
}

// API is one of the two wire formats. It is safe for concurrent use.
type API struct {
	host   *wire.Host
	vertex bool
	calls  atomic.Int64 // tool calls that got an id of ours
	tokens *tokens      // nil without vertex
}

// New makes the wire format google-generative-ai.
func New(c Config) *API { return &API{host: c.host()} }

// NewVertex makes the wire format google-vertex.
func NewVertex(c Config) *API {
	h := c.host()
	return &API{host: h, vertex: true, tokens: newTokens(h, c.ReadFile)}
}

func (c *Config) host() *wire.Host {
	return wire.Host{
		Client: c.Client, Version: c.Version, Getenv: c.Getenv, Now: c.Now, Wait: c.Wait, Random: c.Random,
	}.Default()
}

// ID implements llm.API.
func (a *API) ID() string {
	if a.vertex {
		return VertexID
	}
	return ID
}

// Options are what a request can say beyond llm.Options.
type Options struct {
	// ToolChoice is "auto", "none" or "any", which makes the model call a tool;
	// "" for llm.Options.ToolChoice.
	ToolChoice string
	// Thinking is what to ask of a reasoning model; nil says nothing about it.
	// llm.Options.Reasoning has no say beside it.
	Thinking *Thinking
	// Project and Location of Google Cloud; "" for the environment's. Only
	// Vertex without a key uses them.
	Project, Location string
}

// Thinking asks for thinking, or for none.
type Thinking struct {
	Enabled bool
	// Budget is the tokens to think with, -1 for as many as the model likes; nil
	// leaves it to the model.
	Budget *int
	// Level is MINIMAL, LOW, MEDIUM or HIGH, for models that take a level in
	// place of a budget; "" for the budget.
	Level string
}

// Stream implements llm.API. The level of thinking is the supported one nearest
// to the one asked for, and a token limit is always sent: the wished one or the
// model's, cut to what the context window has room for. Its error is a
// *llm.KeyError: there is no key. Vertex never fails here.
func (a *API) Stream(ctx context.Context, m *llm.Model, req *llm.Request) (*llm.Stream, error) {
	if !a.vertex && req.APIKey == "" {
		return nil, &llm.KeyError{Provider: m.Provider}
	}
	x := a.exchange(ctx, m, req)
	x.limited = true
	x.thinking, x.thinkingErr = askThinking(m, a.vertex, req.Reasoning, req.ThinkingBudgets)
	return x.stream(), nil
}

// StreamWith is Stream with the options of this wire format. It sends MaxTokens
// as it is, and none when it is 0. A missing key arrives as the stream's last
// event.
func (a *API) StreamWith(ctx context.Context, m *llm.Model, req *llm.Request, o Options) *llm.Stream {
	x := a.exchange(ctx, m, req)
	x.own = o
	if o.Thinking != nil {
		x.thinking, x.thinkingErr = tellThinking(m, o.Thinking)
	}
	return x.stream()
}

func (a *API) exchange(ctx context.Context, m *llm.Model, req *llm.Request) *exchange {
	return &exchange{api: a, ctx: ctx, model: m, rules: RulesOf(m.ID), req: req}
}

func (x *exchange) stream() *llm.Stream {
	return llm.NewStream(wire.NewSource(x.ctx, x.api.host, x.api.ID(), x.model, &x.req.Options, x))
}
