package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// exact are messages whose JSON comes back byte for byte.
var exact = []string{
	`{"role":"user","content":"hi","timestamp":1}`,
	`{"role":"user","content":[],"timestamp":1}`,
	`{"role":"user","content":[{"type":"text","text":"a","textSignature":""},{"type":"image","data":"AA==","mimeType":"image/png","x":[1]}],"timestamp":1,"later":{"b":1,"a":2}}`,
	`{"role":"user","content":[{"type":"audio","data":"AA==","n":{"z":1,"a":null}}],"timestamp":1}`,
	`{"role":"user","content":"half \ud83d and \ude48 other","timestamp":1}`,
	`{"role":"system","content":"s","sections":{"b":"x","a":null},"toolsAdded":[{"name":"t","description":"d","parameters":{"type":"object"},"constrainedSampling":false,"x":1}],"toolsRemoved":[{"name":"u"}],"timestamp":0}`,
	`{"role":"assistant","content":[{"type":"thinking","thinking":"t","thinkingSignature":"s","redacted":true},{"type":"text","text":"x","textSignature":"{\"v\":1}"},{"type":"toolCall","id":"1","name":"n","arguments":{"z":1,"a":123456789012345678901},"thoughtSignature":"g","namespace":"ns","argumentsError":"bad","k":true}],` +
		`"api":"a","provider":"p","model":"m","usage":{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"totalTokens":10,"cost":{"input":0.1,"output":1e-7,"cacheRead":0,"cacheWrite":0,"total":0.1000001,"totalFromProvider":true,"x":1},"cacheWrite1h":0,"reasoning":2,"y":[]},` +
		`"stopReason":"stop","timestamp":5,"deferred":{"id":"d"},"errorMessage":"e","responseId":"r","responseModel":"rm","rawStopReason":"end","providerThinkingLevel":"high",` +
		`"diagnostics":[{"type":"t","timestamp":1,"error":{"name":"E","message":"m","stack":"s","code":404},"details":{"a":1},"q":0}],"endTurn":false,"durationMs":0,"thinkingLevel":"low","zz":"\ud83d"}`,
	`{"role":"toolResult","toolCallId":"1","toolName":"n","content":[{"type":"text","text":"r"}],"details":{"b":[1.5]},"usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"nestedCalls":{"calls":[],"complete":true},"isError":true,"timestamp":6,"durationMs":7,"u":null}`,
}

func TestMessagesComeBackByteForByte(t *testing.T) {
	for _, s := range exact {
		m, err := ParseMessage([]byte(s))
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		if got := string(m.AppendJSON(nil)); got != s {
			t.Errorf("got  %s\nwant %s", got, s)
		}
		if got, err := json.Marshal(m); err != nil || !json.Valid(got) {
			t.Errorf("Marshal: %s, %v", got, err)
		}
	}
}

func TestMessagesAreReadLeniently(t *testing.T) {
	const usage = `"usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}`
	for _, c := range []struct{ name, in, out string }{
		{"null content", `{"role":"user","content":null}`, `{"role":"user","content":[],"timestamp":0}`},
		{"null answer", `{"role":"assistant","content":null,"diagnostics":null,"usage":null,"durationMs":null}`,
			`{"role":"assistant","content":[],"api":"","provider":"","model":"",` + usage + `,"stopReason":"","timestamp":0}`},
		{"null result", `{"role":"toolResult","content":null,"details":null,"usage":null}`, `{"role":"toolResult","toolCallId":"","toolName":"","content":[],"isError":false,"timestamp":0}`},
		{"answer as a string", `{"role":"toolResult","content":"x"}`, `{"role":"toolResult","toolCallId":"","toolName":"","content":[{"type":"text","text":"x"}],"isError":false,"timestamp":0}`},
		{"odd blocks", `{"role":"user","content":[1,null,{"type":"toolCall","arguments":"x"},{}],"timestamp":"soon"}`,
			`{"role":"user","content":[{"type":"toolCall","id":"","name":"","arguments":{}},{}],"timestamp":0}`},
		{"role at the end", ` { "content" : "x" , "role" : "user" } `, `{"role":"user","content":"x","timestamp":0}`},
		{"white space inside values", `{"role":"user","content":"x","e":{ "b" : 1.0 , "b" : 2 }}`, `{"role":"user","content":"x","timestamp":0,"e":{"b":2}}`},
		{"amounts beyond a float", `{"role":"toolResult","usage":{"input":1e400,"cost":{"input":1e400,"output":-1e400,"cacheWrite":1e309,"total":1e999}}}`,
			`{"role":"toolResult","toolCallId":"","toolName":"","content":[],` + usage + `,"isError":false,"timestamp":0}`},
		{"timestamp with a fraction", `{"role":"user","content":"x","timestamp":12.7}`, `{"role":"user","content":"x","timestamp":12}`},
	} {
		m, err := ParseMessage([]byte(c.in))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if got := string(m.AppendJSON(nil)); got != c.out {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.out)
		}
	}
}

func TestParseMessageRefuses(t *testing.T) {
	for _, s := range []string{``, `{`, `{"role":"user"`, `{"role":"user"}x`, `{"role":"user","content":"a}`, "{\"role\":\"user\"}\x00"} {
		if m, err := ParseMessage([]byte(s)); err == nil {
			t.Errorf("%q gives %s", s, m.AppendJSON(nil))
		}
	}
	_, err := ParseMessage([]byte(`{"role":"bashExecution"}`))
	if e, ok := errors.AsType[*UnknownRoleError](err); !ok || e.Role != "bashExecution" {
		t.Errorf("got %v", err)
	}
}

func TestParsedMessagesDoNotHoldTheirInput(t *testing.T) {
	in := []byte(exact[6])
	m, err := ParseMessage(in)
	if err != nil {
		t.Fatal(err)
	}
	for i := range in {
		in[i] = 'x'
	}
	if got := string(m.AppendJSON(nil)); got != exact[6] {
		t.Errorf("the message changed with its input: %s", got)
	}
}

func TestSnapshot(t *testing.T) {
	live := &Assistant{Content: []Block{&Text{Text: "a"}, &ToolCall{ID: "1", Arguments: []byte("{}"), Streaming: fixed(`{"k":1}`)}}}
	kept := live.Snapshot()
	live.Content[0].(*Text).Text = "ab"
	live.Content[1].(*ToolCall).Streaming = fixed(`{"k":12}`)
	if got := string(AppendBlocks(nil, kept.Content)); got != `[{"type":"text","text":"a"},{"type":"toolCall","id":"1","name":"","arguments":{"k":1}}]` {
		t.Error(got)
	}
	if c := kept.ToolCalls(); len(c) != 1 || c[0].Streaming != nil {
		t.Error("the copy still streams")
	}
}

type fixed string

func (f fixed) Value() jsontext.Value { return jsontext.Value(f) }

func TestHostsCannotBreakTheFile(t *testing.T) {
	m := &ToolResult{Details: []byte(`{"a":`), Content: []Block{&UnknownBlock{Type: "x", Raw: []byte(`{`)}}, Extra: []Member{{"e", []byte(`]`)}}}
	if got := m.AppendJSON(nil); !json.Valid(got) {
		t.Errorf("%s", got)
	}
}

func FuzzParseMessage(f *testing.F) {
	for _, s := range exact {
		f.Add([]byte(s))
	}
	for _, role := range []Role{RoleSystem, RoleUser, RoleAssistant, RoleToolResult, "other"} {
		f.Add([]byte(`{"role":"` + string(role) + `","content":[{"type":"text"}],"sections":{"a":1},"usage":{"cost":[]},"toolsRemoved":[1]}`))
		f.Add([]byte(`{"role":"` + string(role) + `","usage":{"input":1e400,"cost":{"total":1e400}},"timestamp":-1e400}`))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		m, err := ParseMessage(in)
		if err != nil {
			if _, ok := errors.AsType[*UnknownRoleError](err); ok && !json.Valid(in) {
				t.Fatalf("%q has an unknown role, but is no JSON", in)
			}
			return
		}
		if !json.Valid(in) {
			t.Fatalf("%q is no JSON, but was read", in)
		}
		out := m.AppendJSON(nil)
		if !json.Valid(out) {
			t.Fatalf("%q is written as %q", in, out)
		}
		again, err := ParseMessage(out)
		if err != nil {
			t.Fatalf("%q: %v", out, err)
		}
		if got := again.AppendJSON(nil); !bytes.Equal(got, out) {
			t.Fatalf("%q reads and writes as %q", out, got)
		}
	})
}
