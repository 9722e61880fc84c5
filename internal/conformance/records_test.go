package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pinch-agent/pinch/compact"
)

// Records of the JSON and RPC modes: reading them and bringing them into the
// shortened form of the vectors.

// parseRecords reads JSON lines.
func parseRecords(out string) ([]map[string]any, error) {
	var records []map[string]any
	for line := range strings.Lines(out) {
		if !strings.HasSuffix(line, "\n") {
			return nil, fmt.Errorf("no line end behind %q", clipText(line))
		}
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			return nil, fmt.Errorf("%w: %q", err, clipText(line))
		}
		if bytes.ContainsRune([]byte(line[:len(line)-1]), '\n') {
			return nil, fmt.Errorf("a line end inside %q", clipText(line))
		}
		records = append(records, v)
	}
	return records, nil
}

// recordRules are how records are compared: messages, entries and usage hold
// at least the expected keys, everything else exactly these.
var recordRules = matchRules{loose: []string{"message", "messages", "toolResults", "entry", "usage"}, tolerance: 1e-9}

// abridge brings a record of ours into the form in which want shows it.
func abridge(want, got map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range got {
		out[k] = v
	}
	switch got["type"] {
	case "message_update":
		// Usage of an update may be zero or final.
		delete(out, "usage")
	case "message_start", "message_end", "turn_end":
		out["message"] = abridgeMessage(got["message"])
		if m, ok := got["message"].(map[string]any); ok && got["type"] == "message_start" && m["stopReason"] == "pending" {
			if c, ok := m["content"].([]any); !ok || len(c) == 0 {
				// The recorded program may show its first empty block here.
				m = abridgeMessage(m).(map[string]any)
				m["content"] = recordContent(want)
				out["message"] = m
			}
		}
	case "agent_end":
		list, _ := got["messages"].([]any)
		expected, _ := want["messages"].([]any)
		shown := []any{}
		for i, m := range list {
			if i < len(expected) {
				if _, whole := expected[i].(map[string]any); whole {
					shown = append(shown, abridgeMessage(m))
					continue
				}
			}
			role := any(nil)
			if m, ok := m.(map[string]any); ok {
				role = m["role"]
			}
			shown = append(shown, role)
		}
		out["messages"] = shown
	}
	return out
}

// recordContent is the content that want expects of a starting answer when that is
// nothing but an empty block.
func recordContent(want map[string]any) any {
	m, _ := want["message"].(map[string]any)
	list, _ := m["content"].([]any)
	if len(list) == 1 {
		b, _ := list[0].(map[string]any)
		if b["text"] == "" || b["thinking"] == "" {
			return list
		}
	}
	return []any{}
}

// abridgeMessage shows a system message by the names of its sections and tools.
func abridgeMessage(v any) any {
	m, ok := v.(map[string]any)
	if !ok || m["role"] != "system" {
		return v
	}
	out := map[string]any{}
	for k, v := range m {
		out[k] = v
	}
	if tools, ok := m["toolsAdded"].([]any); ok {
		names := []any{}
		for _, t := range tools {
			if tool, ok := t.(map[string]any); ok {
				t = tool["name"] // else it is the name already
			}
			names = append(names, t)
		}
		out["toolsAdded"] = names
	}
	return out
}

// withSectionNames replaces the sections of a system message by their names in
// order, which decoding into a map loses.
func withSectionNames(line string, record map[string]any) {
	var raw struct {
		Message  json.RawMessage   `json:"message"`
		Messages []json.RawMessage `json:"messages"`
	}
	if json.Unmarshal([]byte(line), &raw) != nil {
		return
	}
	set := func(m any, raw json.RawMessage) {
		v, ok := m.(map[string]any)
		if !ok || v["role"] != "system" || v["sections"] == nil {
			return
		}
		var s struct{ Sections json.RawMessage }
		if json.Unmarshal(raw, &s) != nil {
			return
		}
		names := []any{}
		d := json.NewDecoder(bytes.NewReader(s.Sections))
		if _, err := d.Token(); err != nil {
			return
		}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return
			}
			var skip json.RawMessage
			if d.Decode(&skip) != nil {
				return
			}
			names = append(names, name)
		}
		v["sections"] = names
	}
	set(record["message"], raw.Message)
	if list, ok := record["messages"].([]any); ok {
		for i := range list {
			if i < len(raw.Messages) {
				set(list[i], raw.Messages[i])
			}
		}
	}
}

func isExecution(r map[string]any) bool {
	t, _ := r["type"].(string)
	return strings.HasPrefix(t, "tool_execution_")
}

// compareRecords compares a whole run. Executions of tools, which run in
// parallel, are compared call by call, everything else in order.
func (b *bindings) compareRecords(o outcome, want, got []map[string]any) {
	wantRest, wantCalls, wantStarts := splitExecutions(want)
	gotRest, gotCalls, gotStarts := splitExecutions(got)
	for i := range max(len(wantRest), len(gotRest)) {
		field := fmt.Sprintf("lines[%d]", i)
		switch {
		case i >= len(gotRest):
			o.add(field, "missing: %s", shortJSON(wantRest[i]))
		case i >= len(wantRest):
			o.add(field, "unexpected: %s", shortJSON(gotRest[i]))
		default:
			w := wantRest[i]
			if w["type"] == "message_update" {
				w = abridge(w, w)
			}
			g := gotRest[i]
			// The heading of a split turn has own words, and what a context takes
			// afterwards is the size of such words.
			if want, ok := w["result"].(map[string]any); ok && w["type"] == "compaction_end" {
				if got, ok := g["result"].(map[string]any); ok && got["estimatedTokensAfter"] != nil {
					got["estimatedTokensAfter"] = want["estimatedTokensAfter"]
					if text, ok := got["summary"].(string); ok {
						got["summary"] = strings.ReplaceAll(text, compact.SplitTurnHeading(), "**Turn Context (split turn):**")
					}
				}
			}
			if err := b.value(recordRules, fmt.Sprint(w["type"]), "", any(w), any(abridge(w, g))); err != nil {
				o.add(field, "%v", err)
				return // what follows is out of step
			}
		}
	}
	if !slices.Equal(wantStarts, gotStarts) {
		o.add("tool_execution_start", "calls %q, want %q", gotStarts, wantStarts)
	}
	for id, w := range wantCalls {
		b.compareExecution(o, id, w, gotCalls[id])
	}
	// A call that is refused ends before the next one starts.
	if startsLate(got) && !startsLate(want) {
		o.add("tool_execution_start", "a call starts after another has ended")
	}
}

// startsLate reports whether a call of a batch starts after another has ended.
func startsLate(records []map[string]any) bool {
	for _, batch := range executionBatches(records) {
		ended := false
		for _, r := range batch {
			if r["type"] == "tool_execution_end" {
				ended = true
			} else if ended && r["type"] == "tool_execution_start" {
				return true
			}
		}
	}
	return false
}

// splitExecutions takes the tool executions out of a run.
func splitExecutions(records []map[string]any) (rest []map[string]any, calls map[string][]map[string]any, starts []string) {
	calls = map[string][]map[string]any{}
	for _, r := range records {
		if !isExecution(r) {
			rest = append(rest, r)
			continue
		}
		id, _ := r["toolCallId"].(string)
		calls[id] = append(calls[id], r)
		if r["type"] == "tool_execution_start" {
			starts = append(starts, id)
		}
	}
	return rest, calls, starts
}

// executionBatches is the stretches of records between other records.
func executionBatches(records []map[string]any) [][]map[string]any {
	var out [][]map[string]any
	open := false
	for _, r := range records {
		if !isExecution(r) {
			open = false
			continue
		}
		if !open {
			out = append(out, nil)
			open = true
		}
		out[len(out)-1] = append(out[len(out)-1], r)
	}
	return out
}

// compareExecution compares one call: start and end as recorded; updates in any
// number, each text a prefix of the final one.
func (b *bindings) compareExecution(o outcome, id string, want, got []map[string]any) {
	field := "tool_execution." + id
	noUpdates := func(list []map[string]any) (out []map[string]any) {
		for _, r := range list {
			if r["type"] != "tool_execution_update" {
				out = append(out, r)
			}
		}
		return out
	}
	w, g := noUpdates(want), noUpdates(got)
	if len(w) != len(g) {
		o.add(field, "%d records, want %d", len(g), len(w))
		return
	}
	for i := range w {
		if err := b.value(recordRules, fmt.Sprint(w[i]["type"]), "", any(w[i]), any(g[i])); err != nil {
			o.add(field, "%v", err)
		}
	}
	final, ended := "", false
	for _, r := range got {
		if r["type"] == "tool_execution_end" {
			final, ended = resultText(r["result"]), true
		}
	}
	for _, r := range got {
		if r["type"] != "tool_execution_update" {
			continue
		}
		if text := resultText(r["partialResult"]); ended && !strings.HasPrefix(final, text) {
			o.add(field, "an update says %q, the end %q", clipText(text), clipText(final))
		}
		for _, key := range []string{"toolName", "args", "partialResult"} {
			if r[key] == nil {
				o.add(field, "an update without %s", key)
			}
		}
	}
}

func resultText(v any) string {
	m, _ := v.(map[string]any)
	list, _ := m["content"].([]any)
	var text strings.Builder
	for _, b := range list {
		if b, ok := b.(map[string]any); ok {
			s, _ := b["text"].(string)
			text.WriteString(s)
		}
	}
	return text.String()
}

// abridgedRecord reads a record in the form in which vectors show it: system
// messages, wherever they are, by the names of their sections and tools.
func abridgedRecord(line []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(line))
	v, err := abridgedValue(d)
	if err != nil {
		return nil, err
	}
	if !bytes.HasSuffix(line, []byte("\n")) || d.More() {
		return nil, errors.New("no line of its own")
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("no object")
	}
	return m, nil
}

func abridgedValue(d *json.Decoder) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := abridgedValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.Token()
		return list, err
	case json.Delim('{'):
		m := map[string]any{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			var v any
			if name == "sections" {
				v, err = sectionNames(d)
			} else {
				v, err = abridgedValue(d)
			}
			if err != nil {
				return nil, err
			}
			m[name.(string)] = v
		}
		_, err = d.Token()
		return abridgeMessage(m), err
	}
	return t, nil
}

// sectionNames are the names of an object in their order.
func sectionNames(d *json.Decoder) (any, error) {
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("the sections are no object")
	}
	names := []any{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		if _, err := abridgedValue(d); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	_, err := d.Token()
	return names, err
}
