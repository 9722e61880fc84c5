// Package scripted shows how to test an agent without a model: a script plays
// the model's part, and the test looks at what the agent did and what the model
// was asked.
package scripted

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/env"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
	"github.com/pinch-agent/pinch/tool"
)

func TestAgentWritesTheFile(t *testing.T) {
	dir := t.TempDir()
	model := faux.New(faux.Options{})
	model.Script(
		faux.Reply(faux.ToolCall("write", `{"path":"hello.txt","content":"hello\n"}`)),
		faux.Say("Done."),
	)
	h, err := harness.New(harness.Options{
		Model: model.Model(), Stream: model.Stream,
		Tools: []*agent.Tool{tool.Write(tool.WriteOptions{Env: &env.Local{Dir: dir}})},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()

	answer, err := h.Prompt(context.Background(), "Greet me in hello.txt.")
	if err != nil || answer.Err() != nil {
		t.Fatal(err, answer.Err())
	}
	got, err := os.ReadFile(filepath.Join(dir, "hello.txt"))
	if err != nil || string(got) != "hello\n" {
		t.Errorf("hello.txt holds %q, %v", got, err)
	}

	asked := model.Requests()
	if len(asked) != 2 || model.Left() != 0 {
		t.Fatalf("the model was asked %d times, %d answers are left", len(asked), model.Left())
	}
	last := asked[1].Request.Messages
	if result, ok := last[len(last)-1].(*llm.ToolResult); !ok || !strings.Contains(result.Text(), "hello.txt") {
		t.Errorf("the model did not see what its call did: %v", last)
	}
}
