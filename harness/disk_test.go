package harness_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm/faux"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/jsonl"
)

// TestFileHarmedDuringARun lets another program do things to the session file
// while a tool runs. The run settles with an error that says so, what was said
// stays, and once the file is back the next prompt, or closing, writes all of it,
// once and in order.
func TestFileHarmedDuringARun(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows lets nobody move or remove a file that is open")
	}
	rename := func(from, to string) func() error { return func() error { return os.Rename(from, to) } }
	for name, harm := range map[string]func(path string) (do, heal func() error){
		"file moved away": func(path string) (do, heal func() error) {
			return rename(path, path+".away"), rename(path+".away", path)
		},
		"folder moved away": func(path string) (do, heal func() error) {
			dir := filepath.Dir(path)
			return rename(dir, dir+".away"), rename(dir+".away", dir)
		},
		"file cut": func(path string) (do, heal func() error) {
			var whole []byte
			do = func() (err error) {
				if whole, err = os.ReadFile(path); err != nil {
					return err
				}
				return os.Truncate(path, 10)
			}
			return do, func() error { return os.WriteFile(path, whole, 0o600) }
		},
		"other file in its place, then a copy": func(path string) (do, heal func() error) {
			var whole []byte
			do = func() (err error) {
				if whole, err = os.ReadFile(path); err != nil {
					return err
				}
				return errors.Join(os.WriteFile(path+".new", []byte("other\n"), 0o600), os.Rename(path+".new", path))
			}
			return do, func() error {
				return errors.Join(os.WriteFile(path+".new", whole, 0o600), os.Rename(path+".new", path))
			}
		},
	} {
		for _, closing := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "sessions", "s.jsonl")
				do, heal := harm(path)
				sess, err := jsonl.Open(path, jsonl.Options{})
				if err != nil {
					t.Fatal(err)
				}
				meddle := toolOf("meddle", func(context.Context) (string, error) { return "meddled", do() })
				r := newRig(t, harness.Options{Session: sess, Tools: []*agent.Tool{meddle}},
					faux.Reply(faux.ToolCall("meddle", "")), faux.Say("done"))
				_, err = r.Prompt(t.Context(), "go")
				if e, ok := errors.AsType[*session.Error](err); kindOf(err) != harness.KindSession || !ok || e.Kind != session.Conflict || e.Advice == "" {
					t.Errorf("got %v", err)
				}
				if a, s := r.count(agent.AgentEnd), r.count(harness.AgentSettled); a != 1 || s != 1 {
					t.Errorf("%d agent_end, %d agent_settled", a, s)
				}
				r.paired()
				const first = "user:go assistant:<meddle> result:meddled"
				r.wantSaid(first)
				if _, err := r.Prompt(t.Context(), "more"); kindOf(err) != harness.KindSession {
					t.Error("a prompt while the file is away:", err)
				}
				r.wantSaid(first)
				if err := heal(); err != nil {
					t.Fatal(err)
				}
				want := first
				if !closing {
					r.model.Rescript(faux.Say("fine"))
					r.prompt("again")
					want += " user:again assistant:fine"
				}
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
				again, err := jsonl.Open(path, jsonl.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer again.Close()
				if got := said(again.Context().Messages); got != want {
					t.Errorf("the file says\n%s\nwant\n%s", got, want)
				}
			})
		}
	}
}

// TestFileStaysAway closes a session whose file did not come back: that is told,
// and what was said can still be had.
func TestFileStaysAway(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows lets nobody move or remove a file that is open")
	}
	path := filepath.Join(t.TempDir(), "s.jsonl")
	sess, err := jsonl.Open(path, jsonl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	meddle := toolOf("meddle", func(context.Context) (string, error) { return "meddled", os.Remove(path) })
	r := newRig(t, harness.Options{Session: sess, Tools: []*agent.Tool{meddle}}, faux.Reply(faux.ToolCall("meddle", "")), faux.Say("done"))
	if _, err := r.Prompt(t.Context(), "go"); kindOf(err) != harness.KindSession {
		t.Error(err)
	}
	if err := r.Close(); !errors.Is(err, &session.Error{Kind: session.Conflict}) {
		t.Errorf("closing says %v", err)
	}
	r.wantSaid("user:go assistant:<meddle> result:meddled")
	if _, err := os.Stat(path + ".lock"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock stays: %v", err)
	}
}
