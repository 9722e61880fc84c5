package llm_test

import (
	"context"
	"fmt"
	"log"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
)

// One question to a model, without an agent.
func Example() {
	model := faux.New(faux.Options{})
	model.Script(faux.Reply(faux.Think("Tides are late today."), faux.Text("At noon.")))
	registry := llm.NewRegistry(model) // and any other wire formats
	stream, err := registry.Stream(context.Background(), model.Model(), &llm.Request{
		Messages: llm.Fold("Answer in one line.", nil, []llm.Message{llm.UserText("When is high water?", 0)}),
		Options:  llm.Options{Reasoning: llm.LevelLow},
	})
	if err != nil {
		log.Fatal(err) // no key, or no such wire format
	}
	for ev := range stream.Events() {
		switch ev.Type {
		case llm.EventThinkingEnd:
			fmt.Printf("(%s)\n", ev.Text())
		case llm.EventTextDelta:
			fmt.Print(ev.Delta)
		}
	}
	answer := stream.Result()
	if err := answer.Err(); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("\n%s, %d characters\n", answer.StopReason, len(answer.Text()))
	// Output:
	// (Tides are late today.)
	// At noon.
	// stop, 8 characters
}
