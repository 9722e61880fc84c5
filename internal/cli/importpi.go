package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// importOptions say what to take over from where.
type importOptions struct {
	from string // an agent folder of pi
	to   string // ours
	link bool   // link the entries instead of copying them
}

// notImported reports whether an entry of an agent folder is of no use to
// another program: caches, logs, locks, and tools for one program's own use.
func notImported(name string) bool {
	return slices.Contains([]string{"bin", "tmp", "models-store.json"}, name) ||
		strings.HasSuffix(name, ".log") || strings.HasSuffix(name, ".lock")
}

// importPi copies or links the entries of pi's agent folder and tells on out
// what it did. Nothing that is there already is touched, so it may run again.
func importPi(o importOptions, out io.Writer) error {
	entries, err := os.ReadDir(o.from)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("nothing to import: there is no folder %s (--from names another)", o.from)
	}
	if err != nil {
		return err
	}
	if same, err := sameFolder(o.from, o.to); err != nil {
		return err
	} else if same {
		return fmt.Errorf("nothing to import: %s is the agent folder in use", o.from)
	}
	if err := os.MkdirAll(o.to, 0o700); err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if notImported(name) {
			continue
		}
		from, to := filepath.Join(o.from, name), filepath.Join(o.to, name)
		if o.link {
			if _, err := os.Lstat(to); err == nil {
				fmt.Fprintf(out, "Kept %s (there already)\n", name)
				continue
			}
			if err := os.Symlink(from, to); err != nil {
				return fmt.Errorf("cannot link %s: %w (leave --link out to copy)", name, err)
			}
			fmt.Fprintf(out, "Linked %s\n", name)
			continue
		}
		copied, kept, err := copyTree(from, to)
		if err != nil {
			return fmt.Errorf("cannot copy %s: %w", name, err)
		}
		switch {
		case e.IsDir() && kept > 0:
			fmt.Fprintf(out, "Copied %s (%s, %d there already)\n", name, plural(copied, "file"), kept)
		case e.IsDir():
			fmt.Fprintf(out, "Copied %s (%s)\n", name, plural(copied, "file"))
		case kept > 0:
			fmt.Fprintf(out, "Kept %s (there already)\n", name)
		case copied == 0:
			fmt.Fprintf(out, "Left out %s (neither a file nor a folder)\n", name)
		default:
			fmt.Fprintf(out, "Copied %s\n", name)
		}
	}
	fmt.Fprintf(out, "Imported %s into %s\n", o.from, o.to)
	return nil
}

func sameFolder(a, b string) (bool, error) {
	ia, err := os.Stat(a)
	if err != nil {
		return false, err
	}
	ib, err := os.Stat(b)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return os.SameFile(ia, ib), nil
}

// copyTree copies a file or folder. Files that are there already are kept.
// Links stay links, to the same absolute place.
func copyTree(from, to string) (copied, kept int, err error) {
	err = filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		dest := filepath.Join(to, rel)
		info, err := e.Info()
		if err != nil {
			return err
		}
		if e.IsDir() {
			// The owner must be able to fill the folder, whatever its mode says.
			return os.MkdirAll(dest, info.Mode().Perm()|0o700)
		}
		if strings.HasSuffix(path, ".lock") {
			return nil
		}
		if _, err := os.Lstat(dest); err == nil {
			kept++
			return nil
		}
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(path), target)
			}
			err = os.Symlink(target, dest)
			if err == nil {
				copied++
			}
			return err
		case info.Mode().IsRegular():
			copied++
			return copyFile(path, dest, info)
		}
		return nil // sockets and pipes belong to a running program
	})
	return copied, kept, err
}

// copyFile copies content, time and the owner's part of the mode: what is kept
// here is nobody else's to read. The file appears under its name only when it is
// whole.
func copyFile(from, to string, info fs.FileInfo) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.CreateTemp(filepath.Dir(to), ".import-*")
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Chmod(info.Mode().Perm() & 0o700)
	}
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		// "Continue" goes by the time of session files.
		err = os.Chtimes(out.Name(), info.ModTime(), info.ModTime())
	}
	if err == nil {
		err = os.Rename(out.Name(), to)
	}
	if err != nil {
		os.Remove(out.Name())
	}
	return err
}
