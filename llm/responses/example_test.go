package responses_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/responses"
)

// A model thinks, answers, and is told in the next request what it thought.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for _, event := range []string{
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[]}}`,
			`{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"Tides."}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Tides."}],"encrypted_content":"gA"}}`,
			`{"type":"response.output_item.added","output_index":1,"item":{"type":"message","id":"msg_1"}}`,
			`{"type":"response.output_text.delta","output_index":1,"delta":"At noon."}`,
			`{"type":"response.output_item.done","output_index":1,"item":{"type":"message","id":"msg_1","content":[{"type":"output_text","text":"At noon."}]}}`,
			`{"type":"response.completed","response":{"id":"resp_1","status":"completed","usage":{"input_tokens":20,"output_tokens":9,"total_tokens":29}}}`,
		} {
			io.WriteString(w, "data: "+event+"\n\n")
		}
	}))
	defer server.Close()

	model := &llm.Model{
		ID: "gpt-5.1", API: responses.ID, Provider: "openai", BaseURL: server.URL + "/v1",
		Reasoning: true, Input: []string{"text"}, ContextWindow: 400_000, MaxTokens: 128_000,
	}
	api := responses.New(responses.Config{})
	stream := api.StreamWith(context.Background(), model, &llm.Request{
		Messages: []llm.Message{llm.UserText("When is high water?", 0)},
		Options:  llm.Options{APIKey: "sk-example"},
	}, responses.Options{ReasoningEffort: llm.LevelLow, ServiceTier: "flex"})
	for ev := range stream.Events() {
		switch ev.Type {
		case llm.EventThinkingDelta:
			fmt.Printf("(%s) ", ev.Delta)
		case llm.EventTextDelta:
			fmt.Println(ev.Delta)
		case llm.EventDone:
			fmt.Println(ev.Message.Usage.TotalTokens, "tokens")
		case llm.EventError:
			fmt.Println(ev.Message.ErrorMessage)
		}
	}
	// Output:
	// (Tides.) At noon.
	// 29 tokens
}
