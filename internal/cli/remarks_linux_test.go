package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A person is told what of a package does nothing here.
func TestInactiveExtensionsAreSaid(t *testing.T) {
	home := t.TempDir()
	pack := filepath.Join(t.TempDir(), "pack")
	if err := os.MkdirAll(filepath.Join(pack, "extensions"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(pack, "extensions", "e.ts"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	a := startAtTerminal(t, home, "install", pack)
	a.await("Extensions: 1, kept and inactive")
	a.end(0)
	if err := os.RemoveAll(pack); err != nil {
		t.Fatal(err)
	}
	a = startAtTerminal(t, home, "list")
	a.await("is not installed")
	a.end(0)
}

// A person is told that a package of a project waits for trust.
func TestInstallForAnUntrustedProjectIsSaid(t *testing.T) {
	home := t.TempDir() // the working folder too
	if err := os.MkdirAll(filepath.Join(home, "pack", "skills"), 0o755); err != nil {
		t.Fatal(err)
	}
	a := startAtTerminal(t, home, "install", "-l", "./pack")
	a.await("so the package does not count yet: pinch trust yes")
	a.end(0)
}

// Who only wants a summary has said all that there is to say.
func TestSummaryNeedsNoPrompt(t *testing.T) {
	home := t.TempDir() // the working folder too
	script := func(text string) {
		if err := os.WriteFile(filepath.Join(home, "s.json"), []byte(`{"turns":[{"text":"`+text+`"}]}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script("one")
	args := []string{"--model", "demo/s.json", "--session", "talk.jsonl"}
	a := startAtTerminal(t, home, append(args, "-p", "hello")...)
	a.end(0)
	text, err := os.ReadFile(filepath.Join(home, "talk.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(text), `"role":"user"`)
	_, id, _ := strings.Cut(before[strings.LastIndex(before, "\n"):], `"id":"`)
	script("what was left")
	a = startAtTerminal(t, home, append(args, "--branch", id[:8], "--summarize", "-p")...)
	a.await("what was left")
	a.end(0)
	if strings.Contains(a.text(), "no prompt") {
		t.Error(a.text())
	}
}

// A person is told that what is called is there, and does not count.
func TestCallsOfAnUntrustedProjectAreSaid(t *testing.T) {
	const hint = "this project brings it and is not trusted"
	home := t.TempDir() // the working folder too
	for name, text := range map[string]string{
		".pi/prompts/deploy.md":    "Deploy it.",
		".pi/skills/ship/SKILL.md": "---\nname: ship\ndescription: Ships\n---\nShip it.",
	} {
		path := filepath.Join(home, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, call := range []string{"/skill:ship now", "/deploy"} {
		a := startAtTerminal(t, home, "--model", "demo/echo", "-p", call)
		a.await(hint)
		a.await("--approve trusts the project for one run, pinch trust yes from now on")
		a.await(call)
		a.end(0)
	}
	// Trusted, not there, and a path that a person writes of.
	a := startAtTerminal(t, home, "--approve", "--model", "demo/echo", "-p", "/deploy")
	a.await("Deploy it.")
	a.end(0)
	for _, call := range []string{"/nowhere", "/skill:nothing", "deploy"} {
		a := startAtTerminal(t, home, "--model", "demo/echo", "-p", call)
		a.await(call)
		a.end(0)
		if strings.Contains(a.text(), hint) {
			t.Errorf("%s: %s", call, a.text())
		}
	}
}

// A person is told of tools that are not there.
func TestUnknownToolsAreSaid(t *testing.T) {
	home := t.TempDir()
	a := startAtTerminal(t, home, "--model", "demo/echo", "--tools", "+grep,+raed,-mcp", "-p", "hello")
	a.await(`there is no tool "raed"; there are read, bash, `)
	a.await(`there is no tool "mcp"`)
	a.await("hello")
	a.end(0)
	a = startAtTerminal(t, home, "--model", "demo/echo", "--tools", "read,mcp__*", "-p", "hello")
	a.await("hello")
	a.end(0)
	if strings.Contains(a.text(), "there is no tool") {
		t.Error(a.text())
	}
}

// A person is told what is missing where nothing is asked.
func TestMissingPromptIsSaid(t *testing.T) {
	home := t.TempDir()
	for _, args := range [][]string{{"-p"}, {"--mode", "json"}} {
		a := startAtTerminal(t, home, append([]string{"--model", "demo/echo"}, args...)...)
		a.await("There is no prompt: write it behind -p, pipe it in, or name a file as @FILE")
		a.end(0)
	}
	a := startAtTerminal(t, home, "--model", "demo/echo", "-p", "hi")
	a.await("hi")
	a.end(0)
	if strings.Contains(a.text(), "no prompt") {
		t.Error(a.text())
	}
}

// A person is told that another model answers than the one in the settings.
func TestMissingDefaultModelIsSaid(t *testing.T) {
	home := t.TempDir()
	writeAgentFile(t, home, "models.json", `{"providers":{"localc":{"baseUrl":"http://127.0.0.1:9/v1","api":"openai-completions","apiKey":"k","models":[{"id":"c"}]}}}`)
	writeAgentFile(t, home, "settings.json", `{"defaultProvider":"localc","defaultModel":"gone","retry":{"enabled":false}}`)
	a := startAtTerminal(t, home, "-p", "hi")
	a.await("The default model localc/gone is not set up. Using localc/c.")
	a.end(1)
}
