package anthropic_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/anthropic"
)

func Example() {
	api := anthropic.New(anthropic.Config{Version: "1.0.0"})
	model := &llm.Model{
		ID: "claude-test", API: anthropic.ID, Provider: "anthropic", BaseURL: "https://api.example",
		Input: []string{"text"}, ContextWindow: 200_000, MaxTokens: 8000,
	}
	stream, err := api.Stream(context.Background(), model, &llm.Request{
		Messages: llm.Fold("You are terse.", nil, []llm.Message{llm.UserText("Hello", 1)}),
		Options: llm.Options{
			APIKey: "key",
			Client: &http.Client{Transport: &served{body: deltas(2)}}, // in place of the network
		},
	})
	if err != nil {
		fmt.Println(err) // no credentials
		return
	}
	for ev := range stream.Events() {
		switch ev.Type {
		case llm.EventTextDelta:
			fmt.Print(ev.Delta)
		case llm.EventError:
			fmt.Println(ev.Message.ErrorMessage)
		case llm.EventDone:
			fmt.Println("done:", ev.Message.StopReason)
		}
	}
	// Output:
	//  word 0, and
	//  word 1, and
	// done: stop
}
