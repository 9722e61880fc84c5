package agent_test

import (
	"context"
	"fmt"
	"log"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm/faux"
)

// An agent by itself, for a program that keeps conversations in its own way:
// package harness adds sessions, retries and compaction.
func Example() {
	model := faux.New(faux.Options{})
	model.Script(faux.Reply(faux.ToolCall("roll", `{"sides":6}`)), faux.Say("You rolled a four."))
	roll := agent.NewTool("roll", "Rolls a die.", func(_ context.Context, in struct {
		Sides int `json:"sides"`
	}, _ agent.Call) (agent.Result, error) {
		return agent.TextResult(fmt.Sprintf("4 of %d", in.Sides)), nil
	})
	a := agent.New(agent.Options{
		Config: agent.Config{Model: model.Model(), Stream: model.Stream},
		Tools:  []*agent.Tool{roll},
	})
	a.Subscribe(func(_ context.Context, ev agent.Event) error {
		if ev.Type == agent.ToolExecutionEnd {
			fmt.Println(ev.ToolName, "gives", ev.Result.Text())
		}
		return nil
	})
	if err := a.PromptText(context.Background(), "Roll a die."); err != nil {
		log.Fatal(err)
	}
	for _, m := range a.State().Messages {
		if said, ok := m.(interface{ Text() string }); ok && said.Text() != "" {
			fmt.Printf("%s: %s\n", m.Role(), said.Text())
		}
	}
	// Output:
	// roll gives 4 of 6
	// user: Roll a die.
	// toolResult: 4 of 6
	// assistant: You rolled a four.
}
