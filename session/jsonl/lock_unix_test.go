//go:build unix

package jsonl_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/pinch-agent/pinch/session/jsonl"
)

// A program that died may leave its lock to a child that it was starting, for
// the moment until that is another program.
func TestDeadHolder(t *testing.T) {
	r := &jsonl.Repository{Root: t.TempDir()}
	path := create(t, r, "one", "/srv/a", "hello")
	held := flock.New(path + ".lock")
	if ok, err := held.TryLock(); !ok || err != nil {
		t.Fatalf("%v, %v", ok, err)
	}
	defer held.Close()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	gone := exec.Command(os.Args[0], "-test.run=^$")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	sign := func(pid int) { write(t, path+".lock", fmt.Sprintf(" process %d on %s\n", pid, host)) }

	sign(os.Getpid())
	if !r.InUse(path) {
		t.Error("the holder lives")
	}
	sign(gone.Process.Pid)
	if r.InUse(path) {
		t.Error("the holder is dead")
	}
	time.AfterFunc(50*time.Millisecond, func() { held.Unlock() })
	if err := r.Delete(t.Context(), path); err != nil {
		t.Errorf("deleted: %v", err)
	}
}
