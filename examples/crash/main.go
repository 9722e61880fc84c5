// Command crash kills a run in the middle and goes on with it in another
// process. What the first one had done is not done twice, what it may have done
// is told to the model, and what only looks runs again.
//
//	go run ./examples/crash
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
	"github.com/pinch-agent/pinch/session/jsonl"
)

func main() {
	if path := os.Getenv("CRASH_SESSION"); path != "" {
		log.Fatal(begin(path)) // not reached: the mail kills the process
	}
	dir, err := os.MkdirTemp("", "crash")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "order.jsonl")
	first := exec.Command(os.Args[0])
	first.Env = append(os.Environ(), "CRASH_SESSION="+path)
	first.Stdout = os.Stdout
	if err := first.Run(); err == nil {
		log.Fatal("the first process was not killed")
	}
	fmt.Println("- killed -")
	if err := goOn(path); err != nil {
		log.Fatal(err)
	}
}

// begin asks for three things to be done. The second one does not end.
func begin(path string) error {
	h, err := open(path,
		faux.Reply(faux.ToolCall("charge", "{}"), faux.ToolCall("mail", "{}"), faux.ToolCall("stock", "{}")))
	if err != nil {
		return err
	}
	_, err = h.Prompt(context.Background(), "Ship the order.")
	return err
}

// goOn opens the session again. Its journal tells what the run had done.
func goOn(path string) error {
	h, err := open(path, faux.Say("The card is charged. Please look whether the mail went out."))
	if err != nil {
		return err
	}
	defer h.Close()
	r := h.Recovered()
	fmt.Printf("cut off: %d outcome unknown, %d call to run again\n", r.Unknown, r.Again)
	answer, err := h.Continue(context.Background())
	if err != nil {
		return err
	}
	for _, m := range h.Messages() {
		if m, ok := m.(*llm.ToolResult); ok {
			fmt.Printf("%s: %.48s\n", m.ToolName, m.Text())
		}
	}
	fmt.Println(answer.Text())
	return nil
}

func open(path string, script ...faux.Response) (*harness.Harness, error) {
	s, err := jsonl.Open(path, jsonl.Options{})
	if err != nil {
		return nil, err
	}
	model := faux.New(faux.Options{})
	model.Script(script...)
	stock := tool("stock", func() string { return "3 left" })
	stock.ReplaySafe = true // it only looks
	return harness.New(harness.Options{
		Model: model.Model(), Stream: model.Stream, Session: s, Execution: agent.Sequential,
		Tools: []*agent.Tool{
			tool("charge", func() string { return "12 euros charged" }),
			tool("mail", func() string { kill(); return "sent" }),
			stock,
		},
	})
}

func tool(name string, do func() string) *agent.Tool {
	return agent.NewTool(name, "", func(context.Context, struct{}, agent.Call) (agent.Result, error) {
		fmt.Println("running", name)
		return agent.TextResult(do()), nil
	})
}

// kill ends this process as kill -9 does.
func kill() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		log.Fatal(err)
	}
	select {}
}
