package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pinch-agent/pinch/compact"
)

var rpcDeviations = []deviation{}

type rpcCase struct {
	worldSetup
	Args   []string  `json:"args"`
	Steps  []rpcStep `json:"steps"`
	Expect struct {
		Transcript []map[string]json.RawMessage `json:"transcript"`
		Exit       struct{ Code int }           `json:"exit"`
		Kinds      []any                        `json:"sessionEntryKinds"`
		Requests   []map[string]any             `json:"modelRequests"`
		FilesExist map[string]bool              `json:"filesExist"`
		Stderr     json.RawMessage              `json:"stderr"`
	} `json:"expect"`
}

type rpcStep struct {
	Send       json.RawMessage `json:"send"`
	Wait       *bool           `json:"wait"`
	SendRaw    *string         `json:"sendRaw"`
	SendBase64 []byte          `json:"sendBase64"`
	Until      map[string]any  `json:"until"`
	FromStart  bool            `json:"fromStart"`
	Count      int             `json:"count"`
	Sleep      int             `json:"sleep"`
	Close      bool            `json:"close"`
	Signal     string          `json:"signal"`
	WaitExit   bool            `json:"waitExit"`
	Capture    string          `json:"capture"`
	From       string          `json:"from"`
	Path       string          `json:"path"`
}

func TestRPC(t *testing.T) {
	g := newGroup("rpc")
	for _, file := range vectorFiles(t, "rpc") {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c rpcCase
			readVector(t, file, &c)
			g.report(t, name, c.play(t, name), rpcDeviations)
		})
	}
}

// rpcRun is the program while a case drives it.
type rpcRun struct {
	cmd   *exec.Cmd
	stdin interface {
		Write([]byte) (int, error)
		Close() error
	}
	patience time.Duration

	mu      sync.Mutex
	records []map[string]any
	changed chan struct{} // closed at each record, and replaced
	err     error         // of a record
	errs    bytes.Buffer
	exited  chan struct{}
}

// wait waits until what find looks for among the records is there.
func (r *rpcRun) wait(find func(records []map[string]any) bool) error {
	deadline := time.After(r.patience)
	for {
		r.mu.Lock()
		ok, changed := find(r.records), r.changed
		r.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-r.exited:
			r.mu.Lock()
			defer r.mu.Unlock()
			if find(r.records) {
				return nil
			}
			return errors.New("the program has ended")
		case <-deadline:
			return errors.New("nothing of that kind came")
		}
	}
}

// read takes a line of the output.
func (r *rpcRun) read(line []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, err := abridgedRecord(line)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("%w: %q", err, clipText(string(line)))
	}
	r.records = append(r.records, v)
	close(r.changed)
	r.changed = make(chan struct{})
}

func (c *rpcCase) play(t *testing.T, name string) outcome {
	o := outcome{}
	if _, crashed := decodedJSON(c.Expect.Stderr).(map[string]any); crashed {
		// Where the recorded program died a clean error is wanted, and life goes on.
		c.Steps = slices.DeleteFunc(c.Steps, func(s rpcStep) bool { return s.WaitExit })
		c.Steps = append(c.Steps, rpcStep{Count: 2})
		c.Expect.Exit.Code = 0
		c.Expect.Transcript = append(c.Expect.Transcript, map[string]json.RawMessage{
			"out": json.RawMessage(`{"type":"response","success":false,"error":"Unknown command: undefined"}`)})
	}
	w := newWorld(t, c.worldSetup)
	run := c.start(t, w)
	if err := c.drive(w, run); err != nil {
		o.add("steps", "%v; stderr: %s", err, clipText(run.errs.String()))
		return o
	}
	if run.err != nil {
		o.add("records", "%v", run.err)
	}
	if code := run.cmd.ProcessState.ExitCode(); code != c.Expect.Exit.Code {
		o.add("exit", "%d, want %d; stderr: %s", code, c.Expect.Exit.Code, clipText(run.errs.String()))
	}
	c.compare(w, o, name, run.records)
	c.compareKinds(t, w, o)
	c.compareRequests(w, o, name)
	for file, wanted := range c.Expect.FilesExist {
		if _, err := os.Stat(filepath.Join(w.work, file)); (err == nil) != wanted {
			o.add("filesExist", "%s: %v", file, err)
		}
	}
	return o
}

func (c *rpcCase) start(t *testing.T, w *world) *rpcRun {
	t.Helper()
	args := []string{"--mode", "rpc"}
	for _, a := range c.Args {
		args = append(args, w.b.fill(a))
	}
	r := &rpcRun{cmd: exec.Command(program(t), args...), patience: 20 * time.Second, changed: make(chan struct{}), exited: make(chan struct{})}
	for name := range c.AgentFiles {
		if strings.HasPrefix(name, "extensions/") {
			r.patience = 2 * time.Second // they need a host for JavaScript
		}
	}
	r.cmd.Dir, r.cmd.Env, r.cmd.Stderr = w.work, w.env(c.Env), &r.errs
	var err error
	if r.stdin, err = r.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.exited)
		for d := bufio.NewReader(out); ; {
			line, err := d.ReadBytes('\n')
			if len(line) > 0 {
				r.read(line)
			}
			if err != nil {
				break
			}
		}
		r.cmd.Wait()
	}()
	t.Cleanup(func() {
		r.cmd.Process.Kill()
		<-r.exited
	})
	return r
}

// drive does the steps, closes the input and waits for the end.
func (c *rpcCase) drive(w *world, r *rpcRun) error {
	cursor := 0
	for i, s := range c.Steps {
		var err error
		switch {
		case s.Send != nil:
			err = r.send(w, s)
		case s.SendRaw != nil:
			_, err = r.stdin.Write([]byte(w.b.fill(*s.SendRaw)))
		case s.SendBase64 != nil:
			_, err = r.stdin.Write(s.SendBase64)
		case s.Until != nil:
			if s.FromStart {
				cursor = 0
			}
			err = r.wait(func(records []map[string]any) bool {
				for ; cursor < len(records); cursor++ {
					if matchesFields(records[cursor], s.Until) {
						cursor++
						return true
					}
				}
				return false
			})
		case s.Count > 0:
			err = r.wait(func(records []map[string]any) bool { return len(records) >= s.Count })
		case s.Sleep > 0:
			time.Sleep(time.Duration(s.Sleep) * time.Millisecond)
		case s.Close:
			err = r.stdin.Close()
		case s.Signal != "":
			err = r.cmd.Process.Signal(map[string]os.Signal{"SIGTERM": syscall.SIGTERM, "SIGHUP": syscall.SIGHUP, "SIGINT": syscall.SIGINT}[s.Signal])
		case s.WaitExit:
			err = r.waitExit()
		case s.Capture != "":
			r.mu.Lock()
			for _, rec := range r.records {
				if rec["id"] == s.From && rec["type"] == "response" {
					w.b.known["{{"+s.Capture+"}}"] = fmt.Sprint(at(rec, s.Path))
					break
				}
			}
			r.mu.Unlock()
		}
		if err != nil {
			step, _ := json.Marshal(s)
			return fmt.Errorf("step %d, %s: %w", i, clipText(string(step)), err)
		}
	}
	r.stdin.Close()
	return r.waitExit()
}

func (r *rpcRun) waitExit() error {
	select {
	case <-r.exited:
		return nil
	case <-time.After(r.patience):
		return errors.New("the program does not end")
	}
}

func (r *rpcRun) send(w *world, s rpcStep) error {
	var line bytes.Buffer
	if err := json.Compact(&line, []byte(w.b.fill(string(s.Send)))); err != nil {
		return err
	}
	line.WriteByte('\n')
	if _, err := r.stdin.Write(line.Bytes()); err != nil {
		return err
	}
	var v map[string]any
	if err := json.Unmarshal(line.Bytes(), &v); err != nil {
		return err
	}
	id, has := v["id"]
	if !has || s.Wait != nil && !*s.Wait {
		return nil
	}
	return r.wait(func(records []map[string]any) bool {
		return slices.ContainsFunc(records, func(rec map[string]any) bool {
			return rec["type"] == "response" && reflect.DeepEqual(rec["id"], id)
		})
	})
}

func matchesFields(rec, want map[string]any) bool {
	for path, v := range want {
		if !reflect.DeepEqual(at(rec, path), v) {
			return false
		}
	}
	return true
}

// at is the value at a dotted path, nil when there is none.
func at(v any, path string) any {
	for part := range strings.SplitSeq(path, ".") {
		switch c := v.(type) {
		case map[string]any:
			v = c[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(c) {
				return nil
			}
			v = c[i]
		default:
			return nil
		}
	}
	return v
}

// rpcRules are how records are compared: messages, entries and usage hold at
// least the expected keys, everything else exactly these.
var rpcRules = matchRules{loose: []string{"message", "messages", "toolResults", "entry", "entries", "usage"}, tolerance: 1e-9}

// compare compares the records sequence by sequence.
func (c *rpcCase) compare(w *world, o outcome, name string, got []map[string]any) {
	var want []map[string]any
	for _, e := range c.Expect.Transcript {
		if raw, ok := e["out"]; ok {
			v, _ := decodedJSON(raw).(map[string]any)
			want = append(want, v)
		}
	}
	c.compareOrder(o, want, got)
	wantEvents, wantAnswers := rpcSequences(want)
	gotEvents, gotAnswers := rpcSequences(got)
	if strings.HasPrefix(name, "compact-") {
		ownCompaction(name, wantEvents, gotEvents)
		for key := range wantAnswers {
			ownCompaction(name, wantAnswers[key], gotAnswers[key])
		}
	}
	w.b.compareRecords(o, wantEvents, gotEvents)
	for _, list := range wantAnswers {
		ownFile(list)
	}
	for _, list := range gotAnswers {
		ownFile(list)
	}
	for _, key := range sortedKeys(toAny(wantAnswers)) {
		c.compareAnswers(w, o, key, wantAnswers[key], gotAnswers[key])
	}
	for key := range gotAnswers {
		if wantAnswers[key] == nil {
			o.add("answers."+key, "unexpected: %s", shortJSON(gotAnswers[key]))
		}
	}
}

func toAny[T any](m map[string]T) map[string]any {
	out := map[string]any{}
	for k := range m {
		out[k] = nil
	}
	return out
}

// rpcSequences cuts records into the events and the answers by their ids.
func rpcSequences(records []map[string]any) (events []map[string]any, answers map[string][]map[string]any) {
	answers = map[string][]map[string]any{}
	for _, r := range records {
		if r["type"] != "response" && r["type"] != "bash_execution_update" {
			events = append(events, r)
			continue
		}
		key := "none"
		if id, ok := r["id"]; ok {
			key = shortJSON(id)
		}
		list := answers[key]
		if n := len(list); n > 0 && r["type"] == "bash_execution_update" && list[n-1]["type"] == r["type"] {
			if a, ok := list[n-1]["delta"].(string); ok {
				if b, ok := r["delta"].(string); ok {
					list[n-1]["delta"] = a + b
					continue
				}
			}
		}
		answers[key] = append(list, r)
	}
	return events, answers
}

func (c *rpcCase) compareAnswers(w *world, o outcome, key string, want, got []map[string]any) {
	field := "answers." + key
	if len(want) != len(got) {
		o.add(field, "%d records, want %d: %s", len(got), len(want), shortJSON(got))
		return
	}
	for i := range want {
		wantRecord, gotRecord := project(want[i], got[i])
		if text, ok := want[i]["error"].(string); ok {
			have, _ := got[i]["error"].(string)
			if err := sameRefusal(text, have); err != nil {
				o.add(field+".error", "%v", err)
			}
			delete(wantRecord.(map[string]any), "error")
			delete(gotRecord.(map[string]any), "error")
		}
		if err := w.b.value(rpcRules, fmt.Sprint(want[i]["command"]), "", wantRecord, gotRecord); err != nil {
			o.add(field, "%v", err)
		}
	}
}

// project leaves of got what want shows of objects that it cuts: those with a
// member "...".
func project(want, got any) (any, any) {
	switch want := want.(type) {
	case map[string]any:
		have, ok := got.(map[string]any)
		if !ok {
			return want, got
		}
		_, cut := want["..."]
		w, g := map[string]any{}, map[string]any{}
		for k, v := range have {
			if _, wanted := want[k]; wanted || !cut {
				g[k] = v
			}
		}
		for k, v := range want {
			if k == "..." {
				continue
			}
			w[k] = v
			if _, ok := g[k]; ok {
				w[k], g[k] = project(v, g[k])
			}
		}
		return w, g
	case []any:
		have, ok := got.([]any)
		if !ok || len(have) != len(want) {
			return want, got
		}
		w, g := make([]any, len(want)), make([]any, len(want))
		for i := range want {
			w[i], g[i] = project(want[i], have[i])
		}
		return w, g
	}
	return want, got
}

// spelledOut are the refusals whose words a client may look at.
var spelledOut = []string{
	"Agent is already processing.", "Extension command ", "Model not found: ", "This session has not been saved yet.",
	"Invalid entry ID for forking", "Entry not found: ", "Nothing to export yet", "Cannot export in-memory session",
	"Nothing to compact", "Session name cannot be empty", "Unknown command: ",
}

// sameRefusal compares the texts of errors, as far as they are not the recorded
// language's own.
func sameRefusal(want, got string) error {
	if prefix := "Failed to parse command: "; strings.HasPrefix(want, prefix) && strings.HasPrefix(got, prefix) && len(got) > len(prefix) {
		return nil
	}
	if want == "Unknown command: undefined" && strings.HasPrefix(got, "Unknown command: ") {
		return nil
	}
	spelled := !strings.Contains(want, "undefined") && slices.ContainsFunc(spelledOut, func(s string) bool { return strings.HasPrefix(want, s) })
	if got == "" || spelled && want != got {
		return fmt.Errorf("%q, want %q", got, want)
	}
	return nil
}

// compareOrder compares what has to come before an answer: the events that its
// command caused, and for a prompt not yet the start of its run.
func (c *rpcCase) compareOrder(o outcome, want, got []map[string]any) {
	of := map[string]string{
		"prompt": "agent_start", "steer": "queue_update", "follow_up": "queue_update",
		"set_thinking_level": "thinking_level_changed", "cycle_thinking_level": "thinking_level_changed", "cycle_model": "thinking_level_changed",
		"set_session_name": "session_info_changed",
	}
	counts := func(records []map[string]any) map[string]int {
		seen, out := map[string]int{}, map[string]int{}
		for _, r := range records {
			typ, _ := r["type"].(string)
			command, _ := r["command"].(string)
			if typ != "response" {
				seen[typ]++
			} else if event := of[command]; event != "" && r["id"] != nil {
				out[fmt.Sprintf("%v", r["id"])] = seen[event]
			}
		}
		return out
	}
	wantCounts, gotCounts := counts(want), counts(got)
	for id, n := range wantCounts {
		if gotCounts[id] != n {
			o.add("order."+id, "%d events before the response, want %d", gotCounts[id], n)
		}
	}
}

// ownCompaction takes own words, and sizes of own words, out of the comparison.
func ownCompaction(name string, want, got []map[string]any) {
	for i := range min(len(want), len(got)) {
		own(name, want[i], got[i])
	}
}

func own(name string, want, got any) {
	switch want := want.(type) {
	case map[string]any:
		have, ok := got.(map[string]any)
		if !ok {
			return
		}
		for k, v := range want {
			n, counts := have[k].(float64)
			switch {
			case counts && n > 0 && (k == "estimatedTokensAfter" || k == "tokensBefore" && name == "compact-auto-overflow"):
				have[k] = v
			case k == "path" && reflect.TypeOf(v) == reflect.TypeFor[string]():
				if have[k] == ownPage(v.(string)) {
					have[k] = v
				}
			case k == "summary":
				if text, ok := have[k].(string); ok {
					have[k] = strings.ReplaceAll(text, compact.SplitTurnHeading(), "**Turn Context (split turn):**")
				}
			default:
				own(name, v, have[k])
			}
		}
	case []any:
		if have, ok := got.([]any); ok {
			for i := range min(len(want), len(have)) {
				own(name, want[i], have[i])
			}
		}
	}
}

// ownFile takes the name of the file with the whole output of a command out of
// the comparison: of ours there must be one that has it all.
func ownFile(answers []map[string]any) {
	whole := ""
	for _, r := range answers {
		if delta, ok := r["delta"].(string); ok {
			whole += delta
		}
		data, ok := r["data"].(map[string]any)
		path, named := data["fullOutputPath"].(string)
		if !ok || !named {
			continue
		}
		content, err := os.ReadFile(path)
		if strings.Contains(path, "{{") || err == nil && string(content) == whole {
			data["fullOutputPath"] = "a file"
			if err == nil {
				os.Remove(path)
			}
		}
	}
}

func (c *rpcCase) compareKinds(t *testing.T, w *world, o outcome) {
	got := []any{}
	for _, s := range w.sessions(t) {
		got = append(got, s.(map[string]any)["kinds"])
	}
	err := w.b.anySet("sessionEntryKinds", c.Expect.Kinds, got, func(b *bindings, want, got any) error {
		return b.value(matchRules{}, "session", "", want, got)
	})
	if err != nil {
		o.add("sessionEntryKinds", "%v", err)
	}
}

func (c *rpcCase) compareRequests(w *world, o outcome, name string) {
	got := w.srv.requests()
	if c.Expect.Requests == nil {
		for _, unrecorded := range []string{"retry-*", "error-*", "compact-*", "prompt-anthropic", "bash-truncated", "last-assistant-text"} {
			if matchCase(unrecorded, name) {
				return
			}
		}
	}
	if len(got) != len(c.Expect.Requests) {
		o.add("modelRequests", "%d, want %d", len(got), len(c.Expect.Requests))
		return
	}
	for i, want := range c.Expect.Requests {
		have := map[string]any{"model": got[i].Model}
		messages := []any{}
		for _, m := range got[i].withoutSystem() {
			messages = append(messages, decodedJSON(m))
		}
		have["messages"] = messages
		for _, k := range []string{"reasoning_effort", "thinking"} {
			if raw, ok := got[i].Body[k]; ok {
				have[k] = decodedJSON(raw)
			}
		}
		field := fmt.Sprintf("modelRequests[%d]", i)
		if err := w.b.value(matchRules{loose: []string{"messages"}}, field, "", any(want), any(have)); err != nil {
			o.add(field, "%v", err)
		}
	}
}
