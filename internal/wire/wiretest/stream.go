package wiretest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/llm"
)

// Read collects what a stream says: one line an event, and the message. The
// end of a block shows the block's text where it is not what the deltas said.
func Read(s *llm.Stream) (lines []string, m *llm.Assistant) {
	said := map[int]string{}
	for ev := range s.Events() {
		line := ev.Type.String()
		switch ev.Type {
		case llm.EventStart:
		case llm.EventDone, llm.EventError:
			m = ev.Message
			line += " " + string(m.StopReason)
		default:
			said[ev.Index] += ev.Delta
			line = fmt.Sprintf("%d %s %s", ev.Index, line, ev.Delta)
			if c := ev.ToolCall(); c != nil {
				line += fmt.Sprintf(" [%s %s %s]", c.ID, c.Name, c.Current())
			} else if end := ev.Type == llm.EventTextEnd || ev.Type == llm.EventThinkingEnd; end && ev.Text() != said[ev.Index] {
				line += "=" + ev.Text()
			}
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return lines, m
}

// Whole checks what Read collected of an answer, whatever bytes it was made of:
// it begins with its start or is an error alone, it ends once and last, its
// message reads back, and none of its calls still streams.
func Whole(t testing.TB, lines []string, m *llm.Assistant) {
	t.Helper()
	for i, line := range lines {
		end := strings.HasPrefix(line, "done ") || strings.HasPrefix(line, "error ")
		if end != (i == len(lines)-1) || (line == "start") != (i == 0 && !end) {
			t.Fatalf("event %d in the wrong place:\n%q", i, lines)
		}
	}
	json := m.AppendJSON(nil)
	if _, err := llm.ParseMessage(json); err != nil {
		t.Fatalf("the message does not read back: %v\n%s", err, json)
	}
	for _, c := range m.ToolCalls() {
		if c.Streaming != nil {
			t.Fatalf("a call still streams: %s", json)
		}
	}
}

// Learned checks an answer of a format that remembers how its events are made:
// one that forgets before each event gives the same. open starts either.
func Learned(t testing.TB, open func(forget bool) *llm.Stream) (lines []string, m *llm.Assistant) {
	t.Helper()
	read := func(forget bool) ([]string, *llm.Assistant) {
		lines, m := Read(open(forget))
		m.Timestamp, m.DurationMs = 0, nil
		for i := range m.Diagnostics {
			m.Diagnostics[i].Timestamp = 0
		}
		return lines, m
	}
	lines, m = read(false)
	Whole(t, lines, m)
	lines2, m2 := read(true)
	if got, want := m.AppendJSON(nil), m2.AppendJSON(nil); !slices.Equal(lines, lines2) || !bytes.Equal(got, want) {
		t.Errorf("memory changes the answer:\n%q\n%s\nwithout\n%q\n%s", lines, got, lines2, want)
	}
	return lines, m
}

// Keyed is a request with an API key.
func Keyed(messages ...llm.Message) *llm.Request {
	return &llm.Request{Messages: messages, Options: llm.Options{APIKey: "k"}}
}

// Own is an answer of m.
func Own(m *llm.Model, blocks ...llm.Block) *llm.Assistant {
	return &llm.Assistant{Content: blocks, API: m.API, Provider: m.Provider, Model: m.ID, StopReason: llm.StopStop}
}

// Call is a call of the tool called name, its arguments as JSON.
func Call(id, name, args string) *llm.ToolCall {
	return &llm.ToolCall{ID: id, Name: name, Arguments: jsontext.Value(args)}
}

// Result is the result of a call of the tool "look".
func Result(id string, blocks ...llm.Block) *llm.ToolResult {
	return &llm.ToolResult{ToolCallID: id, ToolName: "look", Content: blocks}
}

// Text is a text block.
func Text(s string) *llm.Text { return &llm.Text{Text: s} }
