package tool_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/env"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/tool"
)

// A set of tools works in one directory and shares one queue for files.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	e := &env.Local{Dir: dir}
	var queue tool.FileQueue
	write := tool.Write(tool.WriteOptions{Env: e, Queue: &queue})
	edit := tool.Edit(tool.EditOptions{Env: e, Queue: &queue})

	ctx := context.Background()
	for i, c := range []struct {
		tool *agent.Tool
		args string
	}{
		{write, `{"path":"a.txt","content":"one\ntwo\n"}`},
		{edit, `{"path":"a.txt","edits":[{"oldText":"two","newText":"2"}]}`},
	} {
		r, err := c.tool.Execute(ctx, agent.Call{ID: fmt.Sprint(i), Args: []byte(c.args), Update: func(agent.Result) {}})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(llm.TextOf(r.Content, ""))
	}
	// Output:
	// Successfully wrote to a.txt
	// Successfully replaced 1 block(s) in a.txt.
}
