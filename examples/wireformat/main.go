// Command wireformat speaks to a model in a protocol of its own. A wire format is
// an llm.API: it turns a request into bytes, and the bytes that come back into
// events. Everything above it, such as sessions and retries, stays the same.
//
//	go run ./examples/wireformat
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/transcript"
)

// lines is a protocol of lines. A request says who said what, "user: …", one
// message a line; an answer has lines "say …", and "end" as the last.
type lines struct{}

func (lines) ID() string { return "acme-lines" }

func (l lines) Stream(ctx context.Context, m *llm.Model, req *llm.Request) (*llm.Stream, error) {
	if req.APIKey == "" {
		return nil, &llm.KeyError{Provider: m.Provider} // nothing can be asked
	}
	return llm.StreamOf(func(yield func(llm.Event) bool) { // begins when somebody reads
		answer := &llm.Assistant{
			API: m.API, Provider: m.Provider, Model: m.ID, Timestamp: time.Now().UnixMilli(),
			StopReason: llm.StopPending,
		}
		last := llm.EventDone
		if err := l.exchange(ctx, m, req, answer, yield); err == nil {
			answer.StopReason = llm.StopStop
		} else {
			last, answer.StopReason, answer.ErrorMessage = llm.EventError, llm.StopError, err.Error()
			if ctx.Err() != nil {
				answer.StopReason = llm.StopAborted
			}
		}
		yield(llm.Event{Type: last, Message: answer})
	}), nil
}

// exchange sends the request and yields the answer as it comes in.
func (lines) exchange(ctx context.Context, m *llm.Model, req *llm.Request, answer *llm.Assistant, yield func(llm.Event) bool) error {
	var body strings.Builder
	for _, msg := range transcript.Build(req.Messages, &transcript.Rules{Model: m}) { // whatever history there is
		if said, ok := msg.(interface{ Text() string }); ok {
			fmt.Fprintf(&body, "%s: %s\n", msg.Role(), strings.ReplaceAll(said.Text(), "\n", " "))
		}
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, m.BaseURL, strings.NewReader(body.String()))
	if err != nil {
		return err
	}
	post.Header.Set("Authorization", "Bearer "+req.APIKey)
	resp, err := http.DefaultClient.Do(post)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status) // "503 Service Unavailable" will be tried again
	}
	text := &llm.Text{}
	answer.Content = []llm.Block{text}
	yield(llm.Event{Type: llm.EventStart, Partial: answer})
	yield(llm.Event{Type: llm.EventTextStart, Partial: answer})
	for in := bufio.NewScanner(resp.Body); in.Scan(); {
		switch word, rest, _ := strings.Cut(in.Text(), " "); word {
		case "say":
			text.Text += rest
			if !yield(llm.Event{Type: llm.EventTextDelta, Delta: rest, Partial: answer}) {
				return errors.New("nobody reads any more")
			}
		case "end":
			yield(llm.Event{Type: llm.EventTextEnd, Partial: answer})
			return nil
		}
	}
	return errors.New("the connection broke off in the middle of the answer")
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	server := httptest.NewServer(acme())
	defer server.Close()
	registry := llm.NewRegistry(lines{}) // and any others: a model says which it wants
	h, err := harness.New(harness.Options{
		Model:   &llm.Model{ID: "acme-1", API: "acme-lines", Provider: "acme", BaseURL: server.URL, ContextWindow: 8_000, MaxTokens: 1_000},
		Stream:  registry.Stream,
		Request: llm.Options{APIKey: "secret"},
		Retry:   harness.Retry{BaseDelay: time.Millisecond},
	})
	if err != nil {
		return err
	}
	defer h.Close()
	h.Subscribe(func(_ context.Context, ev harness.Event) error {
		if ev.Type == harness.AutoRetryStart {
			fmt.Println("again, after:", ev.ErrorMessage)
		}
		return nil
	})
	for _, question := range []string{"Is anybody there?", "And now?"} {
		answer, err := h.Prompt(ctx, question)
		if err == nil {
			err = answer.Err()
		}
		if err != nil {
			return err
		}
		fmt.Println(answer.Text())
	}
	return nil
}

// acme is the service: it is overloaded at first, and says how much it was told.
func acme() http.Handler {
	requests := 0
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests++; requests == 1 {
			http.Error(w, "", http.StatusServiceUnavailable)
			return
		}
		told := 0
		for in := bufio.NewScanner(r.Body); in.Scan(); {
			told++
		}
		fmt.Fprintf(w, "say I was told\nsay  %d messages.\nend\n", told)
	})
}
