//go:build unix

package tool

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/env"
	"github.com/pinch-agent/pinch/llm"
)

// Much output is held in bounded memory, and all of it in the file.
func TestBashFlood(t *testing.T) {
	bash, _ := newBash(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := call(t, bash, "1", `{"command":"head -c 50000000 /dev/zero"}`, nil)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	// What is allocated for the updates depends on how many there are.
	if n := after.HeapSys - before.HeapSys; int64(n) > 64<<20 {
		t.Errorf("the heap grew by %d bytes", n)
	}
	text := llm.TextOf(r.Content, "")
	_, path, _ := strings.Cut(text, "[Showing last 50.0KB of line 1 (line is 47.7MB). Full output: ")
	if st, err := os.Stat(strings.TrimSuffix(path, "]")); err != nil || st.Size() != 50_000_000 {
		t.Errorf("got …%q, %v", text[len(text)-100:], err)
	}
}

// Where the file cannot be made the end of the output is still shown.
func TestBashSpillFails(t *testing.T) {
	bash := Bash(BashOptions{Env: &env.Local{Dir: t.TempDir(), Temp: "/no/such/folder"}})
	r, err := call(t, bash, "1", `{"command":"seq 3000"}`, nil)
	text := llm.TextOf(r.Content, "")
	if err != nil || !strings.Contains(text, "\n3000\n\n[Showing lines 1001-3000 of 3000. The full output could not be kept: ") || strings.Contains(string(r.Details), "fullOutputPath") {
		t.Errorf("got …%q, %v, %s", text[max(0, len(text)-200):], err, r.Details)
	}
}

func TestBashOutputAsItIs(t *testing.T) {
	bash, _ := newBash(t)
	r, err := call(t, bash, "1", `{"command":"printf 'a\\000\\033[1m\\377\\r\\nno end'"}`, nil)
	if got := llm.TextOf(r.Content, ""); err != nil || got != "a\x00\x1b[1m\uFFFD\r\nno end" {
		t.Errorf("got %q, %v", got, err)
	}
	r, err = call(t, bash, "1", `{"command":"printf x; exit 3"}`, nil)
	if got := llm.TextOf(r.Content, ""); err != nil || got != "x\n\nCommand exited with code 3" || !r.IsError {
		t.Errorf("got %q, %v", got, err)
	}
}

// However early or late a run is ended, it says so or was done, and nothing of
// the command is left.
func TestBashAbortAnyTime(t *testing.T) {
	bash, dir := newBash(t)
	for i := range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		stop := time.AfterFunc(time.Duration(i*i)*2*time.Microsecond, cancel)
		mark := fmt.Sprintf("86%04d", i)
		args := `{"command":"(sleep ` + mark + ` & sleep ` + mark + `) & echo begun; wait"}`
		_, err := bash.Execute(ctx, agent.Call{ID: "1", Args: []byte(args), Update: func(agent.Result) {}})
		if err == nil || !strings.HasSuffix(err.Error(), "Command aborted") {
			t.Errorf("run %d: %v", i, err)
		}
		stop.Stop()
		cancel()
	}
	gone := func() string {
		var out strings.Builder
		(&env.Local{Dir: dir}).Exec(t.Context(), env.Command{Line: "ps -eo stat,args | grep -v '^Z' | grep '[s]leep 86[0-9][0-9][0-9][0-9]'", Output: &out})
		return out.String()
	}
	for deadline := time.Now().Add(30 * time.Second); gone() != ""; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("left: %s", gone())
		}
	}
}
