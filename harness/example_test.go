package harness_test

import (
	"context"
	"fmt"
	"log"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
)

// An agent with one tool answers a question, and is steered while it works. The
// scripted model stands for a real one: see the wire formats below llm.
func Example() {
	model := faux.New(faux.Options{})
	model.Script(
		faux.Reply(faux.Text("Let me look."), faux.ToolCall("weather", `{"city":"Oslo"}`)),
		faux.Say("Il pleut à Oslo."),
	)
	weather := &agent.Tool{
		Tool: llm.Tool{
			Name:        "weather",
			Description: "Tells the weather of a city.",
			Parameters:  []byte(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
		},
		Execute: func(context.Context, agent.Call) (agent.Result, error) { return agent.TextResult("rain"), nil },
	}
	h, err := harness.New(harness.Options{
		Model:        model.Model(),
		Stream:       model.Stream,
		Tools:        []*agent.Tool{weather},
		SystemPrompt: "You tell people about the weather.",
	})
	if err != nil {
		panic(err)
	}
	defer h.Close()

	h.Subscribe(func(_ context.Context, ev harness.Event) error {
		switch ev.Type {
		case agent.ToolExecutionStart:
			return h.Steer("In French, please.")
		case harness.QueueUpdate:
			fmt.Println("waiting:", ev.Steering)
		case agent.MessageEnd:
			if m, ok := ev.Message.(*llm.Assistant); ok {
				fmt.Println("model:", llm.TextOf(m.Content, ""))
			}
		case agent.ToolExecutionEnd:
			fmt.Println("tool:", llm.TextOf(ev.Result.Content, ""))
		}
		return nil
	})
	answer, err := h.Prompt(context.Background(), "How is the weather in Oslo?")
	if err != nil {
		panic(err)
	}
	fmt.Println(answer.StopReason, len(h.Session().Entries()), "entries")
	// Output:
	// model: Let me look.
	// waiting: [In French, please.]
	// tool: rain
	// waiting: []
	// model: Il pleut à Oslo.
	// stop 8 entries
}

// A gate asks before a tool runs.
func ExampleHooks() {
	model := faux.New(faux.Options{})
	model.Script(faux.Reply(faux.ToolCall("ping", "")), faux.Say("I may not."))
	ping := &agent.Tool{Execute: func(context.Context, agent.Call) (agent.Result, error) { return agent.TextResult("pong"), nil }}
	ping.Name, ping.Parameters = "ping", []byte(`{"type":"object"}`)
	h, err := harness.New(harness.Options{
		Model: model.Model(), Stream: model.Stream, Tools: []*agent.Tool{ping},
		Hooks: []harness.Hooks{{ToolCall: func(_ context.Context, c *harness.ToolCall) (*agent.Block, error) {
			return &agent.Block{Reason: c.ToolName + " is not allowed here"}, nil
		}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	h.Subscribe(func(_ context.Context, ev harness.Event) error {
		if ev.Type == agent.ToolExecutionEnd {
			fmt.Println(llm.TextOf(ev.Result.Content, ""))
		}
		return nil
	})
	answer, err := h.Prompt(context.Background(), "Ping!")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(llm.TextOf(answer.Content, ""))
	// Output:
	// ping is not allowed here
	// I may not.
}
