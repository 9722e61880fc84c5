// Package settings reads settings.json: the user's file, the project's file on
// top, old keys renamed, and typed answers with defaults for the keys that the
// program knows. Unknown keys are kept and ignored; a value of the wrong kind
// counts as absent.
//
// Reading and merging are apart, because some answers are needed before it is
// known whether the project's file may count:
//
//	user := settings.Read(filepath.Join(agentFolder, "settings.json"))
//	project := settings.Read(projectFile)
//	dir := settings.Merge(user, project).SessionDir() // counts before trust
//	if !trusted {
//		project = nil
//	}
//	s := settings.Merge(user, project)
package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/regular"
)

// File is one settings file as read.
type File struct {
	Path string
	// Err is a *FileError when the file is there but cannot be used. It then
	// counts as empty and must not be written.
	Err  error
	root object
}

// FileError says that a settings file cannot be used.
type FileError struct {
	Path  string
	Cause error
}

func (e *FileError) Error() string {
	return fmt.Sprintf("Invalid settings file %s: %v", e.Path, e.Cause)
}

func (e *FileError) Unwrap() error { return e.Cause }

// Read reads a settings file. A missing one is empty; "" reads nothing.
func Read(path string) *File {
	f := &File{Path: path}
	if path == "" {
		return f
	}
	b, err := regular.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f
	}
	if err != nil {
		f.Err = &FileError{Path: path, Cause: err}
		return f
	}
	return Parse(path, b)
}

// Parse is Read of content already at hand.
func Parse(path string, content []byte) *File {
	f := &File{Path: path}
	content = bytes.TrimPrefix(content, []byte("\xEF\xBB\xBF"))
	root, err := parseObject(content)
	if err != nil {
		f.Err = &FileError{Path: path, Cause: locate(content, err)}
		return f
	}
	f.root = migrate(root)
	return f
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

// Settings are the merged settings of a program.
type Settings struct {
	User, Project *File // the files merged; nil for none
	root          object
}

// Merge puts the project's file over the user's. Either may be nil. Objects
// merge member by member, lists and scalars replace; a project's defaultTools
// made of +name and -name entries is added to the user's. Keys that only the
// user may set are not taken from the project.
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

// locate adds line and column to a syntax error.
func locate(content []byte, err error) error {
	syntax, ok := errors.AsType[*jsonwire.SyntaxError](err)
	if !ok {
		return err
	}
	at := min(syntax.Offset, len(content))
	line := bytes.Count(content[:at], []byte("\n")) + 1
	column := at - bytes.LastIndexByte(content[:at], '\n')
	return fmt.Errorf("%s (line %d, column %d)", syntax.Msg, line, column)
}
