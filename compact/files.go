package compact

import (
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// Files are the paths of files that a conversation worked on, in the order of
// first use. They are those that the tools read, write and edit were called
// with, whatever came of the call.
type Files struct {
	Read    []string
	Written []string
	Edited  []string
}

// Lists are the files that were only read, and those that were changed, sorted
// by UTF-16 code units.
func (f *Files) Lists() (read, modified []string) {
	modified = slices.Concat([]string{}, f.Edited, f.Written)
	slices.SortFunc(modified, compareUTF16)
	modified = slices.Compact(modified)
	read = []string{}
	for _, path := range f.Read {
		if !slices.Contains(f.Edited, path) && !slices.Contains(f.Written, path) {
			read = append(read, path)
		}
	}
	slices.SortFunc(read, compareUTF16)
	return read, modified
}

// FormatFiles is how the lists stand at the end of a summary: a blank line and
// a tag around each that is not empty.
func FormatFiles(read, modified []string) string {
	var b []byte
	for _, list := range []struct {
		tag   string
		paths []string
	}{{"read-files", read}, {"modified-files", modified}} {
		if len(list.paths) == 0 {
			continue
		}
		b = append(b, "\n\n<"+list.tag+">\n"...)
		for _, p := range list.paths {
			b = append(append(b, p...), '\n')
		}
		b = append(b, "</"+list.tag+">"...)
	}
	return string(b)
}

// details is the form in which entries keep the lists.
func (f *Files) details() jsontext.Value {
	read, modified := f.Lists()
	b := []byte(`{"readFiles":`)
	b = jsonwire.AppendStrings(b, read)
	b = append(b, `,"modifiedFiles":`...)
	b = jsonwire.AppendStrings(b, modified)
	return append(b, '}')
}

// addDetails takes over lists that an entry kept.
func (f *Files) addDetails(details jsontext.Value) {
	if !jsonwire.IsObject(details) {
		return
	}
	addList(&f.Read, jsonwire.Get(details, "readFiles"))
	addList(&f.Edited, jsonwire.Get(details, "modifiedFiles"))
}

func addList(to *[]string, raw []byte) {
	var r jsonwire.Reader
	r.Reset(raw)
	if r.Kind() != '[' {
		return
	}
	for r.Array(); r.More(); {
		if s, ok := jsonwire.StringValue(r.Raw()); ok {
			addPath(to, s)
		}
	}
}

func addPath(to *[]string, path string) {
	if path != "" && !slices.Contains(*to, path) {
		*to = append(*to, path)
	}
}

// addMessage takes the calls of an answer and, where nested is set, those that
// a tool made by itself.
func (f *Files) addMessage(m agent.Message, nested bool) {
	switch m := m.(type) {
	case *llm.Assistant:
		for _, c := range m.ToolCalls() {
			f.addCall(c.Name, c.Arguments)
		}
	case *llm.ToolResult:
		if nested && jsonwire.IsObject(m.NestedCalls) {
			f.addNested(jsonwire.Get(m.NestedCalls, "calls"))
		}
	}
}

func (f *Files) addNested(calls []byte) {
	var r jsonwire.Reader
	r.Reset(calls)
	if r.Kind() != '[' {
		return
	}
	for r.Array(); r.More(); {
		call := r.Raw()
		if name, ok := jsonwire.StringValue(jsonwire.Get(call, "name")); ok {
			f.addCall(name, jsonwire.Get(call, "arguments"))
		}
	}
}

func (f *Files) addCall(name string, arguments []byte) {
	var to *[]string
	switch name {
	case "read":
		to = &f.Read
	case "write":
		to = &f.Written
	case "edit":
		to = &f.Edited
	default:
		return
	}
	if !jsonwire.IsObject(arguments) {
		return
	}
	if path, ok := jsonwire.StringValue(jsonwire.Get(arguments, "path")); ok {
		addPath(to, path)
	}
}

// compareUTF16 orders texts as JavaScript does. It differs from the order of
// bytes only between characters beyond U+FFFF and those from U+E000 on.
func compareUTF16(a, b string) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	if i == len(a) || i == len(b) {
		return len(a) - len(b)
	}
	x, y := a[i], b[i]
	if utf8.RuneStart(x) && utf8.RuneStart(y) && (x >= 0xF0) != (y >= 0xF0) && min(x, y) >= 0xEE {
		return int(y) - int(x)
	}
	return int(x) - int(y)
}
