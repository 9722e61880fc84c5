//go:build unix

package env

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNoRoomKeepsWhatWasThere meets the limit on the size of files, as a full
// disk is met: in the middle of a write.
func TestNoRoomKeepsWhatWasThere(t *testing.T) {
	const inside = "PINCH_TEST_LIMITED"
	if os.Getenv(inside) == "" {
		// What the go command has the test binary write has no room either.
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), inside+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	ctx := t.Context()
	l := newLocal(t)
	old := strings.Repeat("old ", 150)
	if err := l.WriteFile(ctx, "file", []byte(old)); err != nil {
		t.Fatal(err)
	}
	var free unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &free); err != nil {
		t.Fatal(err)
	}
	limit := free
	limit.Cur = 1000
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_FSIZE, &free)
	long := []byte(strings.Repeat("new ", 500))
	for name, err := range map[string]error{
		"replace": l.WriteFile(ctx, "file", long), "append": l.AppendFile(ctx, "file", long), "make": l.WriteFile(ctx, "other", long),
	} {
		if CodeOf(err) != NoSpace {
			t.Errorf("%s: %v", name, err)
		}
	}
	holds := func(want string) {
		t.Helper()
		if b, err := l.ReadFile(ctx, "file"); err != nil || string(b) != want {
			t.Errorf("the file holds %.20q (%d bytes), %v", b, len(b), err)
		}
	}
	holds(old)
	if info, err := l.Info(ctx, "other"); err != nil || info.Size != 0 {
		t.Errorf("a new file: %+v, %v", info, err)
	}
	for _, n := range []int{900, 100} {
		if err := l.WriteFile(ctx, "file", long[:n]); err != nil {
			t.Fatal(err)
		}
		holds(string(long[:n]))
	}
}
