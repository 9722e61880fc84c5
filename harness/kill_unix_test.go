//go:build unix

package harness_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
	"github.com/pinch-agent/pinch/session/jsonl"
)

var (
	long     = flag.Bool("long", false, "run the long proofs")
	killSeed = flag.Uint64("kill-seed", 20261130, "seed of the points at which processes are killed")
	killRun  = flag.Int("kill-run", -1, "the one run of them to repeat; all of them when negative")
)

// killEnv makes the test binary work, parallel or sequential as its first word
// says, in the folder behind it until it is done, or killed: see work.
const killEnv = "PINCH_TEST_KILL_RUN"

func init() {
	programs[killEnv] = func(arg string) {
		execution, dir, _ := strings.Cut(arg, " ")
		if err := work(dir, agent.Execution(execution)); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
	}
}

// batches are the calls of the answers of a run, 20 in all: a letter for each, e
// for one that has an effect, r for one that may run again.
var batches = []string{"e", "eerer", "rrrr", "e", "eeeee", "ree", "r"}

// work brings the conversation of a folder to its end: a run of 20 calls, each
// of which writes a line to a file of effects. It says on the standard output
// what happens.
func work(dir string, execution agent.Execution) error {
	s, err := jsonl.Open(filepath.Join(dir, "s.jsonl"), jsonl.Options{})
	if err != nil {
		return err
	}
	model := faux.New(faux.Options{Models: []llm.Model{{ID: "one", ContextWindow: 1_000_000, MaxTokens: 1000}}})
	answer := func(_ context.Context, c faux.Call) (*llm.Assistant, error) {
		n := 0
		for _, m := range c.Request.Messages {
			if m.Role() == llm.RoleAssistant {
				n++
			}
		}
		if n == len(batches) {
			return &llm.Assistant{Content: []llm.Block{faux.Text("done")}}, nil
		}
		m := &llm.Assistant{Content: []llm.Block{faux.Text("on it")}, StopReason: llm.StopToolUse}
		for i, kind := range batches[n] {
			name := map[rune]string{'e': "effect", 'r': "look"}[kind]
			m.Content = append(m.Content, callOf(name, fmt.Sprintf("%c-%d-%d", kind, n, i)))
		}
		return m, nil
	}
	for range len(batches) + 1 {
		model.Script(answer)
	}
	tool := func(name string, safe bool) *agent.Tool {
		return &agent.Tool{
			Tool: llm.Tool{Name: name, Parameters: []byte(`{"type":"object"}`)}, ReplaySafe: safe,
			Execute: func(_ context.Context, call agent.Call) (agent.Result, error) {
				f, err := os.OpenFile(filepath.Join(dir, "effects"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
				if err != nil {
					return agent.Result{}, err
				}
				defer f.Close()
				time.Sleep(time.Duration(rand.IntN(1500)) * time.Microsecond)
				if _, err := f.WriteString(call.ID + "\n"); err != nil {
					return agent.Result{}, err
				}
				time.Sleep(time.Duration(rand.IntN(1500)) * time.Microsecond)
				return agent.TextResult("the real result of " + call.ID + strings.Repeat(" häßlich\n", rand.IntN(2000))), nil
			},
		}
	}
	h, err := harness.New(harness.Options{
		Model: model.Model(), Stream: model.Stream, Session: s, Execution: execution,
		Tools: []*agent.Tool{tool("effect", false), tool("look", true)},
	})
	if err != nil {
		return err
	}
	defer h.Close()
	rec := h.Recovered()
	if rec.Err != nil || rec.Dropped > 0 {
		return fmt.Errorf("recovered %+v", rec)
	}
	fmt.Println("recovered", rec.Results, rec.Unknown, rec.NotStarted, rec.Again)
	h.Subscribe(func(_ context.Context, ev harness.Event) error {
		fmt.Println("event", ev.Type)
		return nil
	})
	messages := h.Messages()
	if len(messages) == 0 {
		_, err = h.Prompt(context.Background(), "go")
	} else if m, ok := messages[len(messages)-1].(*llm.Assistant); !ok || m.StopReason != llm.StopStop {
		_, err = h.Continue(context.Background())
	}
	return err
}

// saved is a session file as any program reads it: the calls of its answers and
// the text of their results, by id.
func saved(t *testing.T, path string) (calls []string, results map[string][]string) {
	t.Helper()
	results = map[string][]string{}
	b, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var e struct {
			Message struct {
				Role       string
				ToolCallID string `json:"toolCallId"`
				Content    json.RawMessage
			}
		}
		if json.Unmarshal([]byte(line), &e) != nil {
			continue
		}
		var content []struct{ Type, ID, Text string }
		_ = json.Unmarshal(e.Message.Content, &content) // a plain text has no calls
		switch e.Message.Role {
		case "assistant":
			for _, c := range content {
				if c.Type == "toolCall" {
					calls = append(calls, c.ID)
				}
			}
		case "toolResult":
			results[e.Message.ToolCallID] = append(results[e.Message.ToolCallID], content[0].Text)
		}
	}
	return calls, results
}

// finishedIn are the calls whose results a journal has.
func finishedIn(path string) map[string]bool {
	ids := map[string]bool{}
	b, _ := os.ReadFile(path)
	for line := range strings.Lines(string(b)) {
		var e struct{ Type, ID string }
		if json.Unmarshal([]byte(line), &e) == nil && e.Type == "result" {
			ids[e.ID] = true
		}
	}
	return ids
}

func effectsIn(t *testing.T, dir string) map[string]int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "effects"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	n := map[string]int{}
	for id := range strings.Lines(string(b)) {
		n[strings.TrimSuffix(id, "\n")]++
	}
	return n
}

// tally counts what happened to the calls of all runs.
type tally struct{ kills, results, unknown, notStarted, again, repeated int }

// TestProcessKilledInARun kills processes with SIGKILL at random points of a run
// of 20 calls, up to three times each, and goes on from there. In the end each
// call has one result, one that had ended was not repeated, one that is not safe
// to replay ran at most once, and what the made-up results say is true.
func TestProcessKilledInARun(t *testing.T) {
	runs := 12
	if *long {
		runs = 200
	}
	var sum tally
	for i := range runs {
		if *killRun >= 0 && i != *killRun {
			continue
		}
		killedInARun(t, i, &sum)
		if t.Failed() {
			t.Fatalf("run %d failed: repeat it with -kill-seed %d -kill-run %d", i, *killSeed, i)
		}
	}
	t.Logf("seed %d, %d runs: %+v", *killSeed, runs, sum)
}

func killedInARun(t *testing.T, run int, sum *tally) {
	r := rand.New(rand.NewPCG(*killSeed, uint64(run)))
	dir := t.TempDir()
	path := filepath.Join(dir, "s.jsonl")
	finished := map[string]int{} // effects of calls, when their results were first seen
	kills, execution := 1+r.IntN(3), []agent.Execution{agent.Parallel, agent.Sequential}[r.IntN(2)]
	for k := 0; ; k++ {
		events, pause := -1, time.Duration(0)
		if k < kills {
			events, pause = r.IntN(150), time.Duration(r.IntN(3000))*time.Microsecond
		}
		if !startWork(t, string(execution)+" "+dir, events, pause, sum) {
			break
		}
		sum.kills++
		effects := effectsIn(t, dir)
		_, results := saved(t, path)
		known := finishedIn(path + ".run")
		for id, texts := range results {
			known[id] = strings.HasPrefix(texts[0], "the real result")
		}
		for id, real := range known {
			if _, seen := finished[id]; real && !seen {
				finished[id] = effects[id]
			}
		}
	}
	calls, results := saved(t, path)
	effects := effectsIn(t, dir)
	if len(calls) != 20 || len(results) != 20 {
		t.Errorf("%d calls and %d results", len(calls), len(results))
	}
	for _, id := range calls {
		if len(results[id]) != 1 {
			t.Errorf("call %s has %d results", id, len(results[id]))
			continue
		}
		n, safe := effects[id], strings.HasPrefix(id, "r")
		if n > 1 {
			sum.repeated++
		}
		if was, ok := finished[id]; ok && n != was {
			t.Errorf("call %s had ended and ran again: %d effects, now %d", id, was, n)
		}
		text := results[id][0]
		switch {
		case strings.HasPrefix(text, "the real result of "+id):
			if n == 0 || n > 1 && !safe {
				t.Errorf("call %s ended with %d effects", id, n)
			}
		case safe:
			t.Errorf("call %s may run again, and its result is %q", id, text)
		case strings.Contains(text, "before this call began"):
			if n != 0 {
				t.Errorf("call %s did not begin and has %d effects", id, n)
			}
		case strings.Contains(text, "before the outcome"):
			if n > 1 {
				t.Errorf("call %s has %d effects", id, n)
			}
		default:
			t.Errorf("call %s: %q", id, text)
		}
	}
	if _, err := os.Stat(path + ".run"); !os.IsNotExist(err) {
		t.Errorf("the journal stays: %v", err)
	}
}

// startWork starts a process that works and kills it after some events and a
// pause, never when events is negative. It reports whether it was killed.
func startWork(t *testing.T, arg string, events int, pause time.Duration, sum *tally) bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), killEnv+"="+arg)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); {
		var rec harness.Recovery
		switch k, _ := fmt.Sscanf(lines.Text(), "recovered %d %d %d %d", &rec.Results, &rec.Unknown, &rec.NotStarted, &rec.Again); {
		case k == 4:
			sum.results += rec.Results
			sum.unknown += rec.Unknown
			sum.notStarted += rec.NotStarted
			sum.again += rec.Again
		case strings.HasPrefix(lines.Text(), "event "):
			n++
		default:
			t.Error(lines.Text())
		}
		if n == events {
			time.Sleep(pause)
			_ = cmd.Process.Kill() // it may be done
			events = -1
		}
	}
	err = cmd.Wait()
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	killed := status.Signaled() && status.Signal() == syscall.SIGKILL
	if err != nil && !killed {
		t.Fatal(err)
	}
	return killed
}
