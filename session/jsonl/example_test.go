package jsonl_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/jsonl"
)

func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "sessions-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	repo := &jsonl.Repository{Root: filepath.Join(dir, "sessions"), Trash: jsonl.Trash}

	s, err := repo.Continue(dir)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := s.AppendMessage(llm.UserText("Why is the login test flaky?", time.Now().UnixMilli())); err != nil {
		log.Fatal(err)
	}
	if err := jsonl.Export(s, filepath.Join(dir, "branch.jsonl"), jsonl.ExportOptions{}); err != nil {
		log.Fatal(err)
	}
	if err := s.Close(); err != nil {
		log.Fatal(err)
	}

	if err := repo.SetName(s.File(), "flaky tests"); err != nil {
		log.Fatal(err)
	}
	query, err := session.ParseQuery(`"login test"`)
	if err != nil {
		log.Fatal(err)
	}
	found, err := repo.Search(ctx, query, jsonl.SearchOptions{CWD: dir})
	if err != nil {
		log.Fatal(err)
	}
	for _, info := range found {
		fmt.Printf("%s: %s (%d)\n", info.Name, info.FirstMessage, info.MessageCount)
	}
	// Output:
	// flaky tests: Why is the login test flaky? (1)
}
