package tool

import (
	"context"
	_ "embed"
	"errors"
	"path/filepath"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/env"
	"github.com/pinch-agent/pinch/internal/jsonwire"
)

//go:embed ls.md
var lsText string

// Ls is the tool that lists folders.
func Ls(opts LsOptions) *agent.Tool {
	t := declare("ls", lsText,
		param{name: "path", typ: "string"},
		param{name: "limit", typ: "number"})
	t.ConstrainedSampling = nil
	t.ReplaySafe = true
	t.Execute = func(ctx context.Context, call agent.Call) (agent.Result, error) {
		r, err := opts.ls(ctx, call.Args)
		return r, systemError(err)
	}
	return t
}

// defaultLsLimit is how many entries are shown when the model does not say.
const defaultLsLimit = 500

func (o *LsOptions) ls(ctx context.Context, args jsontext.Value) (agent.Result, error) {
	dir := resolvePath(o.Env, pathOrHere(args))
	limit := limitArg(args, defaultLsLimit)
	switch ok, err := isDir(ctx, o.Env, dir); {
	case env.CodeOf(err) == env.Aborted:
		return agent.Result{}, err
	case err != nil:
		return agent.Result{}, errors.New("Path not found: " + dir)
	case !ok:
		return agent.Result{}, errors.New("Not a directory: " + dir)
	}
	entries, err := env.Entries(ctx, o.Env, dir)
	if env.CodeOf(err) == env.Aborted {
		return agent.Result{}, err
	} else if err != nil {
		return agent.Result{}, errors.New("Cannot read directory: " + systemError(err).Error())
	}
	sortNames(entries, func(e env.Entry) string { return e.Name })
	var list listing
	limited := false
	for _, e := range entries {
		if list.lines == limit {
			limited = true
			break
		}
		isFolder, err := e.Kind == env.KindDirectory, error(nil)
		if e.Kind == env.KindSymlink {
			isFolder, err = isDir(ctx, o.Env, filepath.Join(dir, e.Name))
		}
		if env.CodeOf(err) == env.Aborted {
			return agent.Result{}, err
		} else if err != nil {
			continue // it leads nowhere
		}
		line := jsonwire.ToValidUTF8(e.Name)
		if isFolder {
			line += "/"
		}
		list.line([]byte(line))
	}
	if list.lines == 0 {
		return agent.TextResult("(empty directory)"), nil
	}
	if limited {
		return list.result([]note{limitNote(limit, "entries", "", "entryLimitReached")}, nil), nil
	}
	return list.result(nil, nil), nil
}
