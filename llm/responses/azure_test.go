package responses

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/wire/wiretest"
	"github.com/pinch-agent/pinch/llm"
)

func TestAzureRequest(t *testing.T) {
	const input = `"input":[{"role":"user","content":[{"type":"input_text","text":"hi"}]}],"stream":true,`
	own := AzureOptions{BaseURL: "https://own.test/", APIVersion: "v2", Deployment: "d", ResourceName: "r"}
	own.ReasoningEffort, own.ServiceTier, own.ToolChoice = "high", "flex", jsontext.Value(`"required"`)
	for name, c := range map[string]struct {
		options   *AzureOptions
		change    func(*llm.Model, *llm.Request)
		url, body string
	}{
		"by the environment": {
			change: func(m *llm.Model, r *llm.Request) {
				m.SamplingParams = jsontext.Value(`{"top_p":0.5}`)
				r.Env = map[string]string{"AZURE_OPENAI_RESOURCE_NAME": "res", "AZURE_OPENAI_API_VERSION": "preview", "AZURE_OPENAI_DEPLOYMENT_NAME_MAP": "m=dep"}
			},
			url:  "https://res.openai.azure.com/openai/v1/responses?api-version=preview",
			body: `{"model":"dep",` + input + `"store":false,"max_output_tokens":9000,"reasoning":{"effort":"none"},"top_p":0.5}`,
		},
		"by the model, with a session": {
			change: func(m *llm.Model, r *llm.Request) {
				m.BaseURL = "https://{RES}.openai.azure.com"
				r.Env = map[string]string{"RES": "x"}
				r.SessionID, r.CacheRetention, r.Temperature = "s", "none", new(0.5)
			},
			url:  "https://x.openai.azure.com/openai/v1/responses?api-version=v1",
			body: `{"model":"m",` + input + `"prompt_cache_key":"s","store":false,"max_output_tokens":9000,"temperature":0.5,"reasoning":{"effort":"none"}}`,
		},
		"by the request": {
			options: &own, change: func(_ *llm.Model, r *llm.Request) {
				r.Env = map[string]string{"AZURE_OPENAI_BASE_URL": "https://other.test"}
			},
			url: "https://own.test/responses?api-version=v2",
			body: `{"model":"d",` + input + `"store":false,"service_tier":"flex","tool_choice":"required","reasoning":{"effort":"high","summary":"auto"},` +
				`"include":["reasoning.encrypted_content"]}`,
		},
	} {
		var sent wiretest.Sent
		a := NewAzure(Config{Getenv: wiretest.NoEnv, Client: wiretest.Keep(&sent, `data: {"type":"response.completed","response":{"status":"completed"}}`)})
		m, req := azureModel(), &llm.Request{Messages: []llm.Message{llm.UserText("hi", 1)}, Options: llm.Options{APIKey: "key"}}
		c.change(m, req)
		var answer *llm.Assistant
		if c.options != nil {
			answer = a.StreamWith(t.Context(), m, req, *c.options).Result()
		} else if stream, err := a.Stream(t.Context(), m, req); err == nil {
			answer = stream.Result()
		}
		if answer == nil || answer.ErrorMessage != "" || answer.Model != "m" || answer.API != AzureID {
			t.Errorf("%s: %+v", name, answer)
			continue
		}
		if got := sent.URL; got != c.url {
			t.Errorf("%s: sent to %s, want %s", name, got, c.url)
		}
		if string(sent.Body) != c.body {
			t.Errorf("%s:\n got %s\nwant %s", name, sent.Body, c.body)
		}
		for header, want := range map[string]string{"Api-Key": "key", "Authorization": "", "Session-Id": "", "X-Client-Request-Id": ""} {
			if got := sent.Header.Get(header); got != want {
				t.Errorf("%s: %s is %q, want %q", name, header, got, want)
			}
		}
	}
}

func azureModel() *llm.Model {
	return &llm.Model{ID: "m", API: AzureID, Provider: "azure", Reasoning: true, ContextWindow: 100000, MaxTokens: 9000}
}

func TestAzureProblems(t *testing.T) {
	a := NewAzure(Config{
		Getenv: wiretest.NoEnv,
		Client: wiretest.Client(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 404, Body: io.NopCloser(strings.NewReader(`{"error":{"code":"DeploymentNotFound", "message":"m"}}`)), Request: r}, nil
		}),
	})
	m, req := azureModel(), &llm.Request{Messages: []llm.Message{llm.UserText("hi", 1)}}
	_, err := a.Stream(t.Context(), m, req)
	var noKey *llm.KeyError
	if !errors.As(err, &noKey) {
		t.Errorf("without a key: %v", err)
	}
	ask := func() string { return a.StreamWith(t.Context(), m, req, AzureOptions{}).Result().ErrorMessage }
	if got := ask(); got != "No API key for provider: azure" {
		t.Errorf("without a key: %s", got)
	}
	req.APIKey = "key"
	if got := ask(); !strings.HasPrefix(got, "Azure OpenAI base URL is required") {
		t.Errorf("without an address: %s", got)
	}
	m.BaseURL = "https://r.test/v1"
	if got, want := ask(), `Azure OpenAI API error (404): {"code":"DeploymentNotFound","message":"m"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
