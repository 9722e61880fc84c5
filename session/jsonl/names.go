package jsonl

import (
	"path/filepath"
	"strings"
	"time"
)

// FolderName is the name of the folder that holds the sessions of a working
// directory.
func FolderName(cwd string) string {
	if abs, err := filepath.Abs(cwd); err == nil {
		cwd = abs
	}
	if strings.HasPrefix(cwd, "/") || strings.HasPrefix(cwd, `\`) {
		cwd = cwd[1:]
	}
	return "--" + strings.NewReplacer("/", "-", `\`, "-", ":", "-").Replace(cwd) + "--"
}

// FileName is the name of the file of a session that begins at a time.
func FileName(t time.Time, id string) string {
	stamp := t.UTC().Format("2006-01-02T15:04:05.000Z")
	return strings.NewReplacer(":", "-", ".", "-").Replace(stamp) + "_" + id + extension
}

const extension = ".jsonl"

// isPath reports whether a session argument names a file rather than an id.
func isPath(arg string) bool {
	return strings.ContainsAny(arg, `/\`) || strings.HasSuffix(arg, extension)
}
