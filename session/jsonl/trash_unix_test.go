//go:build unix

package jsonl_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pinch-agent/pinch/session/jsonl"
)

func TestTrash(t *testing.T) {
	bin, dir := t.TempDir(), t.TempDir()
	path := filepath.Join(dir, "-s.jsonl")
	write(t, path, "x")
	t.Setenv("PATH", bin)
	t.Setenv("ACME_API_KEY", "secret")
	if err := jsonl.Trash(t.Context(), path); err == nil {
		t.Error("there is no trash")
	}
	script := "#!/bin/sh\n[ -z \"$ACME_API_KEY\" ] || exit 1\nPATH=/bin:/usr/bin exec mv \"$1\" \"$1.trash\"\n"
	if err := os.WriteFile(filepath.Join(bin, "trash"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if err := jsonl.Trash(t.Context(), "-s.jsonl"); err != nil {
		t.Fatal(err)
	}
	if read1(t, path+".trash") != "x" {
		t.Error("not in the trash")
	}
}
