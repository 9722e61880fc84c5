package tool

import (
	"context"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/unicode/norm"

	"github.com/pinch-agent/pinch/env"
	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// pathArg is the path argument of a call, as the model wrote it.
func pathArg(args jsontext.Value) (string, bool) {
	s, ok := jsonwire.StringValue(jsonwire.Get(args, "path"))
	return jsonwire.ToValidUTF8(s), ok
}

// resolvePath turns a path as a model writes it into an absolute one: odd
// spaces become plain ones, one leading @ (the mark of a file mention) goes, ~
// is the home directory, and file: addresses are accepted.
func resolvePath(fs env.FileSystem, path string) string {
	path = strings.Map(plainSpace, path)
	path = strings.TrimPrefix(path, "@")
	if path == "~" {
		path = fs.HomeDir()
	} else if rest, ok := strings.CutPrefix(path, "~/"); ok {
		path = filepath.Join(fs.HomeDir(), rest)
	} else if strings.HasPrefix(path, "file://") {
		if p, ok := fileURLPath(path); ok {
			path = p
		}
	}
	return fs.Abs(path)
}

// plainSpace maps the spaces that models and clipboards put into paths.
func plainSpace(r rune) rune {
	switch {
	case r == 0xA0, r >= 0x2000 && r <= 0x200A, r == 0x202F, r == 0x205F, r == 0x3000:
		return ' '
	}
	return r
}

func fileURLPath(s string) (string, bool) {
	u, err := url.Parse(s)
	if err != nil || u.Host != "" && u.Host != "localhost" || u.Path == "" {
		return "", false
	}
	path := u.Path
	if runtime.GOOS == "windows" {
		path = strings.TrimPrefix(path, "/")
	}
	return filepath.FromSlash(path), true
}

// findReadable is the file that a path to be read means. Screenshot tools and
// file systems write some characters of names in other ways than models do;
// those are tried when there is no file of the very name.
func findReadable(ctx context.Context, fs env.FileSystem, path string) string {
	exists := func(p string) bool { return fs.Access(ctx, p, 0) == nil }
	if exists(path) {
		return path
	}
	nfd := norm.NFD.String(path)
	for _, p := range []string{narrowSpaces(path), nfd, curlyApostrophes(path), curlyApostrophes(nfd)} {
		if p != path && exists(p) {
			return p
		}
	}
	return path
}

// narrowSpaces puts a narrow no-break space before AM and PM, as the names of
// macOS screenshots have it.
func narrowSpaces(path string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(path, ' ')
		if i < 0 || len(path) < i+4 {
			b.WriteString(path)
			return b.String()
		}
		word := path[i+1 : i+4]
		b.WriteString(path[:i])
		if strings.EqualFold(word, "am.") || strings.EqualFold(word, "pm.") {
			b.WriteString("\u202F")
		} else {
			b.WriteByte(' ')
		}
		path = path[i+1:]
	}
}

func curlyApostrophes(path string) string { return strings.ReplaceAll(path, "'", "\u2019") }
