// Package examples runs the programs of its folders.
package examples

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func run(t *testing.T, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"run"}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

func TestOwnTool(t *testing.T) {
	if got, want := run(t, nil, "./owntool"), "weather: 18 °C and rain in Lisbon\nTake an umbrella.\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBranch(t *testing.T) {
	got := run(t, nil, "./branch")
	if !strings.HasSuffix(got, " entries, 2 ways on from the fork\n") {
		t.Errorf("got %q", got)
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
	got := run(t, []string{"ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=" + srv.URL}, "./ask", "What is a monad?")
	if got != "A monoid.\n" {
		t.Errorf("got %q", got)
	}
}
