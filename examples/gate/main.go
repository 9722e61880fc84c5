// Command gate asks a person before an agent writes outside its own folder. The
// gate is a hook: it sees each call after its arguments were checked and before
// it runs, and lets it pass, changes it or blocks it.
//
//	go run ./examples/gate
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/env"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm/faux"
	"github.com/pinch-agent/pinch/tool"
)

// gate lets tools that only read pass, and writes below notes/. It asks about
// everything else, also about tools that it does not know.
func gate(person io.Reader) harness.Hooks {
	answers := bufio.NewScanner(person)
	var asking sync.Mutex // a question whose run was aborted still waits for its answer
	return harness.Hooks{
		Name: "gate",
		ToolCall: func(ctx context.Context, c *harness.ToolCall) (*agent.Block, error) {
			var args struct {
				Path string `json:"path"`
			}
			if err := c.Decode(&args); err != nil {
				return nil, err // an error blocks the call, too
			}
			below, err := filepath.Rel("notes", args.Path)
			inside := err == nil && filepath.IsLocal(below)
			if c.ToolName == "read" || c.ToolName == "write" && inside {
				return nil, nil
			}
			asking.Lock()
			defer asking.Unlock()
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			fmt.Printf("may it %s %s? ", c.ToolName, args.Path)
			if answers.Scan() && answers.Text() == "yes" {
				fmt.Println("yes")
				return nil, nil
			}
			fmt.Println("no")
			return &agent.Block{Reason: "The person does not allow that. Work below notes/."}, nil
		},
	}
}

func main() {
	if err := run(context.Background(), strings.NewReader("no\nyes\n")); err != nil { // os.Stdin in earnest
		log.Fatal(err)
	}
}

func run(ctx context.Context, person io.Reader) error {
	dir, err := os.MkdirTemp("", "gate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	model := faux.New(faux.Options{})
	model.Script(
		faux.Reply(faux.ToolCall("write", `{"path":"README.md","content":"mine"}`)),
		faux.Reply(faux.ToolCall("write", `{"path":"notes/plan.md","content":"1. ask"}`)),
		faux.Reply(faux.ToolCall("write", `{"path":"plan.md","content":"1. ask"}`)),
		faux.Say("The plan is written."),
	)
	h, err := harness.New(harness.Options{
		Model: model.Model(), Stream: model.Stream,
		Tools: []*agent.Tool{tool.Write(tool.WriteOptions{Env: &env.Local{Dir: dir}})},
		Hooks: []harness.Hooks{gate(person)},
	})
	if err != nil {
		return err
	}
	defer h.Close()
	h.Subscribe(func(_ context.Context, ev harness.Event) error {
		if ev.Type == agent.ToolExecutionEnd {
			fmt.Println("tool:", ev.Result.Text())
		}
		return nil
	})
	answer, err := h.Prompt(ctx, "Write a plan.")
	if err == nil {
		err = answer.Err()
	}
	if err != nil {
		return err
	}
	fmt.Println(answer.Text())
	return nil
}
