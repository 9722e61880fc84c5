//go:build unix

package tool

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/env"
	"github.com/pinch-agent/pinch/llm"
)

// What is no regular file is refused with words, before anything waits for it.
func TestSpecialFiles(t *testing.T) {
	dir := t.TempDir()
	e := &env.Local{Dir: dir}
	if _, err := e.Exec(t.Context(), env.Command{Line: "mkfifo idle held; ln -s held link; mkdir folder; ln -s /dev/zero zero"}); err != nil {
		t.Fatal(err)
	}
	held, err := os.OpenFile(dir+"/held", os.O_RDWR, 0) // a writer that says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	read, edit := Read(ReadOptions{Env: e}), Edit(EditOptions{Env: e})
	for name, want := range map[string]string{
		"idle": "is no regular file", "held": "is no regular file", "link": "is no regular file",
		"zero": "is no regular file", "/dev/zero": "is no regular file", "/dev/tty": "",
		"folder": "EISDIR: illegal operation on a directory, read", "@folder": "EISDIR: illegal operation on a directory, read",
	} {
		if _, err := call(t, read, "1", map[string]string{"path": name}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("read %s: %v", name, err)
		}
		if _, err := call(t, edit, "1", editArgs(name, "a", "b"), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("edit %s: %v", name, err)
		}
	}
	if r, err := call(t, read, "1", map[string]string{"path": "/dev/null"}, nil); err != nil || llm.TextOf(r.Content, "") != "" {
		t.Errorf("/dev/null: %v, %v", r, err)
	}
}

// Long lines are walked through in bounded memory; files of 2 GiB are not loaded.
func TestHugeFiles(t *testing.T) {
	dir := t.TempDir()
	e := &env.Local{Dir: dir}
	if _, err := e.Exec(t.Context(), env.Command{Line: "truncate -s 60M line; truncate -s 2G huge; printf 'BM' > picture; head -c 12 /dev/zero >> picture; printf '\\50\\0\\0\\0\\1\\0\\0\\0\\1\\0\\0\\0\\1\\0\\30\\0' >> picture; truncate -s 2G picture"}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		tool       *agent.Tool
		args, want string
	}{
		{Read(ReadOptions{Env: e}), `{"path":"line"}`, "[Line 1 is 60.0MB, exceeds 50.0KB limit. Use bash: sed -n '1p' line | head -c 51200]"},
		{Read(ReadOptions{Env: e}), `{"path":"picture"}`, "Read image file [image/bmp]\n" + imageTooBig},
		{Edit(EditOptions{Env: e}), editArgs("huge", "a", "b"), "is larger than 1 GiB: change it with a command such as sed"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := call(t, tt.tool, "1", tt.args, nil)
		runtime.ReadMemStats(&after)
		got := llm.TextOf(r.Content, "")
		if err != nil {
			got = err.Error()
		}
		if !strings.HasSuffix(got, tt.want) {
			t.Errorf("%s: got %q", tt.args, got)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 2<<20 {
			t.Errorf("%s: %d bytes", tt.args, n)
		}
	}
}
