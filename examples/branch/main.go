// Command branch explores a conversation as a tree: it keeps one in a file, opens
// it again, goes back to an earlier question and asks it differently, with a
// summary of what was left behind, and draws what the file then holds.
//
//	go run ./examples/branch
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/jsonl"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "branch")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "talk.jsonl")

	h, err := open(path, faux.Say("Paris."), faux.Say("About two million."))
	if err != nil {
		return err
	}
	if err := ask(ctx, h, "What is the capital of France?", "How many people live there?"); err != nil {
		return err
	}

	// Another day: the file has it all, the conversation goes on at its end.
	h, err = open(path, faux.Say("They asked for its population."), faux.Say("The Seine."))
	if err != nil {
		return err
	}
	question := lastQuestion(h.Session())
	at, err := h.NavigateTree(ctx, question.ID, harness.TreeOptions{Summarize: true, Label: "the population"})
	if err != nil {
		return err
	}
	fmt.Printf("back before %q\n", at.EditorText) // a UI would put it into its editor
	if err := ask(ctx, h, "Which river runs through it?"); err != nil {
		return err
	}

	s := h.Session() // closed by now, and can be read
	for _, root := range s.Tree() {
		draw(s, root, "")
	}
	return nil
}

// open goes on with the session at path, or begins one. script is what the model
// will say.
func open(path string, script ...faux.Response) (*harness.Harness, error) {
	s, err := jsonl.Open(path, jsonl.Options{})
	if err != nil {
		return nil, err
	}
	model := faux.New(faux.Options{})
	model.Script(script...)
	h, err := harness.New(harness.Options{Model: model.Model(), Stream: model.Stream, Session: s})
	if err != nil {
		s.Close()
	}
	return h, err
}

// ask asks questions and closes h.
func ask(ctx context.Context, h *harness.Harness, questions ...string) error {
	for _, q := range questions {
		answer, err := h.Prompt(ctx, q)
		if err == nil {
			err = answer.Err()
		}
		if err != nil {
			h.Close()
			return err
		}
	}
	return h.Close()
}

// lastQuestion is the last thing that the user said on the branch.
func lastQuestion(s *session.Session) (last *session.Entry) {
	for _, e := range s.Path() {
		if e.Role() == llm.RoleUser {
			last = e
		}
	}
	return last
}

// draw prints a node and what follows it, branches further to the right.
func draw(s *session.Session, n *session.Node, indent string) {
	text := ""
	switch d := n.Entry.Data().(type) {
	case *session.MessageEntry:
		if m, ok := d.Message.(interface{ Text() string }); ok {
			text = string(d.Message.Role()) + ": " + m.Text()
		}
	case *session.BranchSummaryEntry:
		text = "summary of the branch that was left"
	}
	if n.Label != "" {
		text += " [" + n.Label + "]"
	}
	if n.Entry.ID == s.LeafID() {
		text += " <- the conversation goes on here"
	}
	if text != "" { // not a model or level that was set
		fmt.Println(indent + text)
		indent = strings.ReplaceAll(indent, "- ", "  ")
	}
	for _, child := range n.Children {
		if len(n.Children) > 1 {
			draw(s, child, indent+"- ")
		} else {
			draw(s, child, indent)
		}
	}
}
