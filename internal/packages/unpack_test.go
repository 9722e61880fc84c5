package packages

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// entry is an entry of an archive; the zero Typeflag is a file.
type entry struct {
	name, content string
	kind          byte
	link          string
	mode          int64
	size          int64 // claimed; 0 for that of content
}

func tarOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Linkname: e.link, Mode: e.mode, Size: int64(len(e.content))}
		if e.size > 0 {
			h.Size = e.size
		}
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil && !strings.Contains(err.Error(), "missed writing") {
		t.Fatal(err)
	}
	return append(b.Bytes(), make([]byte, 1024)...)
}

func gzipped(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestUnpack(t *testing.T) {
	small := Limits{Archive: 1 << 20, Content: 100, Files: 5, Ratio: 10}
	for _, c := range []struct {
		name    string
		entries []entry
		refused string // "" for unpacked
	}{
		{"files", []entry{{name: "package/", kind: tar.TypeDir}, {name: "package/a/b.md", content: "b"}, {name: "package/run.sh", content: "x", mode: 0o4777}}, ""},
		{"other folder", []entry{{name: "thing/a", content: "b"}}, ""},
		{"absolute", []entry{{name: "/etc/passwd", content: "x"}}, "is absolute"},
		{"absolute on Windows", []entry{{name: `C:/x`, content: "x"}}, "is absolute"},
		{"backslashes", []entry{{name: `package\..\..\x`, content: "x"}}, "backslash"},
		{"up", []entry{{name: "package/../../x", content: "x"}}, "leads out"},
		{"up to itself", []entry{{name: "package/a/../b", content: "x"}}, "leads out"},
		{"only up", []entry{{name: "..", content: "x"}}, "leads out"},
		{"dot", []entry{{name: "package/./b", content: "x"}}, "not plain"},
		{"symbolic link", []entry{{name: "package/l", kind: tar.TypeSymlink, link: "/etc"}, {name: "package/l/x", content: "x"}}, "is a link"},
		{"harmless link", []entry{{name: "package/l", kind: tar.TypeSymlink, link: "b.md"}}, "is a link"},
		{"hard link", []entry{{name: "package/l", kind: tar.TypeLink, link: "/etc/passwd"}}, "is a link"},
		{"device", []entry{{name: "package/d", kind: tar.TypeChar}}, "neither a file"},
		{"pipe", []entry{{name: "package/p", kind: tar.TypeFifo}}, "neither a file"},
		{"twice", []entry{{name: "package/a", content: "1"}, {name: "package/a", content: "2"}}, "twice"},
		{"cases", []entry{{name: "package/a/SKILL.md", content: "1"}, {name: "package/A/x", content: "2"}}, "one name"},
		{"compositions", []entry{{name: "package/\u00e9", content: "1"}, {name: "package/e\u0301", content: "2"}}, "one name"},
		{"file as folder", []entry{{name: "package/a", content: "1"}, {name: "package/a/b", content: "2"}}, "twice"},
		{"outside of the folder", []entry{{name: "a", content: "1"}}, "not in the folder"},
		{"too much", []entry{{name: "package/a", content: strings.Repeat("a", 60)}, {name: "package/b", content: strings.Repeat("a", 60)}}, "too large"},
		{"too many", []entry{{name: "p/1"}, {name: "p/2"}, {name: "p/3"}, {name: "p/4"}, {name: "p/5"}, {name: "p/6"}}, "more than 5 files"},
		{"nothing", nil, "is empty"},
		{"the record", []entry{{name: "package/" + File, content: "{}"}}, "pinch's own"},
		{"git", []entry{{name: "package/.GIT/config", content: "x"}}, "git's own"},
		{"hidden characters", []entry{{name: "package/a\u202egpj.exe", content: "x"}}, "cannot be seen"},
		{"line end", []entry{{name: "package/a\nb", content: "x"}}, "cannot be seen"},
		{"trailing dot", []entry{{name: "package/a./b", content: "x"}}, "ends in a dot"},
		{"deep", []entry{{name: strings.Repeat("p/", 40) + "x", content: "x"}}, "too long"},
	} {
		dir := t.TempDir()
		files, err := unpackGzip(t.Context(), bytes.NewReader(gzipped(t, tarOf(t, c.entries...))), dir, 1, small)
		f, _ := errors.AsType[*fault](err)
		switch {
		case c.refused == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.refused != "" && (f == nil || f.kind != Refused || !strings.Contains(err.Error(), c.refused)):
			t.Errorf("%s: %v, want %q", c.name, err, c.refused)
		case c.refused == "":
			found, err := hashFiles(dir)
			if err != nil || len(found) != len(files) {
				t.Errorf("%s: %v %v %v", c.name, found, files, err)
			}
		}
	}
}

func TestUnpackedModes(t *testing.T) {
	dir := t.TempDir()
	b := tarOf(t, entry{name: "p/x.sh", content: "x", mode: 0o6755}, entry{name: "p/y", content: "y", mode: 0o002}, entry{name: "p/d", kind: tar.TypeDir, mode: 0o1777})
	files, err := unpack(t.Context(), bytes.NewReader(b), dir, 1, DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	sum := sha512.Sum512([]byte("x"))
	if files["x.sh"] != sri(sum[:]) {
		t.Error(files)
	}
	for name, want := range map[string]fs.FileMode{"x.sh": 0o111, "y": 0} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if os.PathSeparator == '/' && (info.Mode().Perm()&0o111 != want&info.Mode().Perm() || info.Mode().Perm()&0o022 != 0 || info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0) {
			t.Errorf("%s: %v", name, info.Mode())
		}
	}
}

// A small archive that becomes a large one ends early.
func TestBomb(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	const size = 64 << 20
	if err := w.WriteHeader(&tar.Header{Name: "p/zeros", Typeflag: tar.TypeReg, Mode: 0o644, Size: size}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	_, err := unpackGzip(t.Context(), bytes.NewReader(gzipped(t, b.Bytes())), dir, 1, DefaultLimits())
	if f, _ := errors.AsType[*fault](err); f == nil || !strings.Contains(err.Error(), "grows by more than") {
		t.Errorf("got %v", err)
	}
	if info, err := os.Stat(filepath.Join(dir, "zeros")); err == nil && info.Size() > size/2 {
		t.Errorf("%d bytes were written", info.Size())
	}
	// A file that claims more than there may be is not begun.
	header := tarOf(t, entry{name: "p/big", content: "x", size: 1 << 40})
	if _, err := unpack(t.Context(), bytes.NewReader(header), t.TempDir(), 1, DefaultLimits()); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("got %v", err)
	}
}

func TestUnpackEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := unpack(ctx, bytes.NewReader(tarOf(t, entry{name: "p/a", content: "a"})), t.TempDir(), 1, DefaultLimits()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	whole := gzipped(t, tarOf(t, entry{name: "p/a", content: strings.Repeat("a b ", 500)}))
	for _, damaged := range [][]byte{nil, []byte("no gzip"), whole[:len(whole)-1], whole[:len(whole)/2], append(bytes.Clone(whole[:len(whole)-8]), 0, 0, 0, 0, 0, 0, 0, 0)} {
		if _, err := unpackGzip(t.Context(), bytes.NewReader(damaged), t.TempDir(), 1, DefaultLimits()); err == nil {
			t.Errorf("%d of %d bytes were taken", len(damaged), len(whole))
		}
	}
}

// Whatever an archive says, nothing appears outside of the folder, and nothing in
// it but plain files and folders within the limits.
func FuzzUnpack(f *testing.F) {
	f.Add(tarOf(f, entry{name: "package/a/b.md", content: "b"}, entry{name: "package/c", content: "c", mode: 0o755}))
	f.Add(tarOf(f, entry{name: "package/../../x", content: "x"}))
	f.Add(tarOf(f, entry{name: "package/l", kind: tar.TypeSymlink, link: ".."}, entry{name: "package/l/x", content: "x"}))
	f.Add(tarOf(f, entry{name: "package/" + strings.Repeat("long/", 60) + "x", content: "x"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		outer := t.TempDir()
		dir := filepath.Join(outer, "d", "in")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		limits := Limits{Archive: 1 << 20, Content: 4096, Files: 20, Ratio: 10}
		files, unpackErr := unpack(t.Context(), bytes.NewReader(b), dir, 1, limits)
		total := int64(0)
		err := filepath.WalkDir(outer, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if rel, err := filepath.Rel(dir, path); err != nil || !filepath.IsLocal(rel) && rel != ".." && rel != filepath.Join("..", "..") {
				t.Errorf("%q is outside", path)
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			if !e.IsDir() && !e.Type().IsRegular() {
				t.Errorf("%q is %v", path, e.Type())
			}
			if !e.IsDir() {
				total += info.Size()
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if total > limits.Content+1 {
			t.Errorf("%d bytes", total)
		}
		if unpackErr == nil {
			found, err := hashFiles(dir)
			if err != nil || contentOf(found) != contentOf(files) {
				t.Errorf("%v, recorded %v, %v", found, files, err)
			}
		}
	})
}
