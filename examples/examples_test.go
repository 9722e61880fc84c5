// Package examples runs the programs of its folders, and holds the guide that
// quotes them against their text.
package examples

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// programs is a folder with all of them, built once.
var programs string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "examples")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", dir+string(filepath.Separator), "./...")
		if out, err := cmd.CombinedOutput(); err != nil {
			panic(err.Error() + "\n" + string(out))
		}
		programs = dir
		return m.Run()
	}())
}

func run(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(programs, name), args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

// Each program prints what stands in its output.txt. ask, which asks a provider,
// and scripted, which is a test, have none.
func TestPrograms(t *testing.T) {
	folders, err := filepath.Glob("*/main.go")
	if err != nil || len(folders) < 8 {
		t.Fatal(folders, err)
	}
	for _, main := range folders {
		name := filepath.Dir(main)
		if name == "ask" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			want, err := os.ReadFile(filepath.Join(name, "output.txt"))
			if err != nil {
				t.Fatal(err)
			}
			if got := run(t, nil, name); got != strings.ReplaceAll(string(want), "\r\n", "\n") {
				t.Errorf("it prints\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// Who reads the first ones reads them whole.
func TestFirstExamplesAreShort(t *testing.T) {
	for _, name := range []string{"ask/main.go", "owntool/main.go", "resume/main.go", "scripted/scripted_test.go"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), "\n"); n >= 60 {
			t.Errorf("%s has %d lines", name, n)
		}
	}
}

func TestAsk(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, ev := range []string{
			`message_start {"type":"message_start","message":{"id":"m","model":"x","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}`,
			`content_block_start {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`content_block_delta {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"A monoid."}}`,
			`content_block_stop {"type":"content_block_stop","index":0}`,
			`message_delta {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}`,
			`message_stop {"type":"message_stop"}`,
		} {
			name, data, _ := strings.Cut(ev, " ")
			_, _ = w.Write([]byte("event: " + name + "\ndata: " + data + "\n\n"))
		}
	}))
	defer srv.Close()
	got := run(t, []string{"ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=" + srv.URL}, "ask", "What is a monad?")
	if got != "A monoid.\n" {
		t.Errorf("got %q", got)
	}
}
