package tool

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/env"
	"github.com/pinch-agent/pinch/internal/jsonwire"
)

func TestMatchErrors(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		edits      []replacement
		want       string
	}{
		{"blank text found once", "a  b", []replacement{{"  ", "x"}}, ""},
		{"blank text found twice", "a  b  c", []replacement{{"  ", "x"}}, "Found 2 occurrences of the text in f."},
		{"blank text missing", "ab", []replacement{{"  ", "x"}}, "Could not find the exact text in f."},
		{"end of the text counts folded", "foo bar foo2", []replacement{{"foo ", "x"}}, "Found 2 occurrences of the text in f."},
		{"occurrences do not overlap", "aaa", []replacement{{"aa", "x"}}, ""},
		{"indices as given", "abcd", []replacement{{"cd", "1"}, {"bc", "2"}}, "edits[1] and edits[0] overlap in f."},
		{"a line between is another", "a\nx\nlonger\na\ny\nlonger\n", []replacement{{"a\ny\nlonger", "1"}}, ""},
		{"a line between is longer", "a\nxx\nlonger\n", []replacement{{"a\nx\nlonger", "1"}}, "Could not find the exact text in f."},
		{"touching", "abcd", []replacement{{"cd", "1"}, {"ab", "2"}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := matches(newSource(tt.text), "f", tt.edits)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("got %v", err)
			case tt.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.want)):
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// edited is the content of a file after edits, and its details.
func edited(file string, edits ...replacement) (after string, details jsontext.Value, err error) {
	pieces, details, err := applyEdits(file, "f", edits)
	return strings.Join(pieces, ""), details, err
}

func TestRewrite(t *testing.T) {
	for _, tt := range []struct {
		name, file string
		edits      []replacement
		want       string
	}{
		{"folded line keeps its CRLF", "a “x”\r\nb\r\n", []replacement{{`"x"`, "y"}}, "a y\r\nb\r\n"},
		{"two edits on one folded line", "“a” “b”  \nnext  \n", []replacement{{`"a"`, "1"}, {`"b"`, "2"}}, "1 2\nnext  \n"},
		{"folded range over lines", "“a\r\nb”  \r\n“c”\r\n", []replacement{{"\"a\nb\"", "x\ny\nz"}}, "x\r\ny\r\nz\r\n“c”\r\n"},
		{"folded range with its line feed", "“a”\n“b”\n", []replacement{{"\"a\"\n", ""}}, "“b”\n"},
		{"folded lines one after the other", "“a”\n“b”\n“c”\n", []replacement{{"\"a\"\n", "1\n"}, {"\"b\"\n", "2\n"}}, "1\n2\n“c”\n"},
		{"folded last line without line feed", "x\n“b”  ", []replacement{{`"b"`, "c"}}, "x\nc"},
		{"folded mode rewrites the line of an exact match", "“a”\nb – c  \n", []replacement{{`"a"`, "1"}, {"b", "B"}}, "1\nB - c\n"},
		{"only the old text is odd", "a\nb\n", []replacement{{"a  \nb", "x"}}, "x\n"},
		{"no line end at all", "abc", []replacement{{"b", "\n"}}, "a\nc"},
		{"lone CR beside LF is no model", "a\rb\rc\n", []replacement{{"b", "1\n2"}}, "a\r1\n2\rc\n"},
		{"mark kept", "\uFEFFa\r\nb", []replacement{{"b", "c\nd"}}, "\uFEFFa\r\nc\r\nd"},
		{"everything replaced", "a\r\n", []replacement{{"a\n", "b\nc\n"}}, "b\r\nc\r\n"},
		{"blanks before CRLF in plain text", "a \r\nb\t\r\nc\r\n", []replacement{{"a\nb\nc", "x\ny"}}, "x\r\ny\r\n"},
		{"old text with the blanks of its line", "a \r\nb\r\n", []replacement{{"a ", "1"}, {"b ", "2"}}, "1\r\n2\r\n"},
		{"last line ends with a lone CR", "a\r\nb\r", []replacement{{"b\n", "1\n2"}}, "a\r\n1\r\n2"},
		{"new lines end as the first of theirs", "“a”\nb\r\nc\r\n", []replacement{{"\"a\"\nb", "x"}}, "x\nc\r\n"},
		{"nothing is folded where only the old text is", "a\rb\n", []replacement{{"a ", "x\ny"}}, "x\ny\rb\n"},
		{"kept CR meets kept LF", "x\ra\n\nb\n", []replacement{{"a\n", ""}}, "x\r\n\nb\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, _, err := edited(tt.file, tt.edits...)
			if err != nil || got != tt.want {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

// An exact edit leaves every byte outside of the replaced ranges as it was, and
// the text with LF ends is the text with the ranges replaced.
func TestEditTouchesOnlyItsRanges(t *testing.T) {
	letter := rapid.SampledFrom([]string{"a", "b", "é", " ", "  ", "\t", "“", "\uFEFF", "😀"})
	ending := rapid.SampledFrom([]string{"\n", "\r\n", "\r", "\n\n"})
	rapid.Check(t, func(t *rapid.T) {
		// Unique marks stand for what the edits name.
		n := rapid.IntRange(1, 4).Draw(t, "edits")
		var file strings.Builder
		noise := func(name string) {
			for i := range rapid.IntRange(0, 6).Draw(t, name) {
				if rapid.Bool().Draw(t, fmt.Sprint(name, "end", i)) {
					file.WriteString(ending.Draw(t, fmt.Sprint(name, i)))
				} else {
					file.WriteString(letter.Draw(t, fmt.Sprint(name, i)))
				}
			}
		}
		var edits []replacement
		for i := range n {
			noise(fmt.Sprint("noise", i))
			mark := fmt.Sprintf("<%d>", i)
			file.WriteString(mark)
			edits = append(edits, replacement{mark, rapid.SampledFrom([]string{"", "x", "x\ny", "\n", "x\n", "\nx"}).Draw(t, mark)})
		}
		noise("rest")
		before := file.String()
		after, _, err := edited(before, edits...)
		if err != nil {
			t.Fatalf("%q: %v", before, err)
		}
		want, rest, old := withLF(before), after, before
		for _, e := range append(edits, replacement{}) {
			kept := old
			if e.old != "" {
				want = strings.Replace(want, e.old, e.new, 1)
				kept, old, _ = strings.Cut(old, e.old)
			}
			at := strings.Index(rest, kept)
			if at < 0 {
				t.Fatalf("%q became %q: %q is not kept", before, after, kept)
			}
			rest = rest[at+len(kept):]
		}
		if got := withLF(after); got != want {
			t.Fatalf("%q became %q, which reads %q; want %q", before, after, got, want)
		}
	})
}

func TestPrepareEdit(t *testing.T) {
	for in, want := range map[string]string{
		`{"path":"a","edits":[]}`:                                            `{"path":"a","edits":[]}`,
		`{"path":"a","edits":"[{\"oldText\":\"1\"}]"}`:                       `{"path":"a","edits":[{"oldText":"1"}]}`,
		`{"path":"a","edits":"{\"oldText\":\"1\"}"}`:                         `{"path":"a","edits":"{\"oldText\":\"1\"}"}`,
		`{"path":"a","edits":"{\"oldText\":\"1\",\"newText\":\"2\"}","x":1}`: `{"path":"a","edits":[{"oldText":"1","newText":"2"}],"x":1}`,
		`{"path":"a","edits":{"oldText":"1","newText":"2"}}`:                 `{"path":"a","edits":[{"oldText":"1","newText":"2"}]}`,
		`{"path":"a","edits":{"oldText":"1"}}`:                               `{"path":"a","edits":{"oldText":"1"}}`,
		`{"oldText":"1","path":"a","newText":"2"}`:                           `{"path":"a","edits":[{"oldText":"1","newText":"2"}]}`,
		`{"path":"a","edits":[{"oldText":"0"}],"oldText":"1","newText":"2"}`: `{"path":"a","edits":[{"oldText":"0"},{"oldText":"1","newText":"2"}]}`,
		`{"path":"a","oldText":"1"}`:                                         `{"path":"a","oldText":"1"}`,
		`{"path":"a","edits":7,"oldText":"1","newText":"2"}`:                 `{"path":"a","edits":[{"oldText":"1","newText":"2"}]}`,
		`[]`: `[]`,
	} {
		got, err := prepareEdit(jsontext.Value(in))
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v; want %s", in, got, err, want)
		}
	}
}

// call runs a tool as the loop does, without its checks.
func call(t *testing.T, tool *agent.Tool, id string, args any, update func(agent.Result)) (agent.Result, error) {
	t.Helper()
	var raw jsontext.Value
	switch a := args.(type) {
	case string:
		raw = jsontext.Value(a)
	case map[string]string:
		raw = append(raw, '{')
		for k, v := range a {
			if len(raw) > 1 {
				raw = append(raw, ',')
			}
			raw = append(jsonwire.AppendString(raw, k), ':')
			raw = jsonwire.AppendString(raw, v)
		}
		raw = append(raw, '}')
	}
	if update == nil {
		update = func(agent.Result) {}
	}
	return tool.Execute(t.Context(), agent.Call{ID: id, Args: raw, Update: update})
}

func editArgs(path, old, new string) string {
	b := jsonwire.AppendString([]byte(`{"path":`), path)
	b = jsonwire.AppendString(append(b, `,"edits":[{"oldText":`...), old)
	b = jsonwire.AppendString(append(b, `,"newText":`...), new)
	return string(append(b, "}]}"...))
}

func TestEditKeepsModeAndLink(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/real", []byte("#!/bin/sh\necho old\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	edit := Edit(EditOptions{Env: &env.Local{Dir: dir}})
	if _, err := call(t, edit, "1", editArgs("link", "old", "new"), nil); err != nil {
		t.Fatal(err)
	}
	st, err := os.Lstat(dir + "/real")
	if err != nil || st.Mode().Perm() != 0o755 {
		t.Errorf("got %v, %v", st.Mode(), err)
	}
	if st, err := os.Lstat(dir + "/link"); err != nil || st.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v", err)
	}
	if b, _ := os.ReadFile(dir + "/real"); string(b) != "#!/bin/sh\necho new\n" {
		t.Errorf("got %q", b)
	}
}

func BenchmarkEditLongFile(b *testing.B) {
	var file strings.Builder
	for i := 0; file.Len() < 5<<20; i++ {
		fmt.Fprintf(&file, "line %d of a long file that holds some text\n", i)
	}
	for name, old := range map[string]string{"start": "line 5 of", "middle": "line 50000 of", "end": "line 100000 of"} {
		b.Run(name, func(b *testing.B) {
			data := file.String()
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if _, _, err := applyEdits(data, "f", []replacement{{old, "changed\nline of"}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The whole tool, from the file to the file.
func BenchmarkEditTool(b *testing.B) {
	for name, size := range map[string]int{"5MB": 5 << 20, "200MB": 200 << 20} {
		b.Run(name, func(b *testing.B) {
			var file strings.Builder
			for i := 0; file.Len() < size; i++ {
				fmt.Fprintf(&file, "line %d of a long file that holds some text\n", i)
			}
			dir := b.TempDir()
			if err := os.WriteFile(dir+"/f", []byte(file.String()), 0o600); err != nil {
				b.Fatal(err)
			}
			edit := Edit(EditOptions{Env: &env.Local{Dir: dir}})
			words := []string{"a long file", "a huge file"}
			for b.Loop() {
				args := editArgs("f", "line 50000 of "+words[0], "line 50000 of "+words[1])
				if _, err := edit.Execute(b.Context(), agent.Call{Args: []byte(args)}); err != nil {
					b.Fatal(err)
				}
				words[0], words[1] = words[1], words[0]
			}
		})
	}
}

func BenchmarkEditLongFileWithOddities(b *testing.B) {
	var file strings.Builder
	for i := 0; file.Len() < 5<<20; i++ {
		fmt.Fprintf(&file, "line %d of a long file — “quoted”  \r\n", i)
	}
	data := file.String()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, _, err := applyEdits(data, "f", []replacement{{"line 50000 of", "changed\nline of"}}); err != nil {
			b.Fatal(err)
		}
	}
}
