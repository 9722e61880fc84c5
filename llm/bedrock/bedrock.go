package bedrock

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

// ID is the name of the wire format.
const ID = "bedrock-converse-stream"

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
	host   *wire.Host
	http1  func() *http.Client // a client that keeps to HTTP/1.1
	loose  wire.Sessions       // whose preferred strict tools are sent without
	chain  credentialCache
	signer *v4.Signer
	// skew is what the service's clock is ahead of ours, in nanoseconds.
	skew atomic.Int64
}

// New makes the wire format.
func New(c Config) *API {
	a := &API{host: wire.Host{
		Client: c.Client, Version: c.Version, Getenv: c.Getenv, Now: c.Now, Wait: c.Wait, Random: c.Random,
	}.Default()}
	a.signer = v4.NewSigner()
	a.http1 = sync.OnceValue(func() *http.Client { return wire.HTTP1(a.host.Client) })
	return a
}

// ID implements llm.API.
func (a *API) ID() string { return ID }

// EndSession forgets what was learned about the session called id: that the
// service refuses its strict tools.
func (a *API) EndSession(id string) { a.loose.Remove(id) }

// Options are what a request can say beyond llm.Options. StreamWith sends
// Options.MaxTokens as it is, and none when it is 0, except to Claude, which
// needs a limit and gets the model's.
type Options struct {
	// Region is the AWS region; "" for that of the environment.
	Region string
	// Profile names a profile of the AWS configuration; "" for AWS_PROFILE.
	Profile string
	// BearerToken is a Bedrock API key; "" for llm.Options.APIKey.
	BearerToken string
	// ToolChoice is "auto", "any" or "none" as a JSON string, or
	// {"type":"tool","name":…}; nil for llm.Options.ToolChoice.
	ToolChoice jsontext.Value
	// InterleavedThinking allows thinking between tool calls on Claude models
	// with a thinking budget; nil for true.
	InterleavedThinking *bool
	// ThinkingDisplay is how Claude's thinking is shown: summarized, omitted;
	// "" for summarized. GovCloud does not know it.
	ThinkingDisplay string
	// RequestMetadata is an object of strings that the service's logs of model
	// invocations show; nil for none.
	RequestMetadata jsontext.Value
}

// Stream implements llm.API. It has no error of its own: missing credentials
// are found out when the stream is read, and are its last event.
func (a *API) Stream(ctx context.Context, m *llm.Model, req *llm.Request) (*llm.Stream, error) {
	return a.stream(ctx, m, req, Options{}, true), nil
}

// StreamWith is Stream with the options of this wire format.
func (a *API) StreamWith(ctx context.Context, m *llm.Model, req *llm.Request, o Options) *llm.Stream {
	return a.stream(ctx, m, req, o, false)
}

func (a *API) stream(ctx context.Context, m *llm.Model, req *llm.Request, o Options, neutral bool) *llm.Stream {
	x := &exchange{api: a, model: m, messages: req.Messages, opts: req.Options, own: o, neutral: neutral, kind: kindOf(m)}
	x.opts.MaxRetries = retries // by the rule of exchange.retry
	if x.env("AWS_BEDROCK_FORCE_HTTP1") == "1" && x.opts.Client == nil {
		x.opts.Client = a.http1()
	}
	x.source = wire.NewSource(ctx, a.host, ID, m, &x.opts, x)
	return llm.NewStream(x.source)
}
