//go:build unix

package env_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/env"
	"github.com/pinch-agent/pinch/env/envtest"
)

func TestLocalConforms(t *testing.T) {
	envtest.Run(t, func(t *testing.T) env.ExecutionEnv {
		dir, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		work := filepath.Join(dir, "work")
		if err := os.Mkdir(work, 0o700); err != nil {
			t.Fatal(err)
		}
		return &env.Local{Dir: work, Temp: dir}
	})
}

// TestLocalConformsUnprivileged repeats the rules about permissions as a user
// whom they hold.
func TestLocalConformsUnprivileged(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("TestLocalConforms did that")
	}
	dir, err := os.MkdirTemp("", "pinch-env-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^TestLocalConforms$/^permissions$")
	cmd.Env = append(os.Environ(), env.UnprivilegedEnv+"=1", "TMPDIR="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "SKIP") || strings.Count(string(out), "--- PASS: TestLocalConforms/permissions/") < 3 {
		t.Errorf("%v\n%s", err, out)
	}
}
