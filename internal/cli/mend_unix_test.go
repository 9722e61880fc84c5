//go:build unix

package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/pinch-agent/pinch/auth"
	"github.com/pinch-agent/pinch/internal/settings"
	"github.com/pinch-agent/pinch/llm/catalog"
)

// Nobody is told to remove a file that they only have no right to read.
func TestMend(t *testing.T) {
	if got := mend(errors.New("a comma too many")); got != "correct or remove it" {
		t.Errorf("a broken file: %q", got)
	}
	if got := mend(&fs.PathError{Op: "open", Path: "f", Err: fs.ErrPermission}); got != "give yourself the right to read it" {
		t.Errorf("an unreadable file: %q", got)
	}
}

// What is told of files that may not be read leads mend to the right advice.
func TestUnreadableFilesAreAMatterOfRights(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	path := filepath.Join(t.TempDir(), "f.json")
	if err := os.WriteFile(path, []byte("{}"), 0o000); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"auth.json":     auth.OpenStore(path, auth.StoreOptions{}).Problem(),
		"models.json":   catalog.New(catalog.Options{ModelsFile: path}).Problem(),
		"settings.json": errors.Join(settings.Merge(settings.Read(path), nil).Problems()...),
	} {
		if !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v does not say that it is a matter of rights", what, err)
		}
	}
}
