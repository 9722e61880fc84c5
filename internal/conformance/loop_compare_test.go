package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// loopCompare compares a recorded run with ours. Differences are booked under
// call.<id> when they are about one tool call, under order when only calls ran
// in another order, else under the member of the expectation.
func loopCompare(want, got map[string]any) outcome {
	o := outcome{}
	for name := range want {
		if _, ok := got[name]; !ok {
			o.add(name, "missing, want %s", loopShow(want[name]))
		}
	}
	for name, g := range got {
		w, ok := want[name]
		switch {
		case !ok:
			o.add(name, "not expected: %s", loopShow(g))
		case name == "events" || name == "log":
			loopCompareEvents(o, name, w.([]any), g.([]any))
		default:
			loopCompareValues(o, name, name, w, g)
		}
	}
	return o
}

// loopCallOf is the id of the call that a recorded object is about, "" for none.
func loopCallOf(v any) string {
	m, _ := v.(map[string]any)
	if inner, ok := m["message"].(map[string]any); ok && m["type"] != "turn_end" {
		m = inner
	}
	id, _ := m["call"].(string)
	return id
}

func loopCompareEvents(o outcome, field string, want, got []any) {
	split := func(list []any) (spine []any, calls map[string][]any) {
		calls = map[string][]any{}
		for _, ev := range list {
			if id := loopCallOf(ev); id != "" {
				calls[id] = append(calls[id], ev)
			} else {
				spine = append(spine, ev)
			}
		}
		return spine, calls
	}
	key := func(ev any) string {
		m := ev.(map[string]any)
		return fmt.Sprint(m["type"], m["hook"], loopCallOf(ev))
	}
	wantSpine, wantCalls := split(want)
	gotSpine, gotCalls := split(got)
	loopCompareValues(o, field, field, loopList(wantSpine), loopList(gotSpine))
	for id, w := range wantCalls {
		loopCompareValues(o, "call."+id, field, loopList(w), loopList(gotCalls[id]))
	}
	for id, g := range gotCalls {
		if wantCalls[id] == nil {
			o.add("call."+id, "not expected: %s", loopShow(g))
		}
	}
	var wantKeys, gotKeys []string
	for _, ev := range want {
		wantKeys = append(wantKeys, key(ev))
	}
	for _, ev := range got {
		gotKeys = append(gotKeys, key(ev))
	}
	if !slices.Equal(wantKeys, gotKeys) {
		o.add("order", "%s: %s\nwant %s", field, strings.Join(gotKeys, ", "), strings.Join(wantKeys, ", "))
	}
}

func loopList(l []any) any {
	if l == nil {
		return []any{}
	}
	return l
}

// loopCompareValues compares deeply. A difference inside a tool result belongs to
// its call.
func loopCompareValues(o outcome, field, path string, want, got any) {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			break
		}
		if id := loopCallOf(w); id != "" && id == loopCallOf(g) {
			field = "call." + id
		}
		for name := range g {
			if _, ok := w[name]; !ok {
				o.add(field, "%s.%s: not expected: %s", path, name, loopShow(g[name]))
			}
		}
		for name, v := range w {
			if _, ok := g[name]; !ok {
				o.add(field, "%s.%s: missing, want %s", path, name, loopShow(v))
				continue
			}
			loopCompareValues(o, field, path+"."+name, v, g[name])
		}
		return
	case []any:
		g, ok := got.([]any)
		if !ok {
			break
		}
		for i := range min(len(w), len(g)) {
			loopCompareValues(o, field, fmt.Sprintf("%s[%d]", path, i), w[i], g[i])
		}
		if len(w) != len(g) {
			o.add(field, "%s: %d elements, want %d", path, len(g), len(w))
		}
		return
	case string:
		if g, ok := got.(string); ok && loopSameText(w, g) {
			return
		}
	default:
		if want == got {
			return
		}
	}
	o.add(field, "%s: %s, want %s", path, loopShow(got), loopShow(want))
}

// loopSameText compares texts. «…» stands for own wording: any text, and for
// «TRUNCATED_CALL name» one that names the tool.
func loopSameText(want, got string) bool {
	if !strings.Contains(want, "«") {
		return want == got
	}
	literal, rest, _ := strings.Cut(want, "«")
	if !strings.HasPrefix(got, literal) {
		return false
	}
	got = got[len(literal):]
	for rest != "" {
		var inside, next string
		inside, rest, _ = strings.Cut(rest, "»")
		literal, next, _ = strings.Cut(rest, "«")
		end := len(got) - len(literal) // of the last one
		if next != "" {
			if end = strings.Index(got, literal); literal == "" {
				end = 1 // two placeholders side by side: the second takes the rest
			}
		}
		if end <= 0 || end > len(got) || !strings.HasPrefix(got[end:], literal) {
			return false
		}
		if _, name, named := strings.Cut(inside, " "); named && !strings.Contains(got[:end], name) {
			return false
		}
		got, rest = got[end+len(literal):], next
	}
	return true
}

func loopShow(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
