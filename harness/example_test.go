package harness_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
	"github.com/pinch-agent/pinch/session/jsonl"
)

// A question, its answer as it streams, and how it went. The scripted model
// stands for a real one: see the wire formats below llm.
func Example() {
	model := faux.New(faux.Options{})
	model.Script(faux.Say("A monoid in the category of endofunctors."))
	h, err := harness.New(harness.Options{
		Model: model.Model(), Stream: model.Stream,
		SystemPrompt: "Answer in one line.",
	})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	h.Subscribe(func(_ context.Context, ev harness.Event) error {
		if ev.Type == agent.MessageUpdate && ev.Update.Type == llm.EventTextDelta {
			fmt.Print(ev.Update.Delta)
		}
		return nil
	})
	answer, err := h.Prompt(context.Background(), "What is a monad?")
	if err == nil {
		err = answer.Err()
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println()
	fmt.Println(answer.StopReason, "after", len(h.Messages()), "messages")
	// Output:
	// A monoid in the category of endofunctors.
	// stop after 3 messages
}

// Tools are functions. What they return goes back to the model, errors too.
func ExampleHarness_Prompt_tools() {
	type term struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	divide := agent.NewTool("divide", "Divides a by b.", func(_ context.Context, in term, _ agent.Call) (agent.Result, error) {
		if in.B == 0 {
			return agent.Result{}, errors.New("nothing can be divided by zero")
		}
		return agent.TextResult(fmt.Sprint(in.A / in.B)), nil
	})
	model := faux.New(faux.Options{})
	model.Script(
		faux.Reply(faux.ToolCall("divide", `{"a":6,"b":0}`), faux.ToolCall("divide", `{"a":6,"b":2}`)),
		faux.Say("3, and the other one makes no sense."),
	)
	h, err := harness.New(harness.Options{Model: model.Model(), Stream: model.Stream, Tools: []*agent.Tool{divide}})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	if _, err := h.Prompt(context.Background(), "6 by 0, and 6 by 2?"); err != nil {
		log.Fatal(err)
	}
	for _, m := range h.Messages() {
		switch m := m.(type) {
		case *llm.ToolResult:
			fmt.Println("tool:", m.Text())
		case *llm.Assistant:
			fmt.Println("model:", m.Text(), len(m.ToolCalls()), "calls")
		}
	}
	// Output:
	// model:  2 calls
	// tool: nothing can be divided by zero
	// tool: 3
	// model: 3, and the other one makes no sense. 0 calls
}

// A gate keeps calls from running.
func ExampleHooks() {
	model := faux.New(faux.Options{})
	model.Script(faux.Reply(faux.ToolCall("ping", "")), faux.Say("I may not."))
	ping := agent.NewTool("ping", "Pings.", func(context.Context, struct{}, agent.Call) (agent.Result, error) {
		return agent.TextResult("pong"), nil
	})
	h, err := harness.New(harness.Options{
		Model: model.Model(), Stream: model.Stream, Tools: []*agent.Tool{ping},
		Hooks: []harness.Hooks{{
			Name: "gate",
			ToolCall: func(_ context.Context, c *harness.ToolCall) (*agent.Block, error) {
				return &agent.Block{Reason: c.ToolName + " is not allowed here"}, nil
			},
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	h.Subscribe(func(_ context.Context, ev harness.Event) error {
		if ev.Type == agent.ToolExecutionEnd {
			fmt.Println(ev.Result.Text())
		}
		return nil
	})
	answer, err := h.Prompt(context.Background(), "Ping!")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Text())
	// Output:
	// ping is not allowed here
	// I may not.
}

// What a person says while the agent works: steering reaches the model with the
// next request, a follow-up when it would be done.
func ExampleHarness_Steer() {
	model := faux.New(faux.Options{})
	model.Script(
		faux.Reply(faux.Text("Let me look."), faux.ToolCall("weather", `{"city":"Oslo"}`)),
		faux.Say("Il pleut à Oslo."),
		faux.Say("Prends un parapluie."),
	)
	weather := agent.NewTool("weather", "Tells the weather of a city.",
		func(_ context.Context, in struct {
			City string `json:"city"`
		}, _ agent.Call) (agent.Result, error) {
			return agent.TextResult("rain in " + in.City), nil
		})
	h, err := harness.New(harness.Options{Model: model.Model(), Stream: model.Stream, Tools: []*agent.Tool{weather}})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	h.Subscribe(func(_ context.Context, ev harness.Event) error {
		switch ev.Type {
		case agent.ToolExecutionStart: // any moment, and any goroutine
			return errors.Join(h.FollowUp("And what do I take along?"), h.Steer("In French, please."))
		case harness.QueueUpdate:
			fmt.Println("waiting:", ev.Steering, ev.FollowUp)
		case agent.MessageEnd:
			if m, ok := ev.Message.(*llm.Assistant); ok {
				fmt.Println("model:", m.Text())
			}
		}
		return nil
	})
	answer, err := h.Prompt(context.Background(), "How is the weather in Oslo?")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("last:", answer.Text())
	// Output:
	// model: Let me look.
	// waiting: [] [And what do I take along?]
	// waiting: [In French, please.] [And what do I take along?]
	// waiting: [] [And what do I take along?]
	// model: Il pleut à Oslo.
	// waiting: [] []
	// model: Prends un parapluie.
	// last: Prends un parapluie.
}

// A conversation in a file is gone on with by another process, or another model.
func ExampleNew_resume() {
	dir, err := os.MkdirTemp("", "sessions")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	model := faux.New(faux.Options{})
	model.Script(faux.Say("Hello, Ada."), faux.Say("Your name is Ada."))
	for _, text := range []string{"I am Ada.", "Who am I?"} { // each time as a new process would
		if err := goOn(model, dir, text); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// Hello, Ada.
	// Your name is Ada.
}

func goOn(model *faux.API, dir, text string) error {
	repo := &jsonl.Repository{Root: filepath.Join(dir, "sessions")} // where all session files are
	s, err := repo.Continue(dir)                                    // the newest one of this working folder, or a new one
	if err != nil {
		return err
	}
	h, err := harness.New(harness.Options{Model: model.Model(), Stream: model.Stream, Session: s})
	if err != nil {
		s.Close() // still ours
		return err
	}
	defer h.Close() // closes s
	answer, err := h.Prompt(context.Background(), text)
	if err == nil {
		err = answer.Err()
	}
	fmt.Println(answer.Text())
	return err
}

// Where things go wrong: what kept a run from being is an error, what the model
// did is in its answer.
func ExampleError() {
	model := faux.New(faux.Options{})
	model.Script(faux.Fail("401 invalid x-api-key"))
	h, err := harness.New(harness.Options{Model: model.Model(), Stream: model.Stream})
	if err != nil {
		log.Fatal(err)
	}
	answer, err := h.Prompt(context.Background(), "Hello?")
	fmt.Println(err, "-", answer.Err())
	if failed, ok := errors.AsType[*llm.AnswerError](answer.Err()); ok && failed.Reason == llm.StopAborted {
		fmt.Println("somebody pressed escape")
	}

	h.Close()
	_, err = h.Prompt(context.Background(), "Hello?")
	if e, ok := errors.AsType[*harness.Error](err); ok {
		switch e.Kind {
		case harness.KindBusy:
			fmt.Println("queue it with Steer or FollowUp")
		case harness.KindAuth:
			fmt.Println("ask for a key")
		case harness.KindSession:
			fmt.Println("the disk, probably:", e.Err)
		default:
			fmt.Println(e)
		}
	}
	// Output:
	// <nil> - 401 invalid x-api-key
	// prompt: the harness is closed
}
