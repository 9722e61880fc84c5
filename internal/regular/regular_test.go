package regular

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	name := func(s string) string { return filepath.Join(dir, s) }
	if err := os.WriteFile(name("plain"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(name("large"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(MaxSize + 1); err != nil {
		t.Fatal(err)
	}
	f.Close()
	cases := map[string]error{
		name("plain"):   nil,
		name("nothing"): fs.ErrNotExist,
		name("plain/x"): fs.ErrNotExist,
		name("large"):   ErrTooLarge,
		dir:             ErrNotRegular,
		os.DevNull:      ErrNotRegular,
	}
	if os.Symlink(name("plain"), name("link")) == nil {
		cases[name("link")] = nil
	}
	if os.Symlink(os.DevNull, name("device")) == nil {
		cases[name("device")] = ErrNotRegular
	}
	for path, want := range cases {
		b, err := ReadFile(path)
		if !errors.Is(err, want) || want == nil && string(b) != "text" {
			t.Errorf("%s: %q, %v, want %v", path, b, err, want)
		}
	}
	for path, want := range map[string]error{dir: ErrNotRegular, name("plain/x"): fs.ErrNotExist} {
		if _, err := Open(path); !errors.Is(err, want) {
			t.Errorf("Open(%s): %v, want %v", path, err, want)
		}
	}
}
