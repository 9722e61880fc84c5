// Command coding is a small coding agent: the built-in tools, and what the files
// of a person and a project say to it: AGENTS.md, skills, prompt templates.
//
//	go run ./examples/coding
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/env"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
	"github.com/pinch-agent/pinch/resource"
	"github.com/pinch-agent/pinch/tool"
)

// builtin are the tools of a coding agent, at work in one folder.
func builtin(dir string) []*agent.Tool {
	e := &env.Local{Dir: dir, Hide: []string{"ANTHROPIC_API_KEY"}} // commands need no key
	var queue tool.FileQueue                                       // edits of one file wait for each other
	return []*agent.Tool{
		tool.Read(tool.ReadOptions{Env: e}),
		tool.Bash(tool.BashOptions{Env: e}),
		tool.Edit(tool.EditOptions{Env: e, Queue: &queue}),
		tool.Write(tool.WriteOptions{Env: e, Queue: &queue}),
	}
}

// load adds what the files of folders say. trusted says whether the person wants
// the project's own skills and templates: its AGENTS.md always counts.
func load(o *harness.Options, folders resource.Folders, trusted bool) error {
	files, problems := resource.ContextFiles(folders)
	skills, more := resource.LoadSkills(resource.Places{Folders: folders, Trusted: trusted})
	templates, yet := resource.LoadTemplates(resource.Places{Folders: folders, Trusted: trusted})
	for _, d := range append(append(problems, more...), yet...) {
		log.Println(d.Path, d.Message) // the rest is loaded all the same
	}
	prompt := func(tools []*agent.Tool) ([]llm.Section, error) {
		return resource.Prompt(resource.PromptOptions{Cwd: folders.Cwd, Tools: tools, ContextFiles: files, Skills: skills})
	}
	if _, err := prompt(o.Tools); err != nil {
		return err
	}
	o.Sections = func(tools []*agent.Tool) []llm.Section {
		sections, _ := prompt(tools) // it failed above or never
		return sections
	}
	o.Expand = func(typed string) string { // "/skill:name …" and "/template …"
		text, err := resource.ExpandSkill(typed, skills)
		if err != nil {
			log.Println(err)
		}
		return resource.ExpandTemplate(text, templates)
	}
	return nil
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	dir, err := project()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	model := faux.New(faux.Options{})
	model.Script(faux.Reply(faux.ToolCall("read", `{"path":"main.go"}`)), faux.Say("It lacks a main function."))
	o := harness.Options{Model: model.Model(), Stream: model.Stream, Tools: builtin(dir)}
	home := filepath.Join(dir, "home") // os.UserHomeDir() in earnest, and os.Getenv
	if err := load(&o, resource.Locate(func(string) string { return "" }, home, dir), true); err != nil {
		return err
	}
	h, err := harness.New(o)
	if err != nil {
		return err
	}
	defer h.Close()
	answer, err := h.Prompt(ctx, "/review main.go")
	if err == nil {
		err = answer.Err()
	}
	if err != nil {
		return err
	}
	for _, m := range h.Messages() {
		switch m := m.(type) {
		case *llm.System:
			for _, s := range m.Sections { // none in the message that declares the tools
				fmt.Println("prompt:", s.Name)
			}
		case *llm.User:
			fmt.Println("user:", m.Text())
		case *llm.ToolResult:
			fmt.Println(m.ToolName+":", m.Text())
		}
	}
	fmt.Println("model:", answer.Text())
	return nil
}

// project makes a folder to work in.
func project() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "coding"); err != nil {
		return "", err
	}
	for name, text := range map[string]string{
		"main.go":                       "package main\n",
		"AGENTS.md":                     "Code is formatted with gofmt.\n",
		".pinch/prompts/review.md":      "---\ndescription: Reviews a file\n---\nReview $1, be brief.\n",
		".pinch/skills/deploy/SKILL.md": "---\nname: deploy\ndescription: How to deploy\n---\nPush to main.\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return dir, err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return dir, err
		}
	}
	return dir, nil
}
