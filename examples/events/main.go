// Command events draws a run while it goes on: the answer as it streams, the
// calls of a tool and how far it is.
//
//	go run ./examples/events
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
)

type place struct {
	City string `json:"city" jsonschema:"name of the city, in English"`
}

// weather asks a station, which takes its time.
func weather(ctx context.Context, in place, call agent.Call) (agent.Result, error) {
	call.Update(agent.TextResult("asking the station in " + in.City + " …")) // only a UI sees this
	select {
	case <-ctx.Done(): // somebody aborted the run
		return agent.Result{}, ctx.Err()
	case <-time.After(time.Millisecond): // the slow station
	}
	return agent.TextResult("18 °C and rain"), nil
}

// show prints what a user interface would draw.
func show(_ context.Context, ev harness.Event) error {
	switch ev.Type {
	case agent.MessageUpdate:
		if ev.Update.Type == llm.EventTextDelta {
			fmt.Print(ev.Update.Delta)
		}
	case agent.ToolExecutionStart:
		fmt.Printf("%s %s\n", ev.ToolName, ev.Args)
	case agent.ToolExecutionUpdate:
		fmt.Println("  …", ev.Result.Text())
	case agent.ToolExecutionEnd:
		fmt.Printf("  = %s (failed: %t)\n", ev.Result.Text(), ev.IsError)
	case harness.AgentSettled:
		fmt.Println()
	}
	return nil
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	model := faux.New(faux.Options{})
	model.Script(
		faux.Reply(faux.ToolCall("weather", `{"city":"Lisbon"}`)),
		faux.Say("Take an umbrella."),
	)
	h, err := harness.New(harness.Options{
		Model: model.Model(), Stream: model.Stream,
		Tools: []*agent.Tool{agent.NewTool("weather", "The weather in a city.", weather)},
	})
	if err != nil {
		return err
	}
	defer h.Close()
	h.Subscribe(show)
	answer, err := h.Prompt(ctx, "What do I wear in Lisbon?")
	if err != nil {
		return err // there was no run, or it could not be kept
	}
	return answer.Err() // the model failed, or ctx ended
}
