// Command owntool gives a model a tool of its own. The model here is a script,
// so that the program runs without a key; any other would do.
//
//	go run ./examples/owntool
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm/faux"
)

// place is what the model has to say to call the tool: its fields become the
// JSON Schema that the model sees, and arguments that do not fit never arrive.
type place struct {
	City string `json:"city" jsonschema:"name of the city, in English"`
	Days int    `json:"days,omitempty" jsonschema:"how many days ahead; 0 for now"`
}

func weather(_ context.Context, in place, _ agent.Call) (agent.Result, error) {
	if in.City == "Atlantis" {
		return agent.Result{}, fmt.Errorf("there is no station in %s", in.City) // the model reads this
	}
	return agent.TextResult(fmt.Sprintf("18 °C and rain in %s in %d days", in.City, in.Days)), nil
}

func main() {
	model := faux.New(faux.Options{})
	model.Script(
		faux.Reply(faux.ToolCall("weather", `{"city":"Atlantis"}`)),
		faux.Reply(faux.ToolCall("weather", `{"city":"Lisbon","days":"2"}`)), // a text for a number: made to fit
		faux.Say("Take an umbrella."),
	)
	h, err := harness.New(harness.Options{
		Model: model.Model(), Stream: model.Stream,
		SystemPrompt: "You help people to dress.",
		Tools:        []*agent.Tool{agent.NewTool("weather", "The weather in a city.", weather)},
	})
	if err != nil {
		log.Fatal(err)
	}
	h.Subscribe(func(_ context.Context, ev harness.Event) error {
		if ev.Type == agent.ToolExecutionEnd {
			fmt.Printf("%s = %s (failed: %t)\n", ev.ToolName, ev.Result.Text(), ev.IsError)
		}
		return nil
	})
	answer, err := h.Prompt(context.Background(), "What do I wear in Lisbon the day after tomorrow?")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Text())
}
