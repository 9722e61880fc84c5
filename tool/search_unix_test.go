//go:build unix

package tool

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Links are not followed, and what is neither file nor folder is not opened.
func TestSearchesPassOverWhatIsNoFile(t *testing.T) {
	e := searchTree(t, map[string]string{"dir/file": "hit\n", "secret/file": "hit\n", "outside": "hit\n"})
	at := func(name string) string { return filepath.Join(e.Dir, name) }
	for link, to := range map[string]string{"dir/loop": "..", "dir/self": "self", "link": "outside", "folder": "dir", "dangling": "nowhere"} {
		if err := os.Symlink(to, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(at("pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(at(".gitignore"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(at("secret"), 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(at("secret"), 0o755)
	_, err := os.ReadDir(at("secret"))
	readable := err == nil // for the superuser
	secret := func(s string) string {
		if readable {
			return s
		}
		return ""
	}
	grep, find, ls := Grep(GrepOptions{Env: e}), Find(FindOptions{Env: e}), Ls(LsOptions{Env: e})
	if got, want := ask(t, grep, `{"pattern":"hit"}`), "dir/file:1: hit\noutside:1: hit"+secret("\nsecret/file:1: hit"); got != want {
		t.Errorf("grep: %q, want %q", got, want)
	}
	if got, want := ask(t, find, `{"pattern":"*"}`), ".gitignore\ndangling\ndir/\ndir/file\ndir/loop\ndir/self\nfolder\nlink\noutside\npipe\nsecret/"+secret("\nsecret/file"); got != want {
		t.Errorf("find: %q, want %q", got, want)
	}
	if got, want := ask(t, ls, `{}`), ".gitignore\ndir/\nfolder/\nlink\noutside\npipe\nsecret/"; got != want {
		t.Errorf("ls: %q, want %q", got, want)
	}
	// What is named is followed.
	if got := ask(t, grep, `{"pattern":"hit","path":"link"}`); got != "link:1: hit" {
		t.Errorf("a link to a file: %q", got)
	}
	if got := ask(t, grep, `{"pattern":"hit","path":"folder"}`); got != "file:1: hit" {
		t.Errorf("a link to a folder: %q", got)
	}
	if !readable {
		if got := ask(t, ls, `{"path":"secret"}`); !strings.HasPrefix(got, "error: Cannot read directory: EACCES: permission denied, scandir '") {
			t.Errorf("ls of a closed folder: %q", got)
		}
	}
}
