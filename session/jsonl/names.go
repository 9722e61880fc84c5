package jsonl

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// maxName is the longest name of a folder that file systems take: in bytes, and
// in UTF-16 units on Windows.
const maxName = 255

// FolderName is the name of the folder that holds the sessions of a working
// directory. One that would be longer than a name can be is cut, and a hash of
// the directory tells it from others that begin alike.
func FolderName(cwd string) string {
	if abs, err := filepath.Abs(cwd); err == nil {
		cwd = abs
	}
	if strings.HasPrefix(cwd, "/") || strings.HasPrefix(cwd, `\`) {
		cwd = cwd[1:]
	}
	name := "--" + strings.NewReplacer("/", "-", `\`, "-", ":", "-").Replace(cwd) + "--"
	size := len(name)
	if runtime.GOOS == "windows" {
		size = len(utf16.Encode([]rune(name)))
	}
	if size > maxName {
		end := fmt.Sprintf("-%x--", sha256.Sum256([]byte(cwd)))
		cut := maxName - len(end)
		for !utf8.RuneStart(name[cut]) && cut > maxName-len(end)-utf8.UTFMax {
			cut--
		}
		name = name[:cut] + end
	}
	return name
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
