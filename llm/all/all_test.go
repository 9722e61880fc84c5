package all_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/all"
	"github.com/pinch-agent/pinch/llm/catalog"
)

// names are the wire formats that models.json and the catalogue may name.
var names = []string{
	"anthropic-messages", "azure-openai-responses", "bedrock-converse-stream", "google-generative-ai", "google-vertex",
	"mistral-conversations", "openai-codex-responses", "openai-completions", "openai-responses", "pi-messages",
}

func TestEveryFormatIsServedOnce(t *testing.T) {
	ids := llm.NewRegistry(all.Formats(all.Config{})...).IDs()
	slices.Sort(ids)
	if !slices.Equal(ids, names) {
		t.Errorf("got %q, want %q", ids, names)
	}
}

// Every model of the built-in catalogue has its format.
func TestCatalogueIsServed(t *testing.T) {
	registry := llm.NewRegistry(all.Formats(all.Config{})...)
	models := catalog.New(catalog.Options{}).Models()
	if len(models) < 100 {
		t.Fatalf("the catalogue has %d models", len(models))
	}
	missing := map[string]string{}
	for _, m := range models {
		if _, err := registry.API(m.API); err != nil {
			missing[m.API] = m.Ref()
		}
	}
	if len(missing) > 0 {
		t.Errorf("formats without a package, with a model of theirs: %v", missing)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// What a program hands in reaches every format: its client, its version, its
// environment and its clock.
func TestConfigReachesEveryFormat(t *testing.T) {
	var agent string
	at := time.UnixMilli(1_700_000_000_000)
	formats := all.Formats(all.Config{
		Client: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			agent = r.Header.Get("User-Agent")
			return nil, errors.New("nobody is there")
		})},
		Version: "7.7.7",
		Getenv: func(name string) string {
			return map[string]string{"AWS_REGION": "eu-west-1", "GATE": "in-between"}[name]
		},
		Now: func() time.Time { return at },
	})
	for _, api := range formats {
		agent = ""
		m := &llm.Model{
			ID: "m-1", API: api.ID(), Provider: "p", BaseURL: "http://service.test/{GATE}", Input: []string{"text"}, ContextWindow: 8000, MaxTokens: 100,
		}
		key := "key"
		if api.ID() == "openai-codex-responses" {
			// {"https://api.openai.com/auth":{"chatgpt_account_id":"acc"}}
			key = "e30.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9hY2NvdW50X2lkIjoiYWNjIn19.c2ln"
		}
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
		s, err := api.Stream(ctx, m, &llm.Request{
			Messages: []llm.Message{llm.UserText("hi", 0)},
			Options:  llm.Options{APIKey: key, SamplingParams: jsontext.Value(`{}`)},
		})
		if err != nil {
			t.Fatalf("%s: %v", api.ID(), err)
		}
		msg := s.Result()
		cancel()
		if msg.StopReason != llm.StopError || !strings.Contains(msg.ErrorMessage, "nobody is there") || msg.Timestamp != at.UnixMilli() {
			t.Errorf("%s: %s", api.ID(), msg.AppendJSON(nil))
		}
		if !strings.Contains(agent, "pinch/7.7.7") {
			t.Errorf("%s: user agent %q", api.ID(), agent)
		}
	}
}
