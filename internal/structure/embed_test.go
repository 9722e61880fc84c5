package structure

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// embedder is a program outside the module, as an embedder writes it.
const embedder = `package main

import (
	"context"
	"fmt"
	"log"

	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/anthropic"
	"github.com/pinch-agent/pinch/llm/faux"
)

func main() {
	model := faux.New(faux.Options{})
	model.Script(faux.Say("hello from outside"))
	formats := llm.NewRegistry(anthropic.New(anthropic.Config{}), model)
	h, err := harness.New(harness.Options{Model: model.Model(), Stream: formats.Stream})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	m, err := h.Prompt(context.Background(), "hi")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(llm.TextOf(m.Content, ""))
}
`

func TestAnotherModuleEmbedsTheEngine(t *testing.T) {
	dir := t.TempDir()
	sums, err := os.ReadFile(filepath.Join(root(t), "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"main.go": embedder,
		"go.sum":  string(sums),
		"go.mod": "module example.com/embedder\n\ngo 1.26.0\n\nrequire github.com/pinch-agent/pinch v0.0.0\n\n" +
			"replace github.com/pinch-agent/pinch => " + filepath.ToSlash(root(t)) + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	goCommand := func(args ...string) string {
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if out := goCommand("run", "."); !strings.HasSuffix(out, "hello from outside\n") {
		t.Errorf("the program says %q", out)
	}
	deps := strings.Fields(goCommand("list", "-deps", "."))
	for _, pkg := range deps {
		switch strings.TrimPrefix(pkg, module) {
		case "llm/completions", "llm/catalog", "tool", "env", "auth", "resource", "session/jsonl":
			t.Errorf("a program that does not name %s links it", pkg)
		}
	}
}
