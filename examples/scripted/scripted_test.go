// Package scripted shows how to test an agent without a model: a script plays
// the model's part, and the test looks at what the agent did.
package scripted

import (
	"context"
	"os"
	"path/filepath"
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
		Model:  model.Model(),
		Stream: model.Stream,
		Tools:  []*agent.Tool{tool.Write(tool.WriteOptions{Env: &env.Local{Dir: dir}, Queue: &tool.FileQueue{}})},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()

	answer, err := h.Prompt(context.Background(), "Greet me in hello.txt.")
	if err != nil || answer.StopReason != llm.StopStop {
		t.Fatal(answer, err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "hello.txt"))
	if err != nil || string(got) != "hello\n" {
		t.Errorf("hello.txt holds %q, %v", got, err)
	}
}
