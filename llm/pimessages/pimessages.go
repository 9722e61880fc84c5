package pimessages

import (
	"context"
	"net/http"
	"time"

	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

// ID is the name of the wire format.
const ID = "pi-messages"

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
	// Debug asks the backend to log more about the request.
	Debug bool
}

// Stream implements llm.API. Its error is always nil: a missing key arrives as
// the stream's last event, a *KeyError in words.
func (a *API) Stream(ctx context.Context, m *llm.Model, req *llm.Request) (*llm.Stream, error) {
	return a.StreamWith(ctx, m, req, Options{}), nil
}

// StreamWith is Stream with the options of this wire format.
func (a *API) StreamWith(ctx context.Context, m *llm.Model, req *llm.Request, o Options) *llm.Stream {
	x := &exchange{host: a.host, model: m, req: req, own: o}
	x.source = wire.NewSource(ctx, a.host, ID, m, &req.Options, x)
	return llm.NewStream(x.source)
}

// KeyError says that a request has no key.
type KeyError struct{ Provider string }

func (e *KeyError) Error() string {
	return `No API key provided for provider "` + e.Provider + `"`
}
