// Command ask is the smallest agent: it puts one question to a model and prints
// the answer as it streams.
//
//	ANTHROPIC_API_KEY=… go run ./examples/ask "What is a monad?"
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/anthropic"
)

func main() {
	if err := run(context.Background(), strings.Join(os.Args[1:], " ")); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, question string) error {
	h, err := harness.New(harness.Options{
		Model: &llm.Model{
			ID: "claude-sonnet-4-5", API: anthropic.ID, Provider: "anthropic",
			BaseURL:       os.Getenv("ANTHROPIC_BASE_URL"), // "" for Anthropic itself
			ContextWindow: 200_000, MaxTokens: 8_000,
		},
		Stream:       anthropic.New(anthropic.Config{}).Stream,
		Request:      llm.Options{APIKey: os.Getenv("ANTHROPIC_API_KEY")},
		SystemPrompt: "Answer in two sentences.",
	})
	if err != nil {
		return err
	}
	defer h.Close()
	h.Subscribe(func(_ context.Context, ev harness.Event) error {
		if ev.Type == agent.MessageUpdate && ev.Update.Type == llm.EventTextDelta {
			fmt.Print(ev.Update.Delta)
		}
		return nil
	})
	answer, err := h.Prompt(ctx, question)
	fmt.Println()
	if err != nil {
		return err // there was no run, or it could not be kept
	}
	return answer.Err() // the model failed, or ctx ended
}
