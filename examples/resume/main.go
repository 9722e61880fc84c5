// Command resume keeps a conversation in a file, opens it again, goes back to an
// earlier place and takes another way from there: the file keeps both.
//
//	go run ./examples/resume
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm/faux"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/jsonl"
)

func main() {
	dir, err := os.MkdirTemp("", "resume")
	check(err)
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "talk.jsonl")
	ask(open(path), "What is the capital of France?", "Paris.") // a new session
	s := open(path)                                             // resumed
	fork := s.LeafID()
	ask(s, "How many people live there?", "About two million.")
	s = open(path) // branched
	check(s.Branch(fork))
	ask(s, "Which river runs through it?", "The Seine.")
	s = open(path)
	fmt.Printf("%d entries, %d ways on from the fork\n", len(s.Entries()), len(s.Children(fork)))
	check(s.Close())
}

func open(path string) *session.Session {
	s, err := jsonl.Open(path, jsonl.Options{})
	check(err)
	return s
}

// ask asks one question in s, which it closes. The model is a script.
func ask(s *session.Session, question, reply string) {
	model := faux.New(faux.Options{})
	model.Script(faux.Say(reply))
	h, err := harness.New(harness.Options{Model: model.Model(), Stream: model.Stream, Session: s})
	check(err)
	answer, err := h.Prompt(context.Background(), question)
	check(err)
	fmt.Println(question, answer.Text())
	check(h.Close())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
