package packages

import (
	"bytes"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pinch-agent/pinch/internal/regular"
)

// File is the name of the record in the folder of an installed package.
const File = ".pinch-package.json"

// Record says what a package is and where it came from.
type Record struct {
	Source    string            `json:"source"`              // as it was asked for
	Version   string            `json:"version,omitempty"`   // of a package of npm
	Archive   string            `json:"archive,omitempty"`   // the address that it came from
	Integrity string            `json:"integrity,omitempty"` // of the archive, as the registry has it and it was checked
	Commit    string            `json:"commit,omitempty"`    // of a repository
	Content   string            `json:"content"`             // sha512 of the list of files, so that packages can be compared
	Files     map[string]string `json:"files"`               // sha512 of each
}

// Short names the version for a person.
func (r *Record) Short() string {
	if r.Commit != "" {
		return r.Commit[:min(12, len(r.Commit))]
	}
	return r.Version
}

// sri writes a sha512 hash in the form that registries use.
func sri(sum []byte) string { return "sha512-" + base64.StdEncoding.EncodeToString(sum) }

func contentOf(files map[string]string) string {
	h := sha512.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(h, "%s  %s\n", files[name], name)
	}
	return sri(h.Sum(nil))
}

func (r *Record) write(dir string) error {
	r.Content = contentOf(r.Files)
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, File), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

// readRecord reads the record of a folder, nil for none.
func readRecord(dir string) (*Record, error) {
	b, err := regular.ReadFile(filepath.Join(dir, File))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r Record
	if json.Unmarshal(b, &r) != nil || contentOf(r.Files) != r.Content {
		return &Record{}, nil // nothing is as recorded then
	}
	return &r, nil
}

// Status is how the folder of a package is.
type Status int

// The statuses.
const (
	Missing Status = iota
	Intact         // as it was installed
	Altered        // changed since
	Strange        // put there by another program: there is no record
)

// State is what is found in the place of a package.
type State struct {
	Status      Status
	Record      *Record     // nil without one
	Differences Differences // of Altered
}

// Differences are paths in a package that are not as recorded, sorted; behind
// those of files that are gone or were not recorded stands what they are.
type Differences []string

func (d Differences) String() string {
	const most = 3
	if len(d) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(d[:most], ", "), len(d)-most)
	}
	return strings.Join(d, ", ")
}

// Inspect compares the folder of a package with its record.
func Inspect(dir string) (State, error) {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return State{}, nil
	}
	r, err := readRecord(dir)
	if err != nil {
		return State{}, err
	}
	if r == nil {
		return State{Status: Strange}, nil
	}
	found, err := hashFiles(dir)
	if err != nil {
		return State{}, err
	}
	var d Differences
	if r.Content == "" {
		d = append(d, File)
	}
	for name, hash := range r.Files {
		switch is, there := found[name]; {
		case !there:
			d = append(d, name+" (missing)")
		case is != hash:
			d = append(d, name)
		}
		delete(found, name)
	}
	for name := range found {
		d = append(d, name+" (new)")
	}
	slices.Sort(d)
	if d == nil {
		return State{Status: Intact, Record: r}, nil
	}
	return State{Status: Altered, Record: r, Differences: d}, nil
}

// hashFiles hashes what is in the folder of a package, but for its record. What is
// no plain file has no hash.
func hashFiles(dir string) (map[string]string, error) {
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || rel == File {
			return err
		}
		hash := ""
		if e.Type().IsRegular() {
			if hash, err = hashFile(path); err != nil {
				return err
			}
		}
		found[filepath.ToSlash(rel)] = hash
		return nil
	})
	return found, err
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha512.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return sri(h.Sum(nil)), nil
}

// manifest is what counts of the package.json of a package.
type manifest struct {
	Dependencies map[string]string `json:"dependencies"`
}

// Dependencies are the npm packages that a package depends on and that are not
// there, sorted. Only extensions have a use for them.
func Dependencies(dir string) []string {
	b, err := regular.ReadFile(filepath.Join(dir, "package.json"))
	var m manifest
	if err != nil || json.Unmarshal(bytes.TrimPrefix(b, []byte("\xEF\xBB\xBF")), &m) != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(m.Dependencies)), func(name string) bool {
		path := filepath.FromSlash(name)
		if !filepath.IsLocal(path) {
			return false
		}
		_, err := os.Stat(filepath.Join(dir, "node_modules", path))
		return err == nil
	})
}
