package jsonl

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
)

// Trash moves a file into the user's trash with the program trash, and fails
// where there is none. It is a Repository.Trash.
func Trash(ctx context.Context, path string) error {
	program, err := exec.LookPath("trash")
	if err != nil {
		return err
	}
	if path, err = filepath.Abs(path); err != nil { // a name that is no option
		return err
	}
	cmd := exec.CommandContext(ctx, program, path)
	cmd.Env = trashEnviron()
	return cmd.Run()
}

// trashEnviron is what the program needs to find the trash. Keys of model
// providers are none of its business.
func trashEnviron() []string {
	env := []string{}
	for _, name := range []string{"PATH", "HOME", "USER", "LANG", "TMPDIR", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "SystemRoot"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}
