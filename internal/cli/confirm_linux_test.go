package cli

import (
	"os"
	"path/filepath"
	"testing"
)

const aSession = `{"type":"session","version":3,"id":"theirs","timestamp":"2026-03-01T08:00:00.000Z","cwd":"/elsewhere"}
{"type":"message","id":"0a","parentId":null,"timestamp":"2026-03-01T08:00:00.000Z","message":{"role":"user","content":"hi"}}
`

// TestForkQuestion asks before the session of another project is gone on with.
func TestForkQuestion(t *testing.T) {
	for _, c := range []struct {
		typed  string
		status int
		says   string
	}{
		{"y\r", 0, "hello"},
		{"YES\r", 0, "hello"},
		{"\r", 1, "Error: Session 'theirs' belongs to /elsewhere: run pinch there, or copy it with --fork theirs"},
		{"no\r", 1, "Error: Session 'theirs' belongs to /elsewhere"},
		{"\x04", 1, "Error: Session 'theirs' belongs to /elsewhere"},
		{"\x03", 130, ""},
	} {
		home := t.TempDir()
		writeAgentFile(t, home, filepath.Join("sessions", "--elsewhere--", "x_theirs.jsonl"), aSession)
		a := startAtTerminal(t, home, "--model", "demo/echo", "--session", "theirs", "-p", "hello")
		a.await("Session found in different project: /elsewhere. Fork it into the current directory? [y/N] ")
		a.typed(c.typed)
		if c.says != "" {
			a.await(c.says)
		}
		a.end(c.status)
		forks, err := filepath.Glob(filepath.Join(home, ".pinch", "agent", "sessions", "*", "2*.jsonl"))
		if err != nil || (len(forks) == 1) != (c.status == 0) {
			t.Errorf("%q: forks %q, %v", c.typed, forks, err)
		}
	}
}

// TestDeleteQuestion asks before each session that is deleted.
func TestDeleteQuestion(t *testing.T) {
	for typed, status := range map[string]int{"y\r": 0, "\r": 1, "\x03": 130} {
		home := t.TempDir()
		writeAgentFile(t, home, filepath.Join("sessions", "--elsewhere--", "x_theirs.jsonl"), aSession)
		a := startAtTerminal(t, home, "sessions", "delete", "theirs")
		a.await("x_theirs.jsonl? [y/N] ")
		a.typed(typed)
		a.end(status)
		_, err := os.Stat(filepath.Join(home, ".pinch", "agent", "sessions", "--elsewhere--", "x_theirs.jsonl"))
		if (err != nil) != (status == 0) {
			t.Errorf("%q: %v\n%s", typed, err, a.text())
		}
	}
}
