// Package settings is settings.json: the user's file, the project's file on top,
// old names understood, typed answers with defaults for the settings that the
// program knows, and the one that writes them.
//
// Files are JSON; comments and commas before closing brackets are passed over.
// Settings that this version does not know are kept. A value that a setting
// cannot have does not count, and File.Problems tells where it stands and what
// is wanted; the rest of the file does count. A file that is no JSON object
// counts as empty and is never written.
//
// Some answers of the user's file are needed before it is known whether the
// project's file may count:
//
//	user := settings.Read(filepath.Join(agentFolder, "settings.json"))
//	…                                               // who is trusted
//	store := settings.OpenStore(user.Path, project) // "" for a project that is not
//	s := store.Settings()
//
// A Store reads the files again when they have changed, keeps what worked where
// they have become worse, and writes single settings without touching anything
// else in the file.
package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonedit"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/regular"
)

// File is one settings file as read.
type File struct {
	Path string
	// Err is a *FileError when the file is there but cannot be used. It then
	// counts as empty and must not be written.
	Err error
	// Problems are what is wrong with single settings, in the order of the file.
	Problems []*Problem
	root     object
}

// FileError says that a settings file cannot be used.
type FileError struct {
	Path  string
	Op    string // read, parse, lock, write
	Cause error
}

func (e *FileError) Error() string {
	if e.Op == "parse" {
		return fmt.Sprintf("Invalid settings file %s: %v", e.Path, e.Cause)
	}
	return fmt.Sprintf("Failed to %s the settings file %s: %v", e.Op, e.Path, e.Cause)
}

func (e *FileError) Unwrap() error { return e.Cause }

// Read reads the user's settings file. A missing one is empty; "" reads nothing.
func Read(path string) *File { return read(path, false) }

func read(path string, project bool) *File {
	f := &File{Path: path}
	if path == "" {
		return f
	}
	b, err := regular.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f
	}
	if err != nil {
		f.Err = &FileError{Path: path, Op: "read", Cause: err}
		return f
	}
	return newFile(path, b, project)
}

// Parse is Read of content already at hand.
func Parse(path string, content []byte) *File { return newFile(path, content, false) }

func newFile(path string, content []byte, project bool) *File {
	f := &File{Path: path}
	if jsonedit.Blank(content) {
		return f
	}
	plain := jsonedit.Plain(content)
	if rest, marked := bytes.CutPrefix(content, []byte("\xEF\xBB\xBF")); marked {
		content, plain = rest, plain[len(plain)-len(rest):] // the mark is in no column
	}
	if _, err := parseObject(plain); err != nil {
		f.Err = &FileError{Path: path, Op: "parse", Cause: locate(content, err)}
		return f
	}
	root, problems := checkText(plain, project)
	for _, p := range problems {
		p.Path = path
	}
	f.root, f.Problems = migrate(slices.Clone(root), root), problems
	return f
}

// checkText checks the settings of an object in plain JSON and gives those that
// count. Values of settings that are errors where they are used do.
func checkText(plain []byte, project bool) (object, []*Problem) {
	var problems []*Problem
	unknown := 0 // a file of nothing but unknown names has its own reason
	lines := sync.OnceValue(func() []int { return lineStarts(plain) })
	c := &check{text: plain, project: project, report: func(p Problem, at int) {
		if p.Kind == Unknown {
			if unknown++; unknown > 1000 {
				return
			}
		}
		p.Line, _ = slices.BinarySearch(lines(), at+1)
		p.Column = at - lines()[p.Line-1] + 1
		problems = append(problems, &p)
	}}
	start := bytes.IndexByte(plain, '{')
	kept := schema().check(value{c, "", start, bytes.LastIndexByte(plain, '}') + 1})
	root, _ := parseObject(kept) // what was checked is an object
	all, _ := parseObject(plain[start:])
	slips := 0
	for _, p := range problems {
		k := lookUp(p.Key)
		switch {
		case p.Kind == Invalid && k != nil && k.strict:
			p.AtUse = true
			path := strings.Split(k.name, ".")
			root = root.put(path, all.at(path))
		case p.Kind == Unknown && slips < 50:
			slips++
			p.Suggestion = suggest(all, p.Key)
		}
	}
	return root, problems
}

// keeping is f, in which settings that cannot have their values have those of
// before, where these worked.
func (f *File) keeping(before *File) *File {
	out := &File{Path: f.Path, root: f.root}
	for _, p := range f.Problems {
		if p.Kind == Invalid && before.worked(p.setting()) {
			kept := *p
			p = &kept
			path := strings.Split(p.setting(), ".")
			last := before.root.at(path)
			p.Kept, p.AtUse = last != nil, false
			out.root = out.root.put(path, last)
		}
		out.Problems = append(out.Problems, p)
	}
	return out
}

// worked reports whether a setting had a value that counts, or none.
func (f *File) worked(setting string) bool {
	return !slices.ContainsFunc(f.Problems, func(p *Problem) bool {
		return p.Kind == Invalid && !p.Kept && p.setting() == setting
	})
}

// Folder is the folder that relative paths of the file start from.
func (f *File) Folder() string { return filepath.Dir(f.Path) }

// Raw is the value of a key after the renaming of old keys, nil when absent.
func (f *File) Raw(key string) jsontext.Value {
	if f == nil {
		return nil
	}
	return f.root.get(key)
}

// Strings is a list of strings, nil when the key is absent or no list. Values
// of other kinds in it are left out. It reads the lists that scopes combine:
// skills, prompts, themes, extensions.
func (f *File) Strings(key string) []string { return stringList(f.Raw(key)) }

// Settings are the merged settings of a program. They do not change.
type Settings struct {
	User, Project *File // the files merged; nil for none
	root          object
}

// Merge puts the project's file over the user's. Either may be nil. Objects
// merge member by member, lists and scalars replace, and so does null, which
// counts as unset; a project's defaultTools made of +name and -name entries is
// added to the user's. Keys that only the user may set are not taken from the
// project.
func Merge(user, project *File) *Settings {
	s := &Settings{User: user, Project: project}
	if user != nil {
		s.root = user.root
	}
	if project != nil {
		s.root = overlay(s.root, project.root)
	}
	return s
}

// Raw is the merged value of a key, nil when absent.
func (s *Settings) Raw(key string) jsontext.Value { return s.root.get(key) }

// Problems is what is wrong with the files: a *FileError for one that does not
// count, a *Problem for a single setting.
func (s *Settings) Problems() []error {
	var list []error
	for _, f := range []*File{s.User, s.Project} {
		if f == nil {
			continue
		}
		if f.Err != nil {
			list = append(list, f.Err)
		}
		for _, p := range f.Problems {
			list = append(list, p)
		}
	}
	return list
}

// locate adds line and column to a syntax error.
func locate(content []byte, err error) error {
	syntax, ok := errors.AsType[*jsonwire.SyntaxError](err)
	if !ok {
		return err
	}
	line, column := position(content, syntax.Offset)
	return fmt.Errorf("%s (line %d, column %d)", syntax.Msg, line, column)
}

// position is the line and the column of a place.
func position(content []byte, at int) (line, column int) {
	at = min(at, len(content))
	return bytes.Count(content[:at], []byte("\n")) + 1, at - bytes.LastIndexByte(content[:at], '\n')
}

// lineStarts are the places where lines begin.
func lineStarts(content []byte) []int {
	starts := []int{0}
	for i, c := range content {
		if c == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}
