// Command owntool gives a model a tool of its own. The model here is a script,
// so that the program runs without a key; any other would do.
//
//	go run ./examples/owntool
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
)

var weather = &agent.Tool{
	Tool: llm.Tool{
		Name:        "weather",
		Description: "The weather in a city right now.",
		Parameters:  []byte(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
	},
	Execute: func(ctx context.Context, call agent.Call) (agent.Result, error) {
		var args struct{ City string }
		if err := json.Unmarshal(call.Args, &args); err != nil {
			return agent.Result{}, err
		}
		return agent.TextResult("18 °C and rain in " + args.City), nil
	},
}

func main() {
	model := faux.New(faux.Options{})
	model.Script(
		faux.Reply(faux.ToolCall("weather", `{"city":"Lisbon"}`)),
		faux.Say("Take an umbrella."),
	)
	h, err := harness.New(harness.Options{
		Model: model.Model(), Stream: model.Stream, Tools: []*agent.Tool{weather},
		SystemPrompt: "You help people to dress.",
	})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	h.Subscribe(func(_ context.Context, ev harness.Event) error {
		if ev.Type == agent.ToolExecutionEnd {
			fmt.Printf("%s: %s\n", ev.ToolName, llm.TextOf(ev.Result.Content, ""))
		}
		return nil
	})
	answer, err := h.Prompt(context.Background(), "What do I wear in Lisbon?")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(llm.TextOf(answer.Content, ""))
}
