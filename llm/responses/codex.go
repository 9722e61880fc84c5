package responses

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/transcript"
)

// CodexID is the name of the wire format of ChatGPT's plans.
const CodexID = "openai-codex-responses"

// codexBase is the address of models that name none.
const codexBase = "https://chatgpt.com/backend-api"

// Codex is the wire format openai-codex-responses: the protocol as ChatGPT
// serves it to those who signed in with a plan. It is safe for concurrent use.
//
// The key of a request is the access token of the plan, which names the account
// that pays; with another key the stream ends in an *AccountError's text. Bodies
// are compressed. Answers come as server-sent events whatever transport a peer's
// settings name: its WebSockets save the upload of a long conversation and
// change nothing else. Requests say that pinch sends them.
//
// Attempts that fail are repeated by rules of this service: while it is in
// passing trouble, or cannot be reached, after the delay that it asks for, else
// a second, doubled each time, at most a minute. A plan that is used up is not
// asked again, and the error says when it can be.
type Codex struct {
	service *service
	packer  *packer
}

// CodexOptions are what a request to ChatGPT can say beyond llm.Options, whose
// SamplingParams the service does not take.
type CodexOptions struct {
	Options
	TextVerbosity string // low, medium or high; "" for low
}

// NewCodex makes the wire format openai-codex-responses.
func NewCodex(c Config) *Codex {
	p := &packer{}
	return &Codex{newService(c, codex(p, CodexOptions{})), p}
}

// ID implements llm.API.
func (a *Codex) ID() string { return CodexID }

// Stream implements llm.API, like API.Stream. Its error is a *llm.KeyError:
// there is no key.
func (a *Codex) Stream(ctx context.Context, m *llm.Model, req *llm.Request) (*llm.Stream, error) {
	if req.APIKey == "" {
		return nil, &llm.KeyError{Provider: m.Provider}
	}
	x := a.service.exchange(m, req)
	x.simple()
	return x.stream(ctx), nil
}

// StreamWith is Stream with the options of this wire format, like
// API.StreamWith.
func (a *Codex) StreamWith(ctx context.Context, m *llm.Model, req *llm.Request, o CodexOptions) *llm.Stream {
	x := a.service.exchange(m, req)
	x.dialect = codex(a.packer, o)
	x.with(o.Options)
	return x.stream(ctx)
}

// codex is the dialect of requests with these options.
func codex(p *packer, o CodexOptions) *dialect {
	d := openAI()
	d.id = CodexID
	d.strict, d.notStrict = true, "null"
	d.noSampling, d.offIsEffort = true, true
	d.prepare = func(x *exchange) error {
		if x.req.APIKey == "" {
			return &llm.KeyError{Provider: x.model.Provider}
		}
		if _, err := accountOf(x.req.APIKey); err != nil {
			return err
		}
		base, err := x.host.BaseURL(x.model, &x.req.Options)
		x.url = codexURL(base)
		return err
	}
	d.members = func(x *exchange, w *wire.Body, c *conversation) { codexMembers(x, w, c, o.TextVerbosity) }
	d.call = func(x *exchange, body []byte) (*wire.Call, error) { return codexCall(x, p, body) }
	d.errorEvent = codexEventError
	d.failed = codexFailed
	d.done, d.endTurn, d.anyStatus = true, true, true
	return d
}

// codexURL is the address of the operation behind a base URL, which may be
// that of the operation already.
func codexURL(base string) string {
	base = strings.TrimRight(base, "/")
	switch {
	case base == "":
		base = codexBase + "/codex"
	case strings.HasSuffix(base, "/codex/responses"):
		return base
	case !strings.HasSuffix(base, "/codex"):
		base += "/codex"
	}
	return base + "/responses"
}

// codexMembers is the body in the order of the service.
func codexMembers(x *exchange, w *wire.Body, c *conversation, verbosity string) {
	w.Text("model", x.name)
	w.Bool("store", false)
	w.Bool("stream", true)
	c.input(w)
	if verbosity == "" {
		verbosity = "low"
	}
	w.JSON("text", string(jsonwire.AppendString([]byte(`{"verbosity":`), verbosity))+"}")
	w.JSON("include", encryptedReasoning)
	c.cacheKey(w)
	if len(x.own.ToolChoice) == 0 && x.req.ToolChoice == "" {
		w.Text("tool_choice", "auto")
	} else {
		c.toolChoice(w)
	}
	w.Bool("parallel_tool_calls", true)
	c.maxOutputTokens(w)
	c.temperature(w)
	c.serviceTier(w)
	c.tools(w)
	codexReasoning(x, w)
}

// codexReasoning appends what is asked about reasoning.
func codexReasoning(x *exchange, w *wire.Body) {
	word, ok := x.effortWord()
	switch {
	case !x.reasons(), !ok:
	case x.effortUpdates():
		x.appendReasoning(w, fixedEffort)
	case x.limited, x.thinks():
		x.appendReasoning(w, word)
	default:
		appendEffort(w, word)
	}
}

func codexCall(x *exchange, p *packer, body []byte) (*wire.Call, error) {
	o := &x.req.Options
	account, err := accountOf(o.APIKey)
	if err != nil {
		return nil, err
	}
	packed, err := p.pack(body)
	if err != nil {
		return nil, fmt.Errorf("the request cannot be compressed: %w", err)
	}
	header := x.host.Header(x.model, o)
	header.Set("Originator", "pinch")
	wire.Override(header, x.model, o)
	// What follows is the protocol's and the sign-in's: nobody has another.
	header.Set("Accept", "text/event-stream")
	header.Set("Content-Type", "application/json")
	header.Set("Authorization", "Bearer "+o.APIKey)
	header.Set("Chatgpt-Account-Id", account)
	header.Set("Openai-Beta", "responses=experimental")
	if x.session != "" {
		key := transcript.PromptCacheKey(x.session)
		header.Set("Session-Id", key)
		header.Set("X-Client-Request-Id", key)
	}
	header.Set("Content-Encoding", "zstd")
	return &wire.Call{
		URL: x.url, Header: header, Body: packed,
		AllResponses: true,
		ErrorText:    func(e *wire.StatusError) string { return codexStatusText(e, x.host.Now()) },
		Retry: func(err error, attempt int) (d time.Duration, asked, again bool) {
			return codexRetry(err, attempt, x.host.Now())
		},
	}, nil
}
