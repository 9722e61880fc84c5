// Package anthropic speaks the Messages protocol of Anthropic, wire format
// "anthropic-messages", which many other vendors and gateways offer too.
//
//	api := anthropic.New(anthropic.Config{Version: "1.2.3"})
//	stream, err := api.Stream(ctx, model, &llm.Request{
//		Messages: llm.Fold("You are terse.", tools, history),
//		Options:  llm.Options{APIKey: key, Reasoning: llm.LevelHigh},
//	})
//	if err != nil { … } // no credentials
//	for ev := range stream.Events() { … }
//
// Stream takes the options that every wire format understands; StreamWith adds
// those that only this one has. What a vendor supports beyond the protocol's
// common ground is read from Model.Compat, see Compat.
//
// # Sign in
//
// A key goes in x-api-key, an OAuth access token (sk-ant-oat…) and a GitHub
// Copilot token as a bearer token; with header fields for authorization in the
// request or the model no key is needed. Without any of these a model of
// Anthropic's own is reached with the identity of the workload, which the
// variables ANTHROPIC_FEDERATION_RULE_ID, ANTHROPIC_ORGANIZATION_ID and
// ANTHROPIC_IDENTITY_TOKEN_FILE (or ANTHROPIC_IDENTITY_TOKEN) name, and
// ANTHROPIC_SERVICE_ACCOUNT_ID and ANTHROPIC_WORKSPACE_ID narrow: it is exchanged
// for an access token of some minutes, which is kept and renewed. Requests always
// say that pinch sends them.
//
// # Prompt caching
//
// Unless Options.CacheRetention is none, the system prompt, the last tool and
// the last block of the last message carry a cache marker, so that each turn
// reads what the one before wrote. With Options.Memo a turn encodes only what
// the conversation did not have before; the rest of the body is copied.
package anthropic

import (
	"context"
	"hash/maphash"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

// ID is the name of the wire format.
const ID = "anthropic-messages"

const (
	defaultBaseURL = "https://api.anthropic.com"
	protocol       = "2023-06-01"
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
}

// API is the wire format. It is safe for concurrent use.
type API struct {
	host    *wire.Host
	loose   wire.Sessions // whose preferred strict tools are sent without
	threads threads

	federation *federation
}

// New makes the wire format.
func New(c Config) *API {
	return &API{federation: newFederation(), host: wire.Host{
		Client: c.Client, Version: c.Version, Getenv: c.Getenv, Now: c.Now, Wait: c.Wait, Random: c.Random,
	}.Default()}
}

// ID implements llm.API.
func (a *API) ID() string { return ID }

// Options are what a request can say beyond llm.Options. StreamWith sends
// Options.MaxTokens, or the model's limit, as it is, and leaves thinking to
// these fields rather than to Options.Reasoning.
type Options struct {
	// ThinkingEnabled switches thinking on or off; nil says nothing.
	ThinkingEnabled *bool
	// ThinkingBudgetTokens bounds thinking on models with a budget; 0 for 1024.
	ThinkingBudgetTokens int
	// ThinkingDisplay is how thinking is shown: summarized, omitted; "" for
	// summarized. Other words are passed on.
	ThinkingDisplay string
	// InterleavedThinking allows thinking between tool calls; nil for true.
	InterleavedThinking *bool
	// Effort is the effort of models that choose their budget themselves, such
	// as low, medium, high; "" for that of the service.
	Effort string
	// ToolChoice is "auto", "any" or "none" as a JSON string, or an object in
	// the form of the protocol; nil for llm.Options.ToolChoice.
	ToolChoice jsontext.Value
}

// Stream implements llm.API. Its error is a *llm.KeyError.
func (a *API) Stream(ctx context.Context, m *llm.Model, req *llm.Request) (*llm.Stream, error) {
	if _, ok := a.workload(m, &req.Options); !ok && req.APIKey == "" && !hasAuthHeader(m, &req.Options) {
		return nil, &llm.KeyError{Provider: m.Provider}
	}
	return a.stream(ctx, m, req, nil), nil
}

// StreamWith is Stream with the options of this wire format. Missing
// credentials arrive as the stream's last event.
func (a *API) StreamWith(ctx context.Context, m *llm.Model, req *llm.Request, o Options) *llm.Stream {
	return a.stream(ctx, m, req, &o)
}

func (a *API) stream(ctx context.Context, m *llm.Model, req *llm.Request, o *Options) *llm.Stream {
	x := &exchange{ctx: ctx, api: a, model: m, req: req, own: o, compat: readCompat(m)}
	x.source = wire.NewSource(ctx, a.host, ID, m, &req.Options, x)
	return llm.NewStream(x.source)
}

// exchange is one request and its answer; it implements wire.Exchange.
type exchange struct {
	ctx    context.Context
	api    *API
	model  *llm.Model
	req    *llm.Request
	own    *Options // nil for the neutral options
	compat Compat
	source *wire.Source

	loose      bool     // send preferred strict tools without
	strictSent bool     // the last body had a preferred strict tool
	toolless   bool     // the last body declared no tools
	standIns   bool     // declare those that the history calls
	toolNames  []string // as declared, to map names back
	thinking   thinking
	thread     thread
	hash       *maphash.Hash // of messages in threads, nil until it is needed

	workload identity // whose access token key is
	key      string   // of the request, or an access token
	renewed  bool     // the access token was refused and another one asked for

	decoder
}

// Request implements wire.Exchange.
func (x *exchange) Request() (*wire.Call, error) {
	m, o := x.model, &x.req.Options
	base, err := x.api.host.BaseURL(m, o)
	if err != nil {
		return nil, err
	}
	if base == "" {
		base = defaultBaseURL
	}
	if err := x.authorize(base); err != nil {
		return nil, err
	}
	x.loose = x.loose || x.api.loose.Has(o.SessionID)
	body, betas, err := x.body()
	if err != nil {
		return nil, err
	}
	sent, replaced, err := wire.Payload(body, m, o)
	if err != nil {
		return nil, err
	}
	if replaced {
		sent = streamed(sent)
		x.thread.custom = true // what the server has is not what is known here
	}
	return &wire.Call{URL: wire.Join(base, "/v1/messages?beta=true"), Header: x.header(betas), Body: sent}, nil
}

// authorize finds the key of the request.
func (x *exchange) authorize(base string) (err error) {
	m, o := x.model, &x.req.Options
	if x.key = o.APIKey; x.key != "" || hasAuthHeader(m, o) {
		return nil
	}
	id, ok := x.api.workload(m, o)
	if !ok {
		return &llm.KeyError{Provider: m.Provider}
	}
	id.url = wire.Join(base, "/v1/oauth/token")
	x.workload = id
	x.key, err = x.api.federation.token(x.ctx, x.api.host, o, id)
	return err
}

// Rejected implements wire.Exchange: whether a server knows threads, what its
// limits on strict tools are and whether it takes calls in the history of a request
// without tools is found out by asking.
func (x *exchange) Rejected(err *wire.StatusError) bool {
	if x.threadRejected(err) {
		return true
	}
	if err.Status == http.StatusUnauthorized && x.workload != (identity{}) && !x.renewed {
		x.renewed = true
		x.api.federation.forget(x.workload, x.key)
		return true
	}
	if x.toolless && !x.standIns && wire.WantsTools(err) {
		x.standIns = true
		return true
	}
	if !x.strictSent || x.loose || !exceedsStrictLimits(err) {
		return false
	}
	x.loose = true
	x.api.loose.Add(x.req.SessionID)
	x.diagnose("anthropic_strict_tools_fallback", err, `{"reason":"strict_tool_limits_exceeded"}`)
	return true
}

func (x *exchange) diagnose(typ string, err error, details string) {
	d := llm.Diagnostic{Type: typ, Timestamp: x.api.host.Now().UnixMilli(), Details: jsontext.Value(details)}
	if err != nil {
		d.Error = &llm.DiagnosticError{Message: err.Error()}
	}
	out := x.source.Message()
	out.Diagnostics = append(out.Diagnostics, d)
}
