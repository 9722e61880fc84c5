package all

import (
	"context"
	"net/http"
	"time"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/anthropic"
	"github.com/pinch-agent/pinch/llm/bedrock"
	"github.com/pinch-agent/pinch/llm/completions"
	"github.com/pinch-agent/pinch/llm/google"
	"github.com/pinch-agent/pinch/llm/mistral"
	"github.com/pinch-agent/pinch/llm/pimessages"
	"github.com/pinch-agent/pinch/llm/responses"
)

// Config is what the wire formats get from their program. The zero value works.
type Config struct {
	Client  *http.Client        // nil for one of each format's own
	Version string              // of the program, for the User-Agent
	Getenv  func(string) string // process environment; nil for os.Getenv
	Now     func() time.Time    // nil for time.Now

	// Wait waits between attempts; nil for a timer. Random gives the jitter of
	// the delays, in [0, 1); nil for a random one.
	Wait   func(ctx context.Context, d time.Duration) error
	Random func() float64
}

// Formats makes every wire format. They start nothing and open no connection
// before their first request.
func Formats(c Config) []llm.API {
	g := google.Config{Client: c.Client, Version: c.Version, Getenv: c.Getenv, Now: c.Now, Wait: c.Wait, Random: c.Random}
	return []llm.API{
		anthropic.New(anthropic.Config(c)),
		completions.New(completions.Config(c)),
		responses.New(responses.Config(c)),
		responses.NewAzure(responses.Config(c)),
		responses.NewCodex(responses.Config(c)),
		google.New(g),
		google.NewVertex(g),
		bedrock.New(bedrock.Config(c)),
		mistral.New(mistral.Config{Client: c.Client, Version: c.Version, Getenv: c.Getenv, Now: c.Now}),
		pimessages.New(pimessages.Config{Client: c.Client, Version: c.Version, Getenv: c.Getenv, Now: c.Now}),
	}
}
