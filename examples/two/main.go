// Command two has two agents work together in one process: the tool of the one
// is the other. Each has a model, a prompt and a conversation of its own; the
// end of the one run is the end of the other.
//
//	go run ./examples/two
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
)

type task struct {
	Question string `json:"question" jsonschema:"a question that stands by itself"`
}

// delegate is a tool that gives a question to an agent made for it alone, so that
// several may run side by side. The caller's context sees the answer, and none of
// the work that led to it.
func delegate(name, description string, o harness.Options) *agent.Tool {
	return agent.NewTool(name, description, func(ctx context.Context, in task, call agent.Call) (agent.Result, error) {
		h, err := harness.New(o)
		if err != nil {
			return agent.Result{}, err
		}
		defer h.Close()
		h.Subscribe(func(_ context.Context, ev harness.Event) error {
			if ev.Type == agent.ToolExecutionStart {
				call.Update(agent.TextResult(name + " uses " + ev.ToolName))
			}
			return nil
		})
		answer, err := h.Prompt(ctx, in.Question) // ends with the caller's run
		if err == nil {
			err = answer.Err()
		}
		if err != nil {
			return agent.Result{}, err
		}
		used := h.Session().Stats().Usage // is booked on the caller's session
		return agent.Result{Content: []llm.Block{&llm.Text{Text: answer.Text()}}, Usage: &used}, nil
	})
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	library := agent.NewTool("library", "Looks up a word.", func(_ context.Context, in struct{ Word string }, _ agent.Call) (agent.Result, error) {
		return agent.TextResult(in.Word + ": a crab's claw, or what it does"), nil
	})
	small := faux.New(faux.Options{})
	small.Script(faux.Reply(faux.ToolCall("library", `{"Word":"pinch"}`)), faux.Say("It is what a crab does."))
	researcher := delegate("research", "Finds something out.", harness.Options{
		Model: small.Model(), Stream: small.Stream, Tools: []*agent.Tool{library},
		SystemPrompt: "You look things up and answer in one line.",
	})

	large := faux.New(faux.Options{})
	large.Script(faux.Reply(faux.ToolCall("research", `{"question":"What is a pinch?"}`)), faux.Say("A crab pinches, so mind your toes."))
	writer, err := harness.New(harness.Options{
		Model: large.Model(), Stream: large.Stream, Tools: []*agent.Tool{researcher},
		SystemPrompt: "You write. You leave facts to research.",
	})
	if err != nil {
		return err
	}
	defer writer.Close()
	writer.Subscribe(func(_ context.Context, ev harness.Event) error {
		switch ev.Type {
		case agent.ToolExecutionUpdate, agent.ToolExecutionEnd:
			fmt.Println(" ", ev.Result.Text())
		}
		return nil
	})
	answer, err := writer.Prompt(ctx, "Write about pinches.")
	if err == nil {
		err = answer.Err()
	}
	if err != nil {
		return err
	}
	fmt.Println(answer.Text())
	fmt.Printf("the writer was asked %d times, the researcher %d times\n", len(large.Requests()), len(small.Requests()))
	return nil
}
