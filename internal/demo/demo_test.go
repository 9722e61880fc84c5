package demo

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		http.DefaultClient.CloseIdleConnections()
		os.Exit(code)
	}))
}

func TestPlayer(t *testing.T) {
	for _, c := range []struct {
		name, scenario string
		last           []string
		want           []string // text of each answer, or its error
	}{
		{"in order", `{"turns":[{"text":"a"},{"text":["b","c"]}]}`, []string{"", "", ""}, []string{"a", "bc", "(The scenario is over.)"}},
		{"loop", `{"loop":true,"turns":[{"text":"a"},{"text":"b"}]}`, []string{"", "", ""}, []string{"a", "b", "a"}},
		{"when skips", `{"turns":[{"when":"^x","text":"a"},{"text":"b"},{"when":"y$","text":"c"}]}`, []string{"no", "my"}, []string{"b", "c"}},
		{"loop without a match ends", `{"loop":true,"turns":[{"when":"x","text":"a"}]}`, []string{"no", "x"}, []string{"(The scenario is over.)", "a"}},
		{"expect", `{"turns":[{"expect":"x","text":"a"},{"text":"b"}]}`, []string{"no", ""},
			[]string{`turn 1 of the scenario expected "x" in the last message, which says: no`, "b"}},
	} {
		s, err := Parse([]byte(c.scenario))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		p := player{scenario: s}
		var got []string
		for _, last := range c.last {
			turn := p.answer(last)
			got = append(got, strings.Join(turn.Text, "")+turn.Error)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ scenario, want string }{
		{`{`, "EOF"},
		{`{}`, "at least one turn"},
		{`{"turns":[]}`, "at least one turn"},
		{`{"turns":[{"txt":"a"}]}`, "txt"},
		{`{"turns":[{"text":1}]}`, "text"},
		{`{"turns":[{"when":"("}]}`, "turn 1: when"},
		{`{"turns":[{},{"expect":"["}]}`, "turn 2: expect"},
		{`{"turns":[{"status":200}]}`, "no failure"},
		{`{"turns":[{"toolCalls":[{"args":{}}]}]}`, "no name"},
		{`{"turns":[{"toolCalls":[{"name":"x","args":[1]}]}]}`, "must be an object"},
		{`{"turns":[{}]} x`, "x"},
	} {
		if _, err := Parse([]byte(c.scenario)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.scenario, err, c.want)
		}
	}
}

func TestLoad(t *testing.T) {
	for _, name := range Names() {
		s, err := Load(name)
		if err != nil || s.Description == "" {
			t.Errorf("%s: %v %q", name, err, s.Description)
		}
	}
	if _, err := Load("nobody"); err == nil || !strings.Contains(err.Error(), "fix-test") {
		t.Errorf("an unknown name: %v", err)
	}
	if _, err := Load(filepath.Join(t.TempDir(), "gone.json")); err == nil {
		t.Error("a missing file loads")
	}
	file := filepath.Join(t.TempDir(), "s.json")
	if err := os.WriteFile(file, []byte("\xEF\xBB\xBF{\"turns\":[{}]}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file); err != nil {
		t.Error(err)
	}
}

// ask sends one request and returns the status and the events, or the body of a failure.
func ask(t *testing.T, s *Server, key, body string) (int, []string, error) {
	t.Helper()
	req, err := http.NewRequest("POST", s.URL+"/v1/messages", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("x-api-key", key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var lines []string
	for sc := bufio.NewScanner(res.Body); ; {
		if !sc.Scan() {
			return res.StatusCode, lines, sc.Err()
		}
		if data, ok := strings.CutPrefix(sc.Text(), "data: "); ok || res.StatusCode != 200 {
			lines = append(lines, data)
		}
	}
}

func serve(t *testing.T, scenario string) *Server {
	t.Helper()
	s, err := Parse([]byte(scenario))
	if err != nil {
		t.Fatal(err)
	}
	srv, err := Serve(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close() })
	return srv
}

const userAsks = `{"model":"m","stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}`

func TestServer(t *testing.T) {
	srv := serve(t, `{"turns":[
		{"thinking":"hm","text":["You said ","{{prompt}}"],"toolCalls":[{"name":"read","args":{"path":"a long path that needs two pieces"}}],"usage":{"input":7,"output":3,"cacheRead":2}},
		{"expect":"^result$","status":529,"error":"busy"},
		{"text":"half","drop":true}]}`)
	status, events, err := ask(t, srv, srv.Key, userAsks)
	all := strings.Join(events, "\n")
	if status != 200 || err != nil {
		t.Fatal(status, err, all)
	}
	for _, want := range []string{
		`"thinking":"hm"`, `"text":"You said "`, `"text":"hi"`, `"name":"read"`, `"id":"toolu_demo_1"`,
		`"input_tokens":7`, `"cache_read_input_tokens":2`, `"output_tokens":3`, `"stop_reason":"tool_use"`, `"message_stop"`,
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no %s in\n%s", want, all)
		}
	}
	if n := strings.Count(all, "input_json_delta"); n < 2 {
		t.Errorf("the arguments came in %d piece", n)
	}
	status, events, _ = ask(t, srv, srv.Key, `{"stream":true,"messages":[{"role":"user","content":"hi"},
		{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"result"}]}]}]}`)
	if status != 529 || !strings.Contains(strings.Join(events, ""), `overloaded_error`) {
		t.Error(status, events)
	}
	if _, _, err := ask(t, srv, srv.Key, userAsks); err == nil {
		t.Error("a dropped answer ends in good order")
	}
}

func TestServerRefuses(t *testing.T) {
	srv := serve(t, `{"turns":[{"text":"a"}]}`)
	for _, c := range []struct {
		key, body string
		want      int
	}{
		{"wrong", userAsks, 401},
		{"", userAsks, 401},
		{srv.Key, "{", 400},
		{srv.Key, `{"messages":[]}`, 400}, // not streamed
		{srv.Key, userAsks, 200},
	} {
		if status, lines, _ := ask(t, srv, c.key, c.body); status != c.want {
			t.Errorf("%q %q: %d %s", c.key, c.body, status, lines)
		}
	}
}

// TestCloseEndsHangingAnswers also proves, with goleak, that nothing is left.
func TestCloseEndsHangingAnswers(t *testing.T) {
	srv := serve(t, `{"turns":[{"text":"a","hang":true}]}`)
	req, err := http.NewRequest("POST", srv.URL+"/v1/messages", bytes.NewBufferString(userAsks))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("x-api-key", srv.Key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := srv.Close(); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadAll(res.Body); err == nil {
		t.Error("the answer ended in good order")
	}
}

// TestSample proves that the demo's edit is what the sample needs.
func TestSample(t *testing.T) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("the sample's tests need the go command")
	}
	dir := t.TempDir()
	if err := WriteSample(dir); err != nil {
		t.Fatal(err)
	}
	run := func() error {
		cmd := exec.Command(goTool, "test", "./...")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		return nil
	}
	if err := run(); err == nil {
		t.Error("the sample's tests pass at once")
	}
	s, err := Load("fix-test")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "median.go")
	code, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, turn := range s.Turns {
		for _, c := range turn.ToolCalls {
			if c.Name != "edit" {
				continue
			}
			var args struct {
				Edits []struct{ OldText, NewText string }
			}
			if err := unmarshal(c.Args, &args); err != nil {
				t.Fatal(err)
			}
			for _, e := range args.Edits {
				if n := bytes.Count(code, []byte(e.OldText)); n != 1 {
					t.Errorf("%q stands %d times in the sample", e.OldText, n)
				}
				code = bytes.Replace(code, []byte(e.OldText), []byte(e.NewText), 1)
			}
		}
	}
	if err := os.WriteFile(file, code, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(); err != nil {
		t.Error(err)
	}
}

func unmarshal(b []byte, v any) error {
	return json.Unmarshal(b, v, json.MatchCaseInsensitiveNames(true))
}
