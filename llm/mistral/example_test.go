package mistral_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/mistral"
)

// A model without a map of levels thinks by the service's prompt.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for _, delta := range []string{
			`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Tides."}]}]}`,
			`{"content":"At noon."}`,
		} {
			io.WriteString(w, `data: {"choices":[{"delta":`+delta+`,"finish_reason":null}]}`+"\n\n")
		}
		io.WriteString(w, `data: {"choices":[{"delta":{"content":""},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	defer server.Close()

	model := &llm.Model{
		ID: "magistral-medium-latest", API: mistral.ID, Provider: "mistral", BaseURL: server.URL,
		Reasoning: true, Input: []string{"text"}, ContextWindow: 128_000, MaxTokens: 40_000,
	}
	stream, err := mistral.New(mistral.Config{}).Stream(context.Background(), model, &llm.Request{
		Messages: []llm.Message{llm.UserText("When is high water?", 0)},
		Options:  llm.Options{APIKey: "key", Reasoning: llm.LevelHigh},
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
