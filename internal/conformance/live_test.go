package conformance

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pinch-agent/pinch/auth"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/all"
	"github.com/pinch-agent/pinch/llm/catalog"
)

// The real services, asked one short question each, by hand:
//
//	PINCH_LIVE_TEST=1 go test ./internal/conformance -run TestLive -count=1 -v
//
// Keys are those of the environment. Two things no variable of a vendor names:
// the access token of a ChatGPT plan, and the model of a gateway that lists none.
const (
	liveSwitch   = "PINCH_LIVE_TEST"
	liveToken    = "PINCH_LIVE_CODEX_TOKEN"
	liveModel    = "PINCH_LIVE_PI_MODEL"
	liveQuestion = "Say hello in one word."
	liveTokens   = 32
	liveTimeout  = 60 * time.Second
)

func TestLive(t *testing.T) {
	if os.Getenv(liveSwitch) == "" {
		t.Skipf("the real services are asked only with %s=1", liveSwitch)
	}
	l := live{env: os.Getenv}
	for _, f := range all.Formats(all.Config{}) {
		line, ok := l.ask(t.Context(), f.ID())
		fmt.Println(line)
		if !ok {
			t.Error(line)
		}
	}
}

// live asks services with the keys of an environment.
type live struct {
	env    func(string) string
	client *http.Client // nil for the formats' own
}

// target is who a format is tried on: the first provider that has credentials
// and a model of the format, its default model where it is of that format. Those
// whose first format it is come first, and of the first of them missing says
// which variables it wants.
func (l *live) target(c *catalog.Catalog, api string) (m *llm.Model, missing string) {
	providers := slices.DeleteFunc(slices.Clone(c.Providers()), func(p catalog.Provider) bool { return !slices.Contains(p.APIs, api) })
	slices.SortStableFunc(providers, func(a, b catalog.Provider) int { return slices.Index(a.APIs, api) - slices.Index(b.APIs, api) })
	for _, p := range providers {
		if missing == "" {
			missing = "no key (set " + variables(&p) + ")"
		}
		if !c.HasCredentials(p.ID) {
			continue
		}
		models := slices.DeleteFunc(slices.Clone(c.ModelsOf(p.ID)), func(m *llm.Model) bool { return m.API != api })
		if i := slices.IndexFunc(models, func(m *llm.Model) bool { return m.ID == p.DefaultModel }); i > 0 {
			models[0] = models[i]
		}
		switch {
		case len(models) > 0:
			return models[0], ""
		case l.env(liveModel) == "":
			missing = "no model (set " + liveModel + ")"
		default:
			return &llm.Model{ID: l.env(liveModel), API: api, Provider: p.ID, BaseURL: p.BaseURL, Input: []string{"text"}, ContextWindow: 128_000, MaxTokens: 16_384}, ""
		}
	}
	return nil, missing
}

// variables are the names that a provider's credentials go by.
func variables(p *catalog.Provider) string {
	names := slices.Clone(p.Env)
	if p.ID == "openai-codex" {
		names = append(names, liveToken)
	}
	for _, set := range p.Ambient {
		names = append(names, strings.Join(set, "+"))
	}
	return strings.Join(names, " or ")
}

// ask is the line about one format; ok is false when the service did not answer.
func (l *live) ask(ctx context.Context, api string) (line string, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	name := "live " + api + ": "
	c := catalog.New(catalog.Options{Env: auth.Env{Process: l.env}})
	if token := l.env(liveToken); token != "" {
		c.SetKey("openai-codex", auth.NewSecret(token))
	}
	m, missing := l.target(c, api)
	if m == nil {
		return name + "skipped, " + missing, true
	}
	if m.Provider == "azure" && l.env("AZURE_OPENAI_BASE_URL")+l.env("AZURE_OPENAI_RESOURCE_NAME") == "" {
		return name + "skipped, no endpoint (set AZURE_OPENAI_RESOURCE_NAME or AZURE_OPENAI_BASE_URL)", true
	}
	access, err := c.Auth(ctx, m)
	if err != nil {
		return name + "failed: " + err.Error(), false
	}
	at := *m
	at.BaseURL = access.BaseURL
	stream, err := llm.NewRegistry(all.Formats(all.Config{Version: "live-test", Getenv: l.env, Client: l.client})...).Stream(ctx, &at, &llm.Request{
		Messages: []llm.Message{llm.UserText(liveQuestion, time.Now().UnixMilli())},
		Options:  llm.Options{APIKey: access.Key.Reveal(), Headers: access.Headers, Env: access.Env, MaxTokens: liveTokens, CacheRetention: "none"},
	})
	if err != nil {
		return name + "failed: " + err.Error(), false
	}
	began := time.Now()
	answer := stream.Result()
	// Errors hold no keys; this is for a service that says one as its answer.
	clean := func(text string) string {
		if key := access.Key.Reveal(); key != "" {
			text = strings.ReplaceAll(text, key, "[redacted]")
		}
		return text
	}
	if answer.StopReason == llm.StopError || answer.StopReason == llm.StopAborted {
		return name + "failed: " + m.Ref() + ": " + clean(answer.ErrorMessage), false
	}
	return fmt.Sprintf("%sok %s (%s): %q, %d tokens in, %d out, %.1f s", name, m.Ref(), answer.StopReason, clean(llm.TextOf(answer.Content, "")),
		answer.Usage.Input+answer.Usage.CacheRead+answer.Usage.CacheWrite, answer.Usage.Output, time.Since(began).Seconds()), true
}

// liveReply is a client whose servers all say the same.
type liveReply struct {
	status int
	body   string
	asked  *[]string
}

func (r liveReply) RoundTrip(req *http.Request) (*http.Response, error) {
	*r.asked = append(*r.asked, req.URL.Host)
	return &http.Response{StatusCode: r.status, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(r.body)), Request: req}, nil
}

// TestLiveLines runs the lines of TestLive without a network.
func TestLiveLines(t *testing.T) {
	const key = "sk-0123456789-live"
	chat := scenarioCompletions()
	var answer strings.Builder
	for _, ev := range chat.events(chat, &scenarioAnswer{text: []string{"Hel", "lo ", key}, stop: llm.StopStop, usage: scenarioUsage{input: 9, output: 2}}) {
		answer.Write(chat.encode(ev))
	}
	for _, row := range []struct {
		api    string
		env    map[string]string
		status int
		body   string
		want   string
		host   string
	}{
		{"anthropic-messages", nil, 0, "", "skipped, no key (set ANTHROPIC_AUTH_TOKEN or ANTHROPIC_OAUTH_TOKEN or ANTHROPIC_API_KEY or ", ""},
		{"google-vertex", nil, 0, "", "skipped, no key (set GOOGLE_CLOUD_API_KEY or GOOGLE_CLOUD_PROJECT+GOOGLE_CLOUD_LOCATION", ""},
		{"bedrock-converse-stream", nil, 0, "", "skipped, no key (set AWS_BEARER_TOKEN_BEDROCK or AWS_PROFILE or ", ""},
		{"openai-completions", nil, 0, "", "skipped, no key (set OPENROUTER_API_KEY)", ""},
		{"openai-codex-responses", nil, 0, "", "skipped, no key (set PINCH_LIVE_CODEX_TOKEN)", ""},
		{"openai-codex-responses", map[string]string{liveToken: accountToken}, 401, `{"detail":"Unauthorized ` + accountToken + `"}`, "failed: openai-codex/", "chatgpt.com"},
		{"azure-openai-responses", map[string]string{"AZURE_OPENAI_API_KEY": key}, 0, "", "skipped, no endpoint", ""},
		{"azure-openai-responses", map[string]string{"AZURE_OPENAI_API_KEY": key, "AZURE_OPENAI_RESOURCE_NAME": "mine"}, 404, `{"error":{"message":"no ` + key + `"}}`, "failed: azure/", "mine.openai.azure.com"},
		{"pi-messages", map[string]string{"RADIUS_API_KEY": key}, 0, "", "skipped, no model (set PINCH_LIVE_PI_MODEL)", ""},
		{"pi-messages", map[string]string{"RADIUS_API_KEY": key, liveModel: "some/model"}, 401, `{"error":{"message":"bad ` + key + `"}}`, "failed: radius/some/model: 401 Unauthorized: bad [redacted]", "radius.pi.dev"},
		{"openai-completions", map[string]string{"OPENROUTER_API_KEY": key}, 200, answer.String(), `ok openrouter/`, "openrouter.ai"},
		{"openai-responses", map[string]string{"OPENAI_API_KEY": key}, 401, `{"error":{"message":"Incorrect API key provided: ` + key + `"}}`, "failed: openai/", "api.openai.com"},
	} {
		var asked []string
		l := live{env: func(name string) string { return row.env[name] }, client: &http.Client{Transport: liveReply{row.status, row.body, &asked}}}
		line, ok := l.ask(t.Context(), row.api)
		if !strings.HasPrefix(line, "live "+row.api+": "+row.want) || ok == strings.HasPrefix(row.want, "failed") || strings.ContainsRune(line, '\n') {
			t.Errorf("%s %v: %v, %s", row.api, row.env, ok, line)
		}
		if strings.Contains(line, key) || strings.Contains(line, accountToken) {
			t.Errorf("%s: the key is in %s", row.api, line)
		}
		if got := strings.Join(asked, " "); got != row.host {
			t.Errorf("%s: asked %q, want %q", row.api, got, row.host)
		}
	}
}
