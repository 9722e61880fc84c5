package completions_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/completions"
)

// A local server is a model with a base URL and a few flags.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `data: {"choices":[{"delta":{"reasoning":"Tides."}}]}`+"\n\n")
		io.WriteString(w, `data: {"choices":[{"delta":{"content":"At noon."}}]}`+"\n\n")
		io.WriteString(w, `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	defer server.Close()

	model := &llm.Model{
		ID: "qwen3", API: completions.ID, Provider: "local", BaseURL: server.URL + "/v1",
		Reasoning: true, Input: []string{"text"}, ContextWindow: 32_000, MaxTokens: 4_000,
		Compat: jsontext.Value(`{"thinkingFormat":"qwen-chat-template","maxTokensField":"max_tokens"}`),
	}
	api := completions.New(completions.Config{})
	stream, err := api.Stream(context.Background(), model, &llm.Request{
		Messages: []llm.Message{llm.UserText("When is high water?", 0)},
		Options:  llm.Options{APIKey: "none", Reasoning: llm.LevelLow},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for ev := range stream.Events() {
		switch ev.Type {
		case llm.EventThinkingDelta:
			fmt.Printf("(%s) ", ev.Delta)
		case llm.EventTextDelta:
			fmt.Println(ev.Delta)
		case llm.EventError:
			fmt.Println(ev.Message.ErrorMessage)
		}
	}
	// Output: (Tides.) At noon.
}
