package rpc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm/faux"
)

func TestPrompt(t *testing.T) {
	r := start(t, faux.Say("hello"))
	if d := r.data("prompt", "message", "hi"); d["disposition"] != "started" {
		t.Errorf("%v", d)
	}
	r.wait(1, typed("agent_settled"))
	types := r.types()
	if at, from := slices.Index(types, "response:prompt"), slices.Index(types, "agent_start"); at > from {
		t.Errorf("the answer to the prompt comes behind agent_start: %q", types)
	}
	if d := r.data("get_last_assistant_text"); d["text"] != "hello" {
		t.Errorf("%v", d)
	}
	if d := r.data("get_state"); d["isStreaming"] != false || d["messageCount"] != 2.0 {
		t.Errorf("%v", d)
	}
	if err := r.end(); err != nil {
		t.Error(err)
	}
	if r.host.closed != 1 {
		t.Errorf("closed %d times", r.host.closed)
	}
}

// The last answer is the last one that says something, or that ended as it
// should without.
func TestLastAnswer(t *testing.T) {
	r := start(t, faux.Say(" hello "), faux.Fail("invalid key"), faux.Say(""), faux.Fail("invalid key"))
	for i, want := range []any{"hello", "hello", nil, nil} {
		r.data("prompt", "message", "go")
		r.wait(i+1, typed("agent_settled"))
		if d := r.data("get_last_assistant_text"); d["text"] != want {
			t.Errorf("after prompt %d: %v, want %v", i+1, d, want)
		}
	}
	if err := r.end(); err != nil {
		t.Error(err)
	}
}

// A prompt that is written when agent_end was read starts, also where the run is
// not put away yet; what is said behind it is answered meanwhile.
func TestPromptAtAgentEnd(t *testing.T) {
	r := start(t, faux.Say("one"), faux.Hang(faux.Text("two")))
	r.data("get_state")
	hold := make(chan struct{})
	defer r.host.last.Subscribe(func(_ context.Context, ev harness.Event) error {
		if ev.Type == agent.AgentEnd {
			<-hold
		}
		return nil
	})()
	r.data("prompt", "message", "first")
	r.wait(1, typed("agent_end"))
	r.write(`{"id":2,"type":"prompt","message":"second"}` + "\n" + `{"id":3,"type":"prompt","message":"third"}` + "\n")
	r.data("get_state")
	close(hold)
	if a := r.wait(1, answers(2.0)); a["success"] != true {
		t.Errorf("%v", a)
	}
	if a := r.wait(1, answers(3.0)); a["success"] != false {
		t.Errorf("a prompt at once with another: %v", a)
	}
	r.data("abort")
	r.wait(2, typed("agent_settled"))
	if err := r.end(); err != nil {
		t.Error(err)
	}
}

// Of two prompts at once the first one starts; what is said behind it joins it,
// and an abort ends it even before it has begun.
func TestOrderOfOneWrite(t *testing.T) {
	for range 20 {
		r := start(t, faux.Hang(faux.Text("partial")), faux.Say("never"))
		r.write(`{"id":1,"type":"prompt","message":"one"}` + "\n" + `{"id":2,"type":"prompt","message":"two"}` + "\n" +
			`{"id":3,"type":"abort"}` + "\n" + `{"id":4,"type":"get_messages"}` + "\n")
		r.wait(1, answers(3.0))
		first, second := r.wait(1, answers(1.0)), r.wait(1, answers(2.0))
		if first["success"] != true {
			t.Errorf("%v", first)
		}
		settled := r.wait(1, typed("agent_settled"))
		if settled["aborted"] != true {
			t.Errorf("%v", settled)
		}
		if second["success"] == true { // it entered when the first one was over
			r.wait(2, typed("agent_settled"))
		}
		if d := r.data("get_state"); d["isStreaming"] != false {
			t.Errorf("not idle after the abort: %v", d)
		}
		if err := r.end(); err != nil {
			t.Error(err)
		}
	}
}

func TestBadCommands(t *testing.T) {
	r := start(t)
	for i, c := range []struct{ line, want string }{
		{"", "Failed to parse command: "},
		{"{nope", "Failed to parse command: "},
		{`{"type":"abort_retry"} x`, "Failed to parse command: "},
		{strings.Repeat("[", 100_000), "Failed to parse command: "},
		{"null", "Unknown command: "}, {"[]", "Unknown command: "}, {"5", "Unknown command: "}, {`{"type":null}`, "Unknown command: null"},
		{`{"type":5}`, "Unknown command: 5"}, {`{"type":""}`, "Unknown command: "}, {`{"type":"prompt "}`, "Unknown command: prompt "},
		{`{"type":"prompt"}`, `prompt needs "message"`}, {`{"type":"prompt","message":5}`, `prompt needs "message" as a string`},
		{`{"type":"prompt","message":"x","images":"y"}`, "prompt needs "}, {`{"type":"steer","message":"x","images":[{}]}`, "steer needs "},
		{`{"type":"set_model","provider":"p"}`, `set_model needs "modelId"`}, {`{"type":"set_model","provider":"p","modelId":"m"}`, "Model not found: p/m"},
		{`{"type":"set_steering_mode","mode":"some"}`, "the mode "}, {`{"type":"set_auto_retry"}`, "set_auto_retry needs "},
		{`{"type":"fork"}`, "Invalid entry ID for forking"}, {`{"type":"fork","entryId":5}`, "Invalid entry ID for forking"},
		{`{"type":"get_entries","since":""}`, "Entry not found: "}, {`{"type":"get_entries","since":5}`, "Entry not found: 5"},
		{`{"type":"fork","entryId":"x"}`, "Invalid entry ID for forking"}, {`{"type":"clone"}`, "This session has not been saved yet."},
		{`{"type":"switch_session"}`, "switch_session needs "}, {`{"type":"get_entries","since":"x"}`, "Entry not found: x"},
		{`{"type":"set_session_name","name":"\u00a0"}`, "Session name cannot be empty"},
		{`{"type":"compact"}`, "Nothing to compact (session too small)"}, {`{"type":"compact","customInstructions":5}`, "compact needs "},
	} {
		r.write(c.line + "\n")
		got := r.wait(i+1, typed("response"))
		if text, _ := got["error"].(string); got["success"] != false || !strings.HasPrefix(text, c.want) {
			t.Errorf("%.60q: %v", c.line, got)
		}
	}
	r.write(`{"type":"extension_ui_response","id":"late","value":"x"}` + "\n")
	if d := r.call("abort_retry"); d["success"] != true {
		t.Errorf("%v", d)
	}
	if err := r.end(); err != nil {
		t.Error(err)
	}
}

func TestIDs(t *testing.T) {
	r := start(t)
	for _, id := range []string{`7`, `null`, `""`, `{"a":[1,2]}`, `"\u2028"`, `1e40`, `"\ud83d"`} {
		r.write(`{"id":` + id + `,"type":"abort_retry"}` + "\n")
	}
	r.write(`{"type":"abort_retry"}` + "\n")
	r.wait(8, typed("response"))
	r.mu.Lock()
	if _, has := r.records[7]["id"]; has {
		t.Errorf("%v", r.records[7])
	}
	if r.records[0]["id"] != 7.0 || r.records[1]["id"] != nil || r.records[2]["id"] != "" {
		t.Errorf("%v", r.records)
	}
	r.mu.Unlock()
	r.end()
}

// A command of 50 MB is one like any other.
func TestHugeLine(t *testing.T) {
	host := newTestHost(t, faux.Say("read"))
	r := newRig(t, host)
	in, inW := io.Pipe()
	out, outW := io.Pipe()
	r.in = inW
	r.run(t, in, outW, func() { outW.Close() })
	b := bufio.NewReaderSize(out, 1<<20)
	next := func(text string) string {
		t.Helper()
		for {
			line, err := b.ReadString('\n')
			if err != nil {
				t.Fatalf("%s did not come: %v", text, err)
			}
			if strings.Contains(line[:min(100, len(line))], text) {
				return line
			}
		}
	}
	long := strings.Repeat("0123456789", 5<<20)
	go io.WriteString(inW, `{"type":"prompt","message":"`+long+`"}`+"\n")
	next("started")
	next("agent_settled")
	go io.WriteString(inW, `{"type":"get_fork_messages"}`+"\n")
	if line := next("get_fork_messages"); !strings.Contains(line, `"text":"`+long+`"`) {
		t.Errorf("%d bytes came back of %d", len(line), len(long))
	}
	if err := r.end(); err != nil {
		t.Error(err)
	}
}

// Ten thousand commands in one go, a run and shell commands among them: each is
// answered once, those that wait for nothing in their order.
func TestManyCommands(t *testing.T) {
	const n = 10_000
	r := start(t, faux.Say("one"), faux.Say("two"))
	go func() {
		w := bufio.NewWriter(r.in)
		for i := range n {
			switch {
			case i == 100:
				fmt.Fprintf(w, `{"id":%d,"type":"prompt","message":"go"}`+"\n", i)
			case i%1000 == 500:
				fmt.Fprintf(w, `{"id":%d,"type":"bash","command":"echo %d"}`+"\n", i, i)
			case i%7 == 0:
				fmt.Fprintf(w, `{"id":%d,"type":"steer","message":"s%d"}`+"\n", i, i)
			case i%7 == 1:
				fmt.Fprintf(w, `{"id":%d,"type":"clear_queue"}`+"\r\n", i)
			case i%7 == 2:
				fmt.Fprintf(w, `{"id":%d,"type":"nonsense"}`+"\n", i)
			default:
				fmt.Fprintf(w, `{"id":%d,"type":"get_state"}`+"\n", i)
			}
		}
		w.Flush()
	}()
	r.wait(n, typed("response"))
	r.data("abort")
	last := -1.0
	seen := map[float64]int{}
	r.mu.Lock()
	for _, rec := range r.records {
		id, ok := rec["id"].(float64)
		if rec["type"] != "response" || !ok {
			continue
		}
		seen[id]++
		if c := rec["command"]; c != "prompt" && c != "bash" {
			if id < last {
				t.Errorf("%v is answered behind %v", id, last)
			}
			last = id
		}
	}
	r.mu.Unlock()
	for id, times := range seen {
		if times != 1 {
			t.Errorf("%v is answered %d times", id, times)
		}
	}
	if err := r.end(); err != nil {
		t.Error(err)
	}
}

// A reader that stops holds up the run and costs no memory; when it reads on, it
// gets everything.
func TestReaderThatStops(t *testing.T) {
	text := strings.Repeat("words and more words ", 5_000) // a record for each few bytes
	host := newTestHost(t, faux.Say(text))
	r := newRig(t, host)
	in, inW := io.Pipe()
	out, outW := io.Pipe()
	r.in = inW
	r.run(t, in, outW, func() { outW.Close() })
	r.write(`{"id":1,"type":"prompt","message":"go"}` + "\n")
	b := bufio.NewReaderSize(out, 16)
	deltas, states, settled := 0, 0, false
	read := func() {
		raw, err := b.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		var rec map[string]any
		if err := json.Unmarshal(raw, &rec); err != nil {
			t.Fatal(err)
		}
		switch rec["type"] {
		case "message_update":
			if e := rec["assistantMessageEvent"].(map[string]any); e["type"] == "text_delta" {
				deltas += len(e["delta"].(string))
			}
		case "response":
			if rec["command"] == "get_state" {
				states++
			}
		case "agent_settled":
			settled = true
		}
	}
	for range 20 { // the run is under way
		read()
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	// It stands still once what waits for the reader is full: the model is not
	// read any further, and memory stays as it is.
	before := heap()
	for same := 0; same < 5; {
		time.Sleep(20 * time.Millisecond)
		now := heap()
		if now < before+1<<20 && before < now+1<<20 {
			same++
		} else {
			same = 0
		}
		before = now
	}
	if before > 64<<20 {
		t.Errorf("%d bytes while the reader stands still", before)
	}
	// Commands that nobody reads the answers of do not grow without bound either.
	go func() {
		for i := range 1000 {
			if _, err := fmt.Fprintf(inW, `{"id":"s%d","type":"get_state"}`+"\n", i); err != nil {
				return
			}
		}
	}()
	for !settled || states < 1000 {
		read()
	}
	if deltas != len(text) {
		t.Errorf("%d bytes of text came, of %d", deltas, len(text))
	}
	if err := r.end(); err != nil {
		t.Error(err)
	}
}

// A reader that stopped for good keeps neither the program from ending nor the
// session from being closed: at once when a signal ends it, after some patience at
// the end of the input.
func TestEndWithAStoppedReader(t *testing.T) {
	for _, signal := range []bool{true, false} {
		host := newTestHost(t, faux.Say(strings.Repeat("many words ", 100_000)))
		r := newRig(t, host)
		r.patience = 50 * time.Millisecond
		in, inW := io.Pipe()
		_, outW := io.Pipe()
		r.in = inW
		r.run(t, in, outW, func() {})
		<-r.ui
		r.write(`{"id":1,"type":"prompt","message":"go"}` + "\n" + strings.Repeat(`{"id":2,"type":"get_state"}`+"\n", 1000))
		if signal {
			r.cancel()
		} else {
			inW.Close()
		}
		select {
		case err := <-r.ended:
			if signal != (err == nil) || err != nil && !strings.Contains(err.Error(), "were not read") {
				t.Errorf("signal %v: %v", signal, err)
			}
		case <-time.After(60 * time.Second):
			t.Fatal("it does not end")
		}
		if host.closed != 1 {
			t.Error("the session is not closed")
		}
	}
}

type closedOutput struct{}

func (closedOutput) Write([]byte) (int, error) { return 0, errTest }

// A closed output is the end, and what was done is in the session.
func TestClosedOutput(t *testing.T) {
	host := newTestHost(t, faux.Hang(faux.Text("partial")))
	r := newRig(t, host)
	in, inW := io.Pipe()
	r.in = inW
	r.run(t, in, closedOutput{}, func() {})
	r.write(`{"id":1,"type":"prompt","message":"go"}` + "\n")
	select {
	case err := <-r.ended:
		if err == nil || !strings.Contains(err.Error(), "could not be written") {
			t.Errorf("%v", err)
		}
	case <-time.After(60 * time.Second):
		t.Fatal("it does not end")
	}
	files, err := filepath.Glob(filepath.Join(host.dir, "s", "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil || !strings.Contains(string(b), `"go"`) || !strings.HasSuffix(string(b), "\n") {
		t.Errorf("%v: %s", err, b)
	}
}

// The end of the input aborts what runs; commands before it are answered.
func TestEndOfInput(t *testing.T) {
	r := start(t, faux.Hang(faux.Text("partial")))
	r.data("prompt", "message", "go")
	r.wait(1, func(rec map[string]any) bool {
		e, _ := rec["assistantMessageEvent"].(map[string]any)
		return e["type"] == "text_delta"
	})
	r.write(`{"id":"b","type":"bash","command":"echo begun; sleep 60"}` + "\n")
	r.wait(1, typed("bash_execution_update"))
	r.write(`{"id":"z","type":"get_last_assistant_text"}`)
	if err := r.end(); err != nil {
		t.Error(err)
	}
	r.wait(1, answers("z"))
	if types := r.types(); slices.Contains(types, "agent_end") || slices.Contains(types, "response:bash") {
		t.Errorf("records behind the end of the input: %q", types)
	}
	files, _ := filepath.Glob(filepath.Join(r.host.dir, "s", "*.jsonl"))
	b, err := os.ReadFile(files[0])
	if err != nil || !strings.Contains(string(b), `"stopReason":"aborted"`) || !strings.Contains(string(b), `"partial"`) || !strings.Contains(string(b), `"begun\n"`) {
		t.Errorf("%v: %s", err, b)
	}
}

func TestShellCommands(t *testing.T) {
	r := start(t, faux.Say("ok"))
	d := r.data("bash", "command", "printf '\\033[1mhi\\033[0m\\n'")
	if d["output"] != "hi\n" || d["exitCode"] != 0.0 || d["truncated"] != false {
		t.Errorf("%v", d)
	}
	// More than run at once, and all of them end with an abort.
	const n = maxShells + 10
	for i := range n {
		r.write(fmt.Sprintf(`{"id":"s%d","type":"bash","command":"echo begun; sleep 60","excludeFromContext":true}`+"\n", i))
	}
	r.wait(maxShells, func(rec map[string]any) bool { return rec["delta"] == "begun\n" })
	r.call("abort_bash")
	for i := range n {
		if a := r.wait(1, answers(fmt.Sprintf("s%d", i))); a["data"].(map[string]any)["cancelled"] != true {
			t.Errorf("%v", a)
		}
	}
	if d := r.data("bash", "command", "echo again"); d["output"] != "again\n" {
		t.Errorf("a command after an abort: %v", d)
	}
	if n, _ := r.data("get_messages")["messages"].([]any); len(n) != maxShells+12 {
		t.Errorf("%d messages", len(n))
	}
	r.end()
}

// A session takes the place of another with everything that is active ending in
// the old one, and a session that cannot be opened changes nothing.
func TestSessions(t *testing.T) {
	r := start(t, faux.Say("one"), faux.Hang(faux.Text("partial")), faux.Say("three"))
	r.data("prompt", "message", "first")
	r.wait(1, typed("agent_settled"))
	before := r.data("get_state")["sessionFile"].(string)

	r.data("prompt", "message", "second")
	r.wait(2, typed("agent_start"))
	r.write(`{"id":"sh","type":"bash","command":"echo begun; sleep 60"}` + "\n")
	r.wait(1, typed("bash_execution_update"))
	bad := filepath.Join(r.host.dir, "bad.jsonl")
	if err := os.WriteFile(bad, []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if a := r.call("switch_session", "sessionPath", bad); a["success"] != false {
		t.Errorf("%v", a)
	}
	if d := r.data("get_state"); d["isStreaming"] != true || d["sessionFile"] != before {
		t.Errorf("a session that cannot be opened changed something: %v", d)
	}
	r.data("new_session")
	types := r.types()
	if !slices.Contains(types, "response:bash") || slices.Index(types, "response:bash") > slices.Index(types, "response:new_session") {
		t.Errorf("%q", types)
	}
	if d := r.data("get_state"); d["messageCount"] != 0.0 || d["sessionFile"] == before {
		t.Errorf("%v", d)
	}
	r.data("switch_session", "sessionPath", before)
	list := r.data("get_messages")["messages"].([]any)
	if len(list) != 5 {
		t.Errorf("%d messages: %v", len(list), list)
	}
	r.data("switch_session", "sessionPath", before) // which is open already
	forks := r.data("get_fork_messages")["messages"].([]any)
	second := forks[1].(map[string]any)
	if d := r.data("fork", "entryId", second["entryId"]); d["text"] != "second" || d["cancelled"] != false {
		t.Errorf("%v", d)
	}
	r.data("prompt", "message", "otherwise")
	r.wait(3, typed("agent_settled"))
	r.data("clone")
	if d := r.data("get_last_assistant_text"); d["text"] != "three" {
		t.Errorf("%v", d)
	}
	if err := r.end(); err != nil {
		t.Error(err)
	}
	if r.host.closed != 5 {
		t.Errorf("%d conversations closed", r.host.closed)
	}
}

func TestSwitches(t *testing.T) {
	r := start(t)
	r.data("set_steering_mode", "mode", "all")
	r.data("set_follow_up_mode", "mode", "all")
	r.data("set_auto_compaction", "enabled", false)
	r.data("set_auto_retry", "enabled", false)
	if d := r.data("get_state"); d["steeringMode"] != "all" || d["followUpMode"] != "all" || d["autoCompactionEnabled"] != false {
		t.Errorf("%v", d)
	}
	for name, want := range map[string]any{"steeringMode": "all", "followUpMode": "all", "compaction.enabled": false, "retry.enabled": false} {
		if got := r.host.settings()[name]; got != want {
			t.Errorf("%s is saved as %v", name, got)
		}
	}
	r.end()
}

// Pictures of a prompt are scaled to what the model takes, and it is told so.
func TestPictures(t *testing.T) {
	r := start(t, faux.Say("seen"))
	picture := func(w, h int) map[string]any {
		var b bytes.Buffer
		if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
			t.Fatal(err)
		}
		return map[string]any{"type": "image", "data": base64.StdEncoding.EncodeToString(b.Bytes()), "mimeType": "image/png"}
	}
	small := picture(10, 10)
	bad := map[string]any{"type": "image", "data": "!!", "mimeType": "image/png"}
	r.data("prompt", "message", "see", "images", []any{picture(3000, 1000), small, bad})
	r.wait(1, typed("agent_settled"))
	m := r.data("get_messages")["messages"].([]any)[0].(map[string]any)["content"].([]any)
	text := m[0].(map[string]any)["text"].(string)
	if len(m) != 3 || !strings.HasPrefix(text, "see\n\n[Image: original 3000x1000, displayed at 2000x667.") || !strings.Contains(text, "\n[Image omitted") {
		t.Errorf("%d parts: %q", len(m), text)
	}
	if m[2].(map[string]any)["data"] != small["data"] {
		t.Error("a small picture was changed")
	}
	r.end()

	// Not scaled, one of a type that models do not take is converted all the same.
	host := newTestHost(t, faux.Say("seen"))
	host.large = true
	r = startAt(t, host)
	wide := picture(3000, 10)
	other := maps.Clone(wide)
	other["mimeType"] = "image/tiff"
	r.data("prompt", "message", "see", "images", []any{wide, other})
	r.wait(1, typed("agent_settled"))
	m = r.data("get_messages")["messages"].([]any)[0].(map[string]any)["content"].([]any)
	text = m[0].(map[string]any)["text"].(string)
	if len(m) != 3 || text != "see\n\n[Image converted from image/tiff to image/png.]" || m[1].(map[string]any)["data"] != wide["data"] || m[2].(map[string]any)["mimeType"] != "image/png" {
		t.Errorf("%d parts: %q", len(m), text)
	}
	r.end()
}
