// Command ask puts one question to a model and prints the answer as it streams.
//
//	ANTHROPIC_API_KEY=… go run ./examples/ask "What is a monad?"
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/anthropic"
)

func main() {
	model := &llm.Model{
		ID: "claude-sonnet-4-5", API: anthropic.ID, Provider: "anthropic",
		BaseURL:       cmp.Or(os.Getenv("ANTHROPIC_BASE_URL"), "https://api.anthropic.com"),
		Input:         []string{"text", "image"},
		ContextWindow: 200_000, MaxTokens: 8_000,
	}
	req := &llm.Request{
		Messages: llm.Fold("Answer in two sentences.", nil, []llm.Message{
			llm.UserText(strings.Join(os.Args[1:], " "), 0),
		}),
		Options: llm.Options{APIKey: os.Getenv("ANTHROPIC_API_KEY")},
	}
	stream, err := anthropic.New(anthropic.Config{}).Stream(context.Background(), model, req)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for ev := range stream.Events() {
		if ev.Type == llm.EventTextDelta {
			fmt.Print(ev.Delta)
		}
	}
	fmt.Println()
	if m := stream.Result(); m.StopReason == llm.StopError {
		fmt.Fprintln(os.Stderr, m.ErrorMessage)
		os.Exit(1)
	}
}
