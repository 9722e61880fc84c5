package tool

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/env"
)

// Places are taken in the order of Reserve, whichever body runs first, and a
// link names the same file as its target.
func TestQueueKeepsTheOrderOfCalls(t *testing.T) {
	dir := t.TempDir()
	fs := &env.Local{Dir: dir}
	if err := os.WriteFile(dir+"/f", []byte("0"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("f", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	var queue FileQueue
	edit := Edit(EditOptions{Env: fs, Queue: &queue})
	write := Write(WriteOptions{Env: fs, Queue: &queue})
	const n = 20
	var running sync.WaitGroup
	errs := make(chan error, n)
	var starts []func()
	for i := range n {
		c := agent.Call{ID: fmt.Sprint(i), Update: func(agent.Result) {}}
		tool, path := edit, "link"
		if i%2 == 0 {
			path = "f"
		}
		c.Args = jsontext.Value(editArgs(path, fmt.Sprint(i), fmt.Sprint(i+1)))
		if i == 10 {
			tool, c.Args = write, jsontext.Value(`{"path":"link","content":"11"}`)
		}
		done := tool.Reserve(c)
		starts = append(starts, func() {
			defer running.Done()
			defer done()
			if _, err := tool.Execute(t.Context(), c); err != nil {
				errs <- fmt.Errorf("call %d: %w", i, err)
			}
		})
	}
	running.Add(n)
	for i := n - 1; i >= 0; i-- {
		go starts[i]()
	}
	running.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	if b, _ := os.ReadFile(dir + "/f"); string(b) != fmt.Sprint(n) {
		t.Errorf("got %s", b)
	}
	if len(queue.tails) != 0 || len(queue.places) != 0 {
		t.Errorf("%d tails and %d places are left", len(queue.tails), len(queue.places))
	}
}

// A call that gives up or never runs lets those behind it pass, but not before
// those ahead of it.
func TestQueueWithoutTheOneInTheMiddle(t *testing.T) {
	fs := &env.Local{Dir: t.TempDir()}
	var q FileQueue
	first, err := q.enter(t.Context(), fs, "1", "/f")
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := q.enter(ended, fs, "2", "/f"); err != errAborted {
		t.Fatalf("got %v", err)
	}
	q.reserve(t.Context(), fs, "3", "/f")() // reserved and never run
	last := make(chan struct{})
	go func() {
		defer close(last)
		done, err := q.enter(t.Context(), fs, "4", "/f")
		if err != nil {
			t.Error(err)
			return
		}
		done()
	}()
	select {
	case <-last:
		t.Fatal("the last call passed the first one")
	case <-time.After(20 * time.Millisecond):
	}
	first()
	<-last
	other, err := q.enter(t.Context(), fs, "5", "/other")
	if err != nil {
		t.Fatal(err)
	}
	other()
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.tails) != 0 || len(q.places) != 0 {
		t.Errorf("%d tails and %d places are left", len(q.tails), len(q.places))
	}
}

// Two calls of one id do not wait for each other's places.
func TestQueueWithRepeatedIDs(t *testing.T) {
	fs := &env.Local{Dir: t.TempDir()}
	var q FileQueue
	doneA := q.reserve(t.Context(), fs, "same", "/f")
	doneB := q.reserve(t.Context(), fs, "same", "/f")
	for range 2 {
		leave, err := q.enter(t.Context(), fs, "same", "/f")
		if err != nil {
			t.Fatal(err)
		}
		leave()
	}
	doneB()
	doneA()
	if len(q.tails) != 0 || len(q.places) != 0 {
		t.Errorf("%d tails and %d places are left", len(q.tails), len(q.places))
	}
}

func TestDeclarations(t *testing.T) {
	fs := &env.Local{}
	for _, tt := range []struct {
		tool   *agent.Tool
		rules  int
		schema string // without descriptions
	}{
		{Read(ReadOptions{Env: fs}), 1, `{"type":"object","required":["path"],"properties":{"path":{"type":"string"},"offset":{"type":"number"},"limit":{"type":"number"}}}`},
		{Bash(BashOptions{Env: fs}), 1, `{"type":"object","required":["command"],"properties":{"command":{"type":"string"},"timeout":{"type":"number"}}}`},
		{Edit(EditOptions{Env: fs}), 2, `{"type":"object","required":["path","edits"],"properties":{"path":{"type":"string"},"edits":{"type":"array","items":{"type":"object","required":["oldText","newText"],"properties":{"oldText":{"type":"string"},"newText":{"type":"string"}}}}}}`},
		{Write(WriteOptions{Env: fs}), 1, `{"type":"object","required":["path","content"],"properties":{"path":{"type":"string"},"content":{"type":"string"}}}`},
	} {
		t.Run(tt.tool.Name, func(t *testing.T) {
			if len(tt.tool.Guidelines) != tt.rules || tt.tool.Snippet == "" || tt.tool.Description == "" {
				t.Errorf("got %d rules, snippet %q, description %q", len(tt.tool.Guidelines), tt.tool.Snippet, tt.tool.Description)
			}
			if strings.ContainsAny(tt.tool.Snippet, "\r\n") {
				t.Errorf("the snippet has more than one line: %q", tt.tool.Snippet)
			}
			var plain strings.Builder
			rest := string(tt.tool.Parameters)
			for {
				before, after, ok := strings.Cut(rest, `,"description":"`)
				plain.WriteString(before)
				if !ok {
					break
				}
				text, after, _ := strings.Cut(after, `"`)
				if text == "" {
					t.Error("a parameter has no description")
				}
				rest = after
			}
			if plain.String() != tt.schema {
				t.Errorf("got %s", plain.String())
			}
			if string(tt.tool.ConstrainedSampling) != `{"type":"json_schema","strict":"prefer"}` {
				t.Errorf("got %s", tt.tool.ConstrainedSampling)
			}
		})
	}
}
