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

// A person is told that a package of a project waits for trust.
func TestInstallForAnUntrustedProjectIsSaid(t *testing.T) {
	home := t.TempDir() // the working folder too
	if err := os.MkdirAll(filepath.Join(home, "pack", "skills"), 0o755); err != nil {
		t.Fatal(err)
	}
	a := startAtTerminal(t, home, "install", "-l", "./pack")
	a.await("so the package does not count yet: pinch trust yes")
	a.end(0)
}

// A person is told that another model answers than the one in the settings.
func TestMissingDefaultModelIsSaid(t *testing.T) {
	home := t.TempDir()
	writeAgentFile(t, home, "models.json", `{"providers":{"localc":{"baseUrl":"http://127.0.0.1:9/v1","api":"openai-completions","apiKey":"k","models":[{"id":"c"}]}}}`)
	writeAgentFile(t, home, "settings.json", `{"defaultProvider":"localc","defaultModel":"gone","retry":{"enabled":false}}`)
	a := startAtTerminal(t, home, "-p", "hi")
	a.await("The default model localc/gone is not set up. Using localc/c.")
	a.end(1)
}
