//go:build unix

package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/env"
	"github.com/pinch-agent/pinch/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newBash(t testing.TB) (*agent.Tool, string) {
	dir := t.TempDir()
	return Bash(BashOptions{Env: &env.Local{Dir: dir, Temp: dir}}), dir
}

func TestBashLongOutput(t *testing.T) {
	bash, dir := newBash(t)
	r, err := call(t, bash, "1", `{"command":"yes 0123456789012345678901234567890123456789 | head -c 4100000"}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Output    string
		Truncated bool
		File      string `json:"full_output_path"`
		Code      int    `json:"exit_code"`
	}
	if err := json.Unmarshal(r.StructuredContent, &s); err != nil {
		t.Fatal(err)
	}
	if !s.Truncated || len(s.Output) < 1<<20 || len(s.Output) > 1<<20+100 || !strings.Contains(s.Output, "\n\n[... 3051424 bytes omitted ...]\n\n") {
		t.Errorf("structured output of %d bytes, truncated %v", len(s.Output), s.Truncated)
	}
	text := llm.TextOf(r.Content, "")
	want := fmt.Sprintf("[Showing lines 98753-100000 of 100000 (50.0KB limit). Full output: %s]", s.File)
	if !strings.HasSuffix(text, want) {
		t.Errorf("got …%s, want %s", text[len(text)-150:], want)
	}
	if !strings.HasPrefix(s.File, dir+"/pinch-bash-") {
		t.Errorf("the file is %s", s.File)
	}
	if st, err := os.Stat(s.File); err != nil || st.Size() != 4100000 || st.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", st, err)
	}
}

func TestBashUpdates(t *testing.T) {
	bash, _ := newBash(t)
	var mu sync.Mutex
	var got []string
	var times []time.Time
	_, err := call(t, bash, "1", `{"command":"for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.05; done"}`, func(r agent.Result) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, llm.TextOf(r.Content, ""))
		times = append(times, time.Now())
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) < 3 || got[0] != "" || got[len(got)-1] != "1\n2\n3\n4\n5\n6\n7\n8\n" {
		t.Errorf("got %q", got)
	}
	for i := 1; i < len(got); i++ {
		if !strings.HasPrefix(got[i], got[i-1]) {
			t.Errorf("%q does not continue %q", got[i], got[i-1])
		}
		if gap := times[i].Sub(times[i-1]); gap < 90*time.Millisecond && i < len(got)-1 {
			t.Errorf("update %d comes %v after the one before", i, gap)
		}
	}
}

func TestBashAbort(t *testing.T) {
	bash, _ := newBash(t)
	ctx, cancel := context.WithCancel(t.Context())
	began := make(chan struct{})
	var once sync.Once
	go func() {
		<-began
		cancel()
	}()
	_, err := bash.Execute(ctx, agent.Call{ID: "1", Args: []byte(`{"command":"echo said; sleep 60"}`), Update: func(r agent.Result) {
		if len(r.Content) > 0 {
			once.Do(func() { close(began) })
		}
	}})
	if err == nil || err.Error() != "said\n\n\nCommand aborted" {
		t.Errorf("got %v", err)
	}
}

func TestBashMissingDirectory(t *testing.T) {
	bash := Bash(BashOptions{Env: &env.Local{Dir: "/no/such/dir"}})
	_, err := call(t, bash, "1", `{"command":"true"}`, nil)
	if want := "Working directory does not exist: /no/such/dir\nCannot execute bash commands."; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestBashSessionVariables(t *testing.T) {
	e := &env.Local{Dir: t.TempDir(), Environ: append(os.Environ(), "PI_SESSION_FILE=another", "PI_MODEL=another")}
	bash := Bash(BashOptions{Env: e, Session: func() SessionVars {
		return SessionVars{ID: "s", Provider: "p", Model: "m", ReasoningLevel: llm.LevelHigh}
	}})
	r, err := call(t, bash, "1", `{"command":"echo $PI_SESSION_ID,${PI_SESSION_FILE-unset},$PI_PROVIDER,$PI_MODEL,$PI_REASONING_LEVEL"}`, nil)
	if err != nil || llm.TextOf(r.Content, "") != "s,unset,p,m,high\n" {
		t.Errorf("got %q, %v", llm.TextOf(r.Content, ""), err)
	}
}

func BenchmarkBash100MB(b *testing.B) {
	bash, dir := newBash(b)
	b.SetBytes(100_000_000)
	for b.Loop() {
		if _, err := bash.Execute(b.Context(), agent.Call{
			ID: "1", Args: []byte(`{"command":"yes 0123456789012345678901234567890123456789 | head -c 100000000"}`), Update: func(agent.Result) {},
		}); err != nil {
			b.Fatal(err)
		}
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			os.Remove(dir + "/" + e.Name())
		}
	}
}
