// Command branch keeps a conversation in a file, opens it again, goes back to
// an earlier place and takes another way from there: the file keeps both.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/jsonl"
)

func main() {
	dir, err := os.MkdirTemp("", "branch")
	check(err)
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "talk.jsonl")
	s := open(path) // a new session
	talk(s, "What is the capital of France?", "Paris.")
	s = open(path) // resumed
	fork := s.LeafID()
	talk(s, "How many people live there?", "About two million.")
	s = open(path) // branched
	check(s.Branch(fork))
	talk(s, "Which river runs through it?", "The Seine.")
	s = open(path)
	fmt.Printf("%d entries, %d ways on from the fork\n", len(s.Entries()), len(s.Children(fork)))
	check(s.Close())
}

func open(path string) *session.Session {
	s, err := jsonl.Open(path, jsonl.Options{})
	check(err)
	return s
}

// talk asks one question in s.
func talk(s *session.Session, question, answer string) {
	model := faux.New(faux.Options{})
	model.Script(faux.Say(answer))
	h, err := harness.New(harness.Options{Model: model.Model(), Stream: model.Stream, Session: s})
	check(err)
	defer h.Close()
	m, err := h.Prompt(context.Background(), question)
	check(err)
	fmt.Println(question, llm.TextOf(m.Content, ""))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
