package cli

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/internal/cli/print"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/catalog"
)

const (
	onlinePatience = time.Minute // for the answer of one provider
	onlineAtOnce   = 4
	onlineQuestion = "Answer with the word ok and nothing else."
)

// online asks one model of every provider that is set up.
func (d *doctor) online(ctx context.Context, w *workspace) {
	c, registry := d.p.startCatalog(d.p.openCredentials())
	request, err := requestOptions(w.settings)
	if err != nil {
		return // said with the settings
	}
	models := oneOfEach(c, w.settings.DefaultProvider(), w.settings.DefaultModel())
	if len(models) == 0 {
		return // said with the keys
	}
	answers := make([]error, len(models))
	took := make([]time.Duration, len(models))
	var wg sync.WaitGroup
	slots := make(chan struct{}, onlineAtOnce)
	for i, m := range models {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			began := time.Now()
			answers[i] = ask(ctx, c, registry, m, request)
			took[i] = time.Since(began)
		})
	}
	wg.Wait()
	for i, m := range models {
		if err := answers[i]; err != nil {
			d.fail("", "%s: %s", m.Ref(), strings.TrimPrefix(err.Error(), "Error: "))
		} else {
			d.ok("%s answers after %.1f s", m.Ref(), took[i].Seconds())
		}
	}
}

// oneOfEach is a model of every provider that is set up: the default one where
// there is one.
func oneOfEach(c *catalog.Catalog, provider, model string) []*llm.Model {
	best := map[string]*llm.Model{}
	var order []string
	for _, m := range c.Available() {
		if best[m.Provider] == nil {
			best[m.Provider] = m
			order = append(order, m.Provider)
		}
		p, _ := c.Provider(m.Provider)
		if m.ID == p.DefaultModel && best[m.Provider].ID != model || m.Provider == provider && m.ID == model {
			best[m.Provider] = m
		}
	}
	var out []*llm.Model
	for _, id := range order {
		out = append(out, best[id])
	}
	return out
}

// ask asks a model for a word. The error is a sentence for people.
func ask(ctx context.Context, c *catalog.Catalog, registry *llm.Registry, m *llm.Model, request llm.Options) error {
	ctx, cancel := context.WithTimeout(ctx, onlinePatience)
	defer cancel()
	r := &running{catalog: c, warn: func(string, ...any) {}}
	h, err := harness.New(harness.Options{
		Model: m, Stream: registry.Stream, Credentials: r.credentials, Router: c.Router, Request: request,
		Retry: harness.Retry{Disabled: true},
	})
	if err != nil {
		return plain(err)
	}
	defer h.Close()
	answer, err := h.Prompt(ctx, onlineQuestion)
	switch {
	case ctx.Err() != nil:
		return errors.New("no answer within a minute")
	case answer != nil && answer.StopReason == llm.StopError:
		return errors.New(print.Explain(answer, m.ContextWindow, false))
	}
	return plain(err)
}
