package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// A person is told what of a package does nothing here.
func TestInactiveExtensionsAreSaid(t *testing.T) {
	home := t.TempDir()
	pack := filepath.Join(t.TempDir(), "pack")
	if err := os.MkdirAll(filepath.Join(pack, "extensions"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(pack, "extensions", "e.ts"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	a := startAtTerminal(t, home, "install", pack)
	a.await("Extensions: 1, kept and inactive")
	a.end(0)
	if err := os.RemoveAll(pack); err != nil {
		t.Fatal(err)
	}
	a = startAtTerminal(t, home, "list")
	a.await("is not installed")
	a.end(0)
}
