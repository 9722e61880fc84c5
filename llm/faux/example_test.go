package faux_test

import (
	"context"
	"fmt"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
)

// A scripted model drives the loop with one tool.
func Example() {
	model := faux.New(faux.Options{})
	model.Script(
		faux.Reply(faux.Text("Let me look."), faux.ToolCall("weather", `{"city":"Oslo"}`)),
		faux.Say("It rains in Oslo."),
	)
	weather := &agent.Tool{
		Tool: llm.Tool{
			Name:        "weather",
			Description: "Tells the weather of a city.",
			Parameters:  []byte(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
		},
		Execute: func(_ context.Context, call agent.Call) (agent.Result, error) {
			return agent.TextResult("rain"), nil
		},
	}

	cfg := agent.Config{Model: model.Model(), Stream: model.Stream}
	start := agent.Context{Tools: []*agent.Tool{weather}}
	prompt := llm.UserText("How is the weather in Oslo?", 0)
	_, err := agent.Run(context.Background(), cfg, start, []agent.Message{prompt}, func(_ context.Context, ev agent.Event) error {
		switch ev.Type {
		case agent.MessageEnd:
			if m, ok := ev.Message.(*llm.Assistant); ok {
				fmt.Printf("%s (%s)\n", llm.TextOf(m.Content, ""), m.StopReason)
			}
		case agent.ToolExecutionEnd:
			fmt.Println(ev.ToolName, string(ev.Args), "->", llm.TextOf(ev.Result.Content, ""))
		}
		return nil
	})
	fmt.Println(len(model.Requests()), "requests,", err)
	// Output:
	// Let me look. (toolUse)
	// weather {"city":"Oslo"} -> rain
	// It rains in Oslo. (stop)
	// 2 requests, <nil>
}
