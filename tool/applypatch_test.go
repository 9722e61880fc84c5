//go:build unix

package tool

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/env"
	"github.com/pinch-agent/pinch/llm"
)

// patchDir is a folder with files and the tool that works in it.
func patchDir(t testing.TB, files map[string]string) (string, *agent.Tool) {
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir, ApplyPatch(ApplyPatchOptions{Env: &env.Local{Dir: dir}})
}

// contents are the regular files below a folder.
func contents(t testing.TB, dir string) map[string]string {
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		out[rel] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func patch(body string) string {
	return "*** Begin Patch\n" + strings.TrimPrefix(body, "\n") + "*** End Patch\n"
}

func TestApplyPatch(t *testing.T) {
	for _, tt := range []struct {
		name, file, patch string
		want              string // of the file, or the beginning of the error behind !
	}{
		{"here-document", "a\n", "cat <<'EOF'\n" + patch("*** Update File: f\n@@\n-a\n+b\n") + "EOF\n", "b\n"},
		{"bare here-document", "a\n", "<<PATCH\n" + patch("*** Update File: f\n@@\n-a\n+b\n") + "PATCH", "b\n"},
		{"carriage returns", "a\nb\n", strings.ReplaceAll(patch("*** Update File: f\n@@\n-a\n+c\n b\n"), "\n", "\r\n"), "c\nb\n"},
		{"no @@", "a\nb\n", patch("*** Update File: f\n a\n-b\n+c\n"), "a\nc\n"},
		{"two places in order", "x\na\nx\na\n", patch("*** Update File: f\n@@\n x\n-a\n+1\n@@\n-a\n+2\n"), "x\n1\nx\n2\n"},
		{"behind a line", "f:\n x\ng:\n x\n", patch("*** Update File: f\n@@ g:\n- x\n+ y\n"), "f:\n x\ng:\n y\n"},
		{"behind two lines", "A\nf\n x\nB\ng\n x\nf\n x\n", patch("*** Update File: f\n@@ B\n@@ f\n- x\n+ y\n"), "A\nf\n x\nB\ng\n x\nf\n y\n"},
		{"the line itself", "f:\n x\n", patch("*** Update File: f\n@@ f:\n f:\n- x\n+ y\n"), "f:\n y\n"},
		{"only lines behind a line", "a\nb\nc\n", patch("*** Update File: f\n@@ b\n+new\n"), "a\nb\nnew\nc\n"},
		{"only lines", "a\n", patch("*** Update File: f\n@@\n+new\n"), "a\nnew\n"},
		{"only lines behind an open one", "a", patch("*** Update File: f\n@@\n+new\n"), "a\nnew"},
		{"only lines in an empty file", "", patch("*** Update File: f\n@@\n+new\n"), "new\n"},
		{"numbers of a unified diff", "a\nb\n", patch("*** Update File: f\n@@ -7,2 +7,2 @@ func x\n a\n-b\n+c\n"), "a\nc\n"},
		{"an empty line without its blank", "a\n\nb\n", patch("*** Update File: f\n@@\n a\n\n-b\n+c\n"), "a\n\nc\n"},
		{"blank line before the next file", "a\n", patch("*** Update File: f\n@@\n-a\n+b\n\n*** Add File: g\n+\n"), "b\n"},
		{"indent of another depth", "\tif x {\n\t\ty()\n\t}\n", patch("*** Update File: f\n@@\n if x {\n-y()\n+z()\n }\n"), "\tif x {\nz()\n\t}\n"},
		{"typographic characters", "say “hi” – now\nx\n", patch("*** Update File: f\n@@\n say \"hi\" - now\n-x\n+y\n"), "say “hi” – now\ny\n"},
		{"the closer match wins", "a \nx\na\nx\n", patch("*** Update File: f\n@@\n a\n-x\n+y\n"), "a \nx\na\ny\n"},
		{"end of the file", "a\nx\na\n", patch("*** Update File: f\n@@\n-a\n+b\n*** End of File\n"), "a\nx\nb\n"},
		{"not at the end of the file", "a\nx\n", patch("*** Update File: f\n@@\n-a\n+b\n*** End of File\n"), "!Could not find these lines in f (line 3 of the patch, searched at the end of the file):\na\n"},
		{"line ends of the place", "a\r\nb\r\nc\nd\n", patch("*** Update File: f\n@@\n a\n-b\n+1\n+2\n@@\n c\n+3\n d\n"), "a\r\n1\r\n2\r\nc\n3\nd\n"},
		{"undecodable bytes elsewhere", "caf\xe9\nx\n\xff", patch("*** Update File: f\n@@\n-x\n+y\n"), "caf\xe9\ny\n\xff"},
		{"undecodable bytes seen", "caf\xe9 x\n", patch("*** Update File: f\n@@\n-caf\uFFFD x\n+caf\uFFFD y\n"), "caf\xe9 y\n"},
		{"a mark stays", "\uFEFFa\nb\n", patch("*** Update File: f\n@@\n-a\n+b\n"), "\uFEFFb\nb\n"},
		{"last line goes", "a\nb", patch("*** Update File: f\n@@\n a\n-b\n"), "a"},
		{"last line goes behind another change", "a\nb", patch("*** Update File: f\n@@\n-a\n+1\n@@\n-b\n"), "1"},
		{"all lines go", "a\nb", patch("*** Update File: f\n@@\n-a\n-b\n"), ""},
		{"order of the file", "a\nb\n", patch("*** Update File: f\n@@\n-b\n+c\n@@\n-a\n+d\n"), "!Could not find these lines in f (line 6 of the patch, searched from line 3 of the file on):\na\n"},
		{"a missing line behind @@", "a\n", patch("*** Update File: f\n@@ nowhere\n-a\n+b\n"), "!Could not find the line \"nowhere\" in f (line 3"},
		{"context that looks like a marker", "*** End Patch\na\n", patch("*** Update File: f\n@@\n *** End Patch\n-a\n+b\n"), "*** End Patch\nb\n"},
		{"twice the same file", "a\nb\n", patch("*** Update File: f\n@@\n-a\n+b\n*** Update File: f\n@@\n b\n-b\n+c\n"), "b\nc\n"},
		{"deleted and added", "a\n", patch("*** Delete File: f\n*** Add File: f\n+b\n"), "b\n"},
		{"added twice", "a\n", patch("*** Add File: g\n+1\n*** Add File: g\n+2\n"), "!Could not add g: it exists."},
		{"deleted twice", "a\n", patch("*** Delete File: f\n*** Delete File: f\n"), "!Could not delete f: there is no such file."},
		{"missing", "a\n", patch("*** Update File: g\n@@\n-a\n+b\n"), "!Could not update g: there is no such file."},
		{"moved onto itself", "a\n", patch("*** Update File: f\n*** Move to: ./f\n@@\n-a\n+b\n"), "b\n"},
		{"a folder", "a\n", patch("*** Update File: .\n@@\n-a\n+b\n"), "!. is outside of the working directory"},
		{"no envelope", "a\n", "*** Update File: f\n@@\n-a\n+b\n", "!Invalid patch, line 1: a patch begins"},
		{"no end", "a\n", "*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n", "!Invalid patch, line 5: a patch ends"},
		{"nothing in it", "a\n", patch(""), "!Invalid patch, line 2: there is no file in the patch"},
		{"no change", "a\n", patch("*** Update File: f\n"), "!Invalid patch, line 3: the update of f holds no change"},
		{"empty change", "a\n", patch("*** Update File: f\n@@\n@@ x\n"), "!Invalid patch, line 5: the change of f that begins in line 3 is empty"},
		{"line without a sign", "a\n", patch("*** Update File: f\n@@\n-a\nb\n"), "!Invalid patch, line 5: every line of a change starts with a space"},
		{"added line without a plus", "a\n", patch("*** Add File: g\n+a\nb\n"), "!Invalid patch, line 4: every line of an added file starts with +"},
		{"no path", "a\n", patch("*** Add File: \n+a\n"), "!Invalid patch, line 2: the path is missing"},
		{"foreign header", "a\n", patch("*** Rename File: f\n"), "!Invalid patch, line 2: \"*** Rename File: f\" is no beginning"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, tool := patchDir(t, map[string]string{"f": tt.file})
			_, err := call(t, tool, "1", map[string]string{"input": tt.patch}, nil)
			got := contents(t, dir)
			if problem, ok := strings.CutPrefix(tt.want, "!"); ok {
				if err == nil || !strings.HasPrefix(err.Error(), problem) {
					t.Errorf("got %v", err)
				}
				if len(got) != 1 || got["f"] != tt.file {
					t.Errorf("files %q", got)
				}
				return
			}
			if err != nil || got["f"] != tt.want {
				t.Errorf("got %q, %v; want %q", got["f"], err, tt.want)
			}
		})
	}
}

// TestApplyPatchErrorsAreShort fails with a change as long as a file.
func TestApplyPatchErrorsAreShort(t *testing.T) {
	for lines, more := range map[string]string{
		"-first\n" + strings.Repeat("-b\n", 100000):   "\n[99961 more lines]\n",
		"-first" + strings.Repeat("é", 100000) + "\n": "é…\n",
	} {
		_, tool := patchDir(t, map[string]string{"f": "a\n"})
		_, err := call(t, tool, "1", map[string]string{"input": patch("*** Update File: f\n@@\n" + lines)}, nil)
		if err == nil || len(err.Error()) > MaxBytes+1000 || !strings.Contains(err.Error(), "\nfirst") ||
			!strings.Contains(err.Error(), more+"Nothing was changed.") {
			t.Errorf("got %.500v", err)
		}
	}
}

func TestApplyPatchResult(t *testing.T) {
	dir, tool := patchDir(t, map[string]string{"a": "1\n2\n", "b": "x\n", "sub/c": "y\n"})
	r, err := call(t, tool, "1", map[string]string{"input": patch(`
*** Update File: ./a
@@
 1
-2
+3
*** Delete File: b
*** Update File: sub/c
*** Move to: other/d
@@
-y
+z
*** Add File: ` + dir + `/new/e
+n
`)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := llm.TextOf(r.Content, ""), "The patch was applied.\nA new/e\nM a\nM other/d\nD b"; got != want {
		t.Errorf("got %q", got)
	}
	var got, want any
	if err := json.Unmarshal(r.Details, &got); err != nil {
		t.Fatal(err)
	}
	json.Unmarshal([]byte(`{"summary":{"added":["new/e"],"modified":["a","other/d"],"deleted":["b"]},"noOp":false,"files":[
		{"path":"a","status":"modified","diff":" 1 1\n-2 2\n+2 3","patch":"--- a\n+++ a\n@@ -1,2 +1,2 @@\n 1\n-2\n+3\n","firstChangedLine":2},
		{"path":"b","status":"deleted"},
		{"path":"sub/c","status":"modified","movedTo":"other/d","diff":"-1 y\n+1 z","patch":"--- other/d\n+++ other/d\n@@ -1,1 +1,1 @@\n-y\n+z\n","firstChangedLine":1},
		{"path":"new/e","status":"added","diff":"+1 n","patch":"--- new/e\n+++ new/e\n@@ -0,0 +1,1 @@\n+n\n","firstChangedLine":1}]}`), &want)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	if got := contents(t, dir); fmt.Sprint(got) != fmt.Sprint(map[string]string{"a": "1\n3\n", "other/d": "z\n", "new/e": "n\n"}) {
		t.Errorf("files %q", got)
	}

	r, err = call(t, tool, "2", map[string]string{"input": patch("*** Update File: a\n@@\n 1\n-3\n+3\n")}, nil)
	if err != nil || !strings.HasPrefix(llm.TextOf(r.Content, ""), "The patch changes nothing") || !strings.Contains(string(r.Details), `"noOp":true,"files":[]`) {
		t.Errorf("got %s, %v", r.Details, err)
	}
}

// One part that does not fit keeps all of the patch away from the disk.
func TestApplyPatchIsAllOrNothing(t *testing.T) {
	files := map[string]string{"a": "1\n", "b": "2\n", "c": "3\n", "file": ""}
	body := "*** Update File: a\n*** Move to: z\n@@\n-1\n+one\n*** Add File: n\n+n\n*** Delete File: c\n"
	for name, bad := range map[string]string{
		"a hunk":               "*** Update File: b\n@@\n-nowhere\n+x\n",
		"a path outside":       "*** Add File: ../x\n+x\n",
		"a link outside":       "*** Add File: out/x\n+x\n",
		"a file behind a link": "*** Update File: passwd\n@@\n+x\n",
		"a link to nothing":    "*** Add File: dangling\n+x\n",
		"a move outside":       "*** Update File: b\n*** Move to: ../b\n@@\n-2\n+x\n",
		"a move onto a file":   "*** Update File: b\n*** Move to: file\n@@\n-2\n+x\n",
		"below a file":         "*** Add File: file/x\n+x\n",
		"a pipe":               "*** Update File: pipe\n@@\n-2\n+x\n",
		"a folder":             "*** Delete File: folder\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir, tool := patchDir(t, files)
			if _, err := (&env.Local{Dir: dir}).Exec(t.Context(), env.Command{Line: "ln -s /etc/passwd passwd; ln -s /tmp out; ln -s nothing dangling; mkfifo pipe; mkdir folder"}); err != nil {
				t.Fatal(err)
			}
			_, err := call(t, tool, "1", map[string]string{"input": patch(body + bad)}, nil)
			if err == nil || !strings.Contains(err.Error(), "othing was changed") && !strings.Contains(err.Error(), "regular file") && !strings.HasPrefix(err.Error(), "EISDIR") {
				t.Errorf("got %v", err)
			}
			if got := contents(t, dir); fmt.Sprint(got) != fmt.Sprint(files) {
				t.Errorf("files %q after %v", got, err)
			}
		})
	}
}

func TestApplyPatchKeepsModeOfMovedFile(t *testing.T) {
	dir, tool := patchDir(t, map[string]string{"run.sh": "echo a\n"})
	if err := os.Chmod(dir+"/run.sh", 0o750); err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, tool, "1", map[string]string{"input": patch("*** Update File: run.sh\n*** Move to: bin/run\n@@\n-echo a\n+echo b\n")}, nil); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(dir + "/bin/run"); err != nil || st.Mode().Perm() != 0o750 {
		t.Errorf("got %v, %v", st, err)
	}
}

// Calls that share files in different orders come one after the other.
func TestApplyPatchQueue(t *testing.T) {
	dir, _ := patchDir(t, map[string]string{"a": "0\n", "b": "0\n"})
	var queue FileQueue
	e := &env.Local{Dir: dir}
	apply, edit := ApplyPatch(ApplyPatchOptions{Env: e, Queue: &queue}), Edit(EditOptions{Env: e, Queue: &queue})
	var wg sync.WaitGroup
	run := func(tool *agent.Tool, i int, args string) {
		c := agent.Call{ID: fmt.Sprint(i), Args: []byte(args), Update: func(agent.Result) {}}
		done := tool.Reserve(c)
		wg.Go(func() {
			defer done()
			if _, err := tool.Execute(t.Context(), c); err != nil {
				t.Errorf("call %d: %v", i, err)
			}
		})
	}
	const calls = 60
	for i := range calls {
		first, second := "a", "b"
		if i%2 == 1 {
			first, second = "b", "a"
		}
		if i%3 == 0 {
			for k, name := range []string{"a", "b"} {
				run(edit, 1000+2*i+k, editArgs(name, fmt.Sprintf("%d\n", i), fmt.Sprintf("%d\n", i+1)))
			}
			continue
		}
		one := "*** Update File: %s\n@@\n-%d\n+%d\n"
		text, _ := json.Marshal(map[string]string{"input": patch(fmt.Sprintf(one+one, first, i, i+1, second, i, i+1))})
		run(apply, i, string(text))
	}
	wg.Wait()
	if got := contents(t, dir); got["a"] != fmt.Sprintln(calls) || got["b"] != fmt.Sprintln(calls) {
		t.Errorf("got %q", got)
	}
}

// A patch made of the differences of two texts turns one into the other.
func TestApplyPatchOfDiff(t *testing.T) {
	line := rapid.SampledFrom([]string{"a", "b", "c", "d e", "f", "", " g", "+h", "-i", "@@", "*** End Patch", "é"})
	rapid.Check(t, func(t *rapid.T) {
		old := rapid.SliceOfN(line, 0, 20).Draw(t, "old")
		// Numbered lines make every place unique, as good patches do.
		for i := range old {
			old[i] = fmt.Sprintf("%s %d", old[i], i)
		}
		next := []string{}
		for i, l := range old {
			switch rapid.IntRange(0, 4).Draw(t, fmt.Sprint("what", i)) {
			case 0:
			case 1:
				next = append(next, line.Draw(t, fmt.Sprint("new", i)))
			case 2:
				next = append(next, l, line.Draw(t, fmt.Sprint("more", i)))
			default:
				next = append(next, l)
			}
		}
		end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end")
		final := ""
		if rapid.Bool().Draw(t, "final") || len(old) == 0 || len(next) == 0 || next[len(next)-1] == "" {
			final = end
		}
		join := func(lines []string) string {
			if len(lines) == 0 {
				return ""
			}
			return strings.Join(lines, end) + final
		}
		before, after := join(old), join(next)
		body := patchOf(withLF(before), withLF(after))
		if body == "" {
			return
		}
		files, err := parsePatch(patch("*** Update File: f\n" + body))
		if err != nil {
			t.Fatalf("%v\n%s", err, body)
		}
		src := newSource(before)
		list, err := patchLines(src).apply("f", files[0].hunks)
		if err != nil {
			t.Fatalf("%v\n%s", err, body)
		}
		if !strings.Contains(before, "\n") {
			after = withLF(after) // nothing says which line ends are meant
		}
		if got := strings.Join(src.segments(list), ""); got != after {
			t.Fatalf("%q became %q, want %q, by\n%s", before, got, after, body)
		}
	})
}

// patchOf are the hunks that turn a text into another.
func patchOf(old, new string) string {
	c := compare([]textPart{changedPart(old, new)})
	var b strings.Builder
	put := func(sign, text string) {
		b.WriteString(sign + strings.TrimSuffix(text, "\n") + "\n")
	}
	behind := 0
	for _, h := range c.hunks() {
		b.WriteString("@@\n")
		for i := max(behind, h.oldStart-2); i < h.oldStart; i++ {
			put(" ", c.old.line(i))
		}
		for i := range h.oldLines {
			put("-", c.old.line(h.oldStart+i))
		}
		for i := range h.newLines {
			put("+", c.new.line(h.newStart+i))
		}
		if behind = h.oldStart + h.oldLines; behind < c.old.n {
			put(" ", c.old.line(behind))
			behind++
		}
	}
	return b.String()
}

func FuzzParsePatch(f *testing.F) {
	f.Add(patch("*** Update File: f\n*** Move to: g\n@@ a\n b\n-c\n+d\n*** End of File\n*** Add File: h\n+i\n*** Delete File: j\n"), "a\nb\nc\n")
	f.Add("<<E\n"+patch("*** Update File: f\n\n+x\n")+"E", "")
	f.Fuzz(func(t *testing.T, text, file string) {
		files, err := parsePatch(text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "Invalid patch, line ") {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		for _, p := range files {
			src := newSource(file)
			list, err := patchLines(src).apply(p.path, p.hunks)
			if err != nil {
				continue
			}
			pos := 0
			for _, c := range list {
				if c.start < pos || c.end < c.start {
					t.Fatalf("%q on %q: changes %+v", text, file, list)
				}
				pos = c.end
			}
			src.parts(list)
			src.segments(list)
		}
	})
}
