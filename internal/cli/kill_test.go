package cli

import (
	"bufio"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/jsonl"
)

var long = flag.Bool("long", false, "run the long proofs")

// TestKilledAgainAndAgain kills pinch by force, again and again, in the middle
// of a conversation that it then takes up where it was. No complete line is
// ever lost, and the session always opens.
func TestKilledAgainAndAgain(t *testing.T) {
	runs := 30
	if *long {
		runs = 300
	}
	const seed = 20261130
	r := rand.New(rand.NewPCG(seed, 2))
	path := filepath.Join(t.TempDir(), "session.jsonl")
	scenario := `{"loop": true, "turns": [
		{"thinking": "first of all", "text": ["I ", "write ", "it."], "toolCalls": [{"name": "write", "args": {"path": "out.txt", "content": "häßlich 😀\n"}}]},
		{"text": "And read it. ` + strings.Repeat("Long lines take long. ", 500) + `", "toolCalls": [{"name": "read", "args": {"path": "out.txt"}}, {"name": "read", "args": {"path": "nothing"}}]}]}`
	torn, written := 0, 0
	for run := range runs {
		s := startPinch(t, scenario, "--mode", "json", "--session", path, "go on")
		// Killed after some events, and then some time, so that the end falls
		// anywhere, from before the session is open.
		in := bufio.NewReader(s.stdout)
		ended := 0
		event := func() bool {
			line, err := in.ReadString('\n')
			var e struct {
				Type    string
				Message struct{ Role string }
			}
			if json.Unmarshal([]byte(line), &e) == nil && e.Type == "message_end" {
				ended++
			}
			return err == nil
		}
		for range r.IntN(80) {
			if !event() {
				t.Fatalf("run %d ended by itself: %s", run, s.stderr.String())
			}
		}
		time.Sleep(time.Duration(r.IntN(4000)) * time.Microsecond)
		before, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err := s.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for event() {
		}
		s.Wait()

		after, err := os.ReadFile(path)
		if os.IsNotExist(err) && len(before) == 0 {
			continue
		}
		if err != nil || !strings.HasPrefix(string(after), string(before)) {
			t.Fatalf("run %d: bytes were lost: %d before the kill, %d after it, %v", run, len(before), len(after), err)
		}
		bad, messages := 0, 0
		for line := range strings.Lines(string(after)) {
			var e struct{ Type string }
			switch {
			case json.Unmarshal([]byte(line), &e) != nil:
				bad++
			case e.Type == "message":
				messages++
			}
		}
		if bad > run+1 {
			t.Fatalf("run %d: %d bad lines", run, bad)
		}
		torn = bad
		// A message is in the file before the next one ends.
		if messages < written+ended-1 {
			t.Fatalf("run %d: %d messages, of which %d are old, and %d ended", run, messages, written, ended)
		}
		written = messages
		kept, err := jsonl.Open(path, jsonl.Options{})
		if err != nil {
			t.Fatalf("run %d: %v; the file holds %d bytes", run, err, len(after))
		}
		got := 0
		for _, e := range kept.Entries() {
			if e.Type == session.TypeMessage {
				got++
			}
		}
		if got != messages {
			t.Fatalf("run %d: %d messages of %d", run, got, messages)
		}
		if err := kept.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if written < runs {
		t.Errorf("%d messages in %d runs: the kills came too early to prove anything", written, runs)
	}
	t.Logf("%d kills, seed %d: %d messages kept, %d lines torn", runs, seed, written, torn)
}
