package catalog_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/pinch-agent/pinch/auth"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/all"
	"github.com/pinch-agent/pinch/llm/catalog"
)

// A model that models.json describes, chosen by part of its name, in a harness.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, `data: {"choices":[{"delta":{"content":"Your key is `+r.Header.Get("Authorization")+`."},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	defer server.Close()
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "models.json")
	if err := os.WriteFile(file, fmt.Appendf(nil, `{"providers": {"local": {
		"baseUrl": %q, "api": "openai-completions", "apiKey": "$LOCAL_KEY", "models": [{"id": "qwen3-coder"}]}}}`, server.URL), 0o600); err != nil {
		fmt.Println(err)
		return
	}

	c := catalog.New(catalog.Options{
		ModelsFile: file,
		Env:        auth.Env{Process: func(name string) string { return map[string]string{"LOCAL_KEY": "k"}[name] }},
	})
	choice, err := c.Resolve("qwen3", "local")
	if err != nil {
		fmt.Println(err)
		return
	}
	h, err := harness.New(harness.Options{
		Model: choice.Model, ThinkingLevel: choice.Level,
		Stream: llm.NewRegistry(all.Formats(all.Config{})...).Stream,
		Router: c.Router,
		Credentials: func(ctx context.Context, m *llm.Model) (harness.Credentials, error) {
			a, err := c.Auth(ctx, m)
			return harness.Credentials{Key: a.Key.Reveal(), Headers: a.Headers, BaseURL: a.BaseURL, Env: a.Env}, err
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close()
	answer, err := h.Prompt(context.Background(), "Which key do I use?")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(choice.Model.Ref()+":", llm.TextOf(answer.Content, ""))
	// Output: local/qwen3-coder: Your key is Bearer k.
}
