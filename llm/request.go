package llm

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Request is one question to a model: a transcript and the options that every
// wire format understands.
type Request struct {
	// Messages is the transcript. The system prompt and the tools are in its
	// system messages; Fold makes one of a prompt, tools and a history.
	Messages []Message
	Options
}

// Options are the provider-neutral options of a request. The zero value works.
type Options struct {
	APIKey  string
	Headers map[string]*string // added to the request; nil suppresses a default header
	Env     map[string]string  // provider-scoped environment; wins over the process environment
	Client  *http.Client       // nil for the wire format's own

	Temperature     *float64
	MaxTokens       int // 0 for the model's own limit
	SamplingParams  jsontext.Value
	Metadata        jsontext.Value
	Reasoning       ThinkingLevel // "" or LevelOff for no thinking
	ThinkingBudgets map[ThinkingLevel]int
	ToolChoice      string // auto, none or "" for the default

	CacheRetention      string // none, short, long; "" for PI_CACHE_RETENTION or short
	SessionID           string // cache key and routing affinity
	DisableContinuation bool

	Timeout       time.Duration // bound on the wait for response headers; 0 for 10 minutes, negative for none
	IdleTimeout   time.Duration // bound on silence in a response, counted in data; 0 for 5 minutes, negative for none
	MaxRetries    int           // of the HTTP request, before the response begins
	MaxRetryDelay time.Duration // longest delay that a server may ask for; 0 for a minute, negative for no bound

	// OnPayload sees the request body just before it is sent and may replace
	// it; nil keeps it.
	OnPayload func(payload jsontext.Value, m *Model) (jsontext.Value, error)
	// OnResponse sees status and headers before the body is read.
	OnResponse func(status int, header http.Header, m *Model) error
	// OnProviderEvent sees each event of the provider before it is interpreted.
	// The value is valid only during the call.
	OnProviderEvent func(event jsontext.Value, m *Model) error

	Identity Identity

	// Memo keeps what a wire format made of the messages of one conversation,
	// so that a turn encodes only what is new. Nil works and encodes all.
	Memo *Memo
}

// Identity is how requests name their sender.
type Identity struct {
	UserAgent   string // "" for pinch/<version> (<os>; go; <arch>)
	Attribution *Attribution
}

// Attribution names the product to gateways that list their traffic by product.
type Attribution struct {
	Name       string
	URL        string
	Categories []string
}

// Memo is the memory of one conversation that wire formats keep their encoded
// messages in. It is safe for concurrent use; the zero value is ready.
type Memo struct {
	mu   sync.Mutex
	vals map[any]any
}

// Load returns the value kept under key, made by make at first. A nil Memo
// keeps nothing and makes a new value each time.
func (m *Memo) Load(key any, make func() any) any {
	if m == nil {
		return make()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.vals[key]
	if !ok {
		v = make()
		if m.vals == nil {
			m.vals = map[any]any{}
		}
		m.vals[key] = v
	}
	return v
}

// API is a wire format: it turns a request into the bytes of one vendor's
// protocol and the answer into events.
type API interface {
	// ID names the format, such as anthropic-messages; Model.API refers to it.
	ID() string
	// Stream starts a request. It returns at once; the request is sent when
	// the stream is first read. An error means that no request can be made
	// (a *KeyError); everything later arrives as the stream's last event.
	Stream(ctx context.Context, m *Model, req *Request) (*Stream, error)
}

// KeyError says that a request has no credentials.
type KeyError struct{ Provider string }

func (e *KeyError) Error() string { return "No API key for provider: " + e.Provider }

// Registry holds the wire formats that a program uses.
type Registry struct{ apis []API }

// NewRegistry makes a Registry of the given wire formats.
func NewRegistry(apis ...API) *Registry { return &Registry{apis: slices.Clone(apis)} }

// Register adds a wire format; a later one of the same name replaces the earlier.
func (r *Registry) Register(api API) {
	for i, a := range r.apis {
		if a.ID() == api.ID() {
			r.apis[i] = api
			return
		}
	}
	r.apis = append(r.apis, api)
}

// API returns the wire format called id.
func (r *Registry) API(id string) (API, error) {
	for _, a := range r.apis {
		if a.ID() == id {
			return a, nil
		}
	}
	return nil, &UnknownAPIError{API: id}
}

// IDs lists the registered wire formats.
func (r *Registry) IDs() []string {
	ids := make([]string, len(r.apis))
	for i, a := range r.apis {
		ids[i] = a.ID()
	}
	return ids
}

// Stream sends req to the model's wire format.
func (r *Registry) Stream(ctx context.Context, m *Model, req *Request) (*Stream, error) {
	api, err := r.API(m.API)
	if err != nil {
		return nil, err
	}
	return api.Stream(ctx, m, req)
}

// UnknownAPIError says that no wire format of that name is registered.
type UnknownAPIError struct{ API string }

func (e *UnknownAPIError) Error() string {
	return fmt.Sprintf("No API provider registered for api: %s", e.API)
}

// Fold makes a transcript of a system prompt, tools and a history: a leading
// system message with timestamp 0 when there is a prompt or a tool.
func Fold(systemPrompt string, tools []Tool, messages []Message) []Message {
	if systemPrompt == "" && len(tools) == 0 {
		return messages
	}
	out := make([]Message, 0, len(messages)+1)
	out = append(out, &System{Content: Plain(systemPrompt), ToolsAdded: tools})
	return append(out, messages...)
}
