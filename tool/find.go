package tool

import (
	"context"
	_ "embed"
	"errors"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/env"
	"github.com/pinch-agent/pinch/internal/glob"
	"github.com/pinch-agent/pinch/internal/jsonwire"
)

//go:embed find.md
var findText string

// Find is the tool that finds files by name.
func Find(opts FindOptions) *agent.Tool {
	t := declare("find", findText,
		param{name: "pattern", typ: "string", required: true},
		param{name: "path", typ: "string"},
		param{name: "limit", typ: "number"})
	t.ConstrainedSampling = nil
	t.ReplaySafe = true
	t.Execute = func(ctx context.Context, call agent.Call) (agent.Result, error) {
		r, err := opts.find(ctx, call.Args)
		return r, systemError(err)
	}
	return t
}

// defaultFindLimit is how many results are shown when the model does not say.
const defaultFindLimit = 1000

func (o *FindOptions) find(ctx context.Context, args jsontext.Value) (agent.Result, error) {
	root := resolvePath(o.Env, pathOrHere(args))
	limit := limitArg(args, defaultFindLimit)
	if dir, err := isDir(ctx, o.Env, root); err != nil || !dir {
		if env.CodeOf(err) == env.Aborted {
			return agent.Result{}, err
		}
		return agent.Result{}, errors.New("[fd error]: Search path '" + root + "' is not a directory.\n[fd error]: No valid search paths given.")
	}
	w := newWalk(ctx, o.Env, root, o.ConfigDir, ".fdignore", false)
	matches, err := nameMatcher(w, textArg(args, "pattern"))
	if err != nil {
		return agent.Result{}, err
	}
	var list listing
	limited := false
	err = w.run(ctx, func(f found) bool {
		if !matches(f.rel) {
			return true
		}
		if list.lines == limit {
			limited = true
			return false
		}
		line := jsonwire.ToValidUTF8(f.rel)
		if f.kind == env.KindDirectory {
			line += "/"
		}
		list.line([]byte(line))
		return true
	})
	switch {
	case err != nil:
		return agent.Result{}, err
	case list.lines == 0:
		return agent.TextResult("No files found matching pattern"), nil
	}
	if limited {
		return list.result([]note{limitNote(limit, "results", ", or refine pattern", "resultLimitReached")}, nil), nil
	}
	return list.result(nil, nil), nil
}

// nameMatcher decides about paths relative to the root of a walk.
func nameMatcher(w *walk, pattern string) (func(rel string) bool, error) {
	pattern = strings.TrimPrefix(pattern, "./")
	relative := strings.Contains(pattern, "/") && !strings.HasPrefix(pattern, "/")
	if relative {
		pattern = "/" + pattern // from the root of the walk on
	}
	g, err := glob.Compile(pattern, glob.Options{})
	if err == nil && !g.HasUpper() {
		g, err = glob.Compile(pattern, glob.Options{FoldCase: true})
	}
	if err != nil {
		return nil, errors.New("[fd error]: " + err.Error())
	}
	switch {
	case pattern == "":
		return func(string) bool { return true }, nil
	case relative:
		return func(rel string) bool { return g.Match("/" + rel) }, nil
	case strings.HasPrefix(pattern, "/"):
		return func(rel string) bool { return g.Match(w.path(rel)) }, nil
	}
	return func(rel string) bool { return g.Match(rel[strings.LastIndexByte(rel, '/')+1:]) }, nil
}

// pathOrHere is the path argument as the model wrote it, the working directory
// without one.
func pathOrHere(args jsontext.Value) string {
	if path, _ := pathArg(args); path != "" {
		return path
	}
	return "."
}

// isDir tells whether there is a directory at path, behind links too.
func isDir(ctx context.Context, fs env.FileSystem, path string) (bool, error) {
	info, err := fs.Info(ctx, path)
	if err == nil && info.Kind == env.KindSymlink {
		real, err := fs.Canonical(ctx, path)
		if err != nil {
			return false, err
		}
		info, err = fs.Info(ctx, real)
		return info.Kind == env.KindDirectory, err
	}
	return info.Kind == env.KindDirectory, err
}
