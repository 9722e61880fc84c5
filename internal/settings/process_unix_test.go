//go:build unix

package settings

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// limitFiles bounds the size of files, in bytes, that this process writes.
func limitFiles(words []string) error {
	if len(words) == 0 {
		return nil
	}
	n, _ := strconv.Atoi(words[0])
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: uint64(n), Max: uint64(n)})
}

// A writer that is killed leaves the file whole, with all that it said it wrote,
// and the next one goes on.
func TestKilledWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings.json")
	put(t, path, shared)
	done := map[string]int{}
	for i := range 6 {
		name := "k" + strconv.Itoa(i)
		cmd := start(t, path, name, "100000")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for range 3 + 2*i {
			if !lines.Scan() {
				t.Fatalf("%s ended by itself", name)
			}
			done[name]++
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() {
			done[name]++
		}
		_ = cmd.Wait() // it was killed
		f := Read(path)
		if f.Err != nil {
			t.Fatal(f.Err)
		}
		for name, n := range done {
			wrote(t, f, name, n)
		}
		old := time.Now().Add(-time.Hour) // the lock, where it is left, was left long ago
		_ = os.Chtimes(path+".lock", old, old)
	}
	s := OpenStore(path, "")
	if err := s.Write(t.Context(), User, Set("tuiMode", "regular")); err != nil {
		t.Fatal(err)
	}
	left, _ := os.ReadDir(filepath.Dir(path))
	if len(left) != 1 || !strings.HasPrefix(content(t, path), "// of several\n{\n  \"theme\": \"dark\", // kept\n") {
		t.Errorf("left %v: %s", left, content(t, path))
	}
}

func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings.json")
	full := `{"mine": {"filler": "` + strings.Repeat("x", 5000) + `"}}`
	put(t, path, full)
	out, err := start(t, path, "a", "1", "4096").Output()
	if err == nil || !strings.Contains(string(out), "Failed to write the settings file "+path) || !strings.Contains(string(out), "file too large") {
		t.Errorf("%v: %s", err, out)
	}
	left, _ := os.ReadDir(filepath.Dir(path))
	if content(t, path) != full || len(left) != 1 {
		t.Errorf("the file has %d bytes, beside it are %v", len(content(t, path)), left)
	}
}

func TestPermissions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings.json")
	mode := func() fs.FileMode {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	put(t, path, "{}")
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	s := OpenStore(path, "")
	if err := s.Write(t.Context(), User, Set("httpProxy", "http://proxy:1")); err != nil || mode() != 0o644 {
		t.Errorf("%v, %v", mode(), err)
	}
	if err := s.Write(t.Context(), User, Set("httpProxy", "http://me:hunter2@proxy:1")); err != nil || mode() != 0o600 {
		t.Errorf("with a password: %v, %v", mode(), err)
	}
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	err := s.Write(t.Context(), User, Set("theme", "dark"))
	if !errors.Is(err, errReadOnly) || mode() != 0o400 {
		t.Errorf("%v, %v", mode(), err)
	}
}

func TestLinks(t *testing.T) {
	dir := t.TempDir()
	real := filepath.Join(dir, "dotfiles", "pinch.json")
	put(t, real, `{"theme": "dark"}`)
	link := filepath.Join(dir, "settings.json")
	if err := os.Symlink(filepath.Join("dotfiles", "pinch.json"), link); err != nil {
		t.Fatal(err)
	}
	if err := OpenStore(link, "").Write(t.Context(), User, Set("theme", "light")); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Lstat(link); info.Mode()&fs.ModeSymlink == 0 || content(t, real) != `{"theme": "light"}` {
		t.Errorf("%v: %s", info.Mode(), content(t, real))
	}
	// The file that a link names need not exist yet.
	if err := os.Remove(real); err != nil {
		t.Fatal(err)
	}
	if err := OpenStore(link, "").Write(t.Context(), User, Set("theme", "light")); err != nil || content(t, real) != "{\n  \"theme\": \"light\"\n}" {
		t.Errorf("%v", err)
	}
}

func TestReadOnlyFolder(t *testing.T) {
	if os.Geteuid() == 0 && runtime.GOOS != "linux" {
		t.Skip("root may write everywhere")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "settings.json")
	put(t, path, `{"theme": "dark"}`)
	if os.Geteuid() == 0 {
		path = "/proc/self/settings.json" // nobody may
	} else if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := OpenStore(path, "").Write(ctx, User, Set("theme", "light"))
	if e, ok := errors.AsType[*FileError](err); !ok || e.Op != "lock" || ctx.Err() != nil {
		t.Errorf("%v", err)
	}
	if got := content(t, filepath.Join(dir, "settings.json")); got != `{"theme": "dark"}` {
		t.Errorf("became %s", got)
	}
}
