package tool

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/env"
	"github.com/pinch-agent/pinch/internal/jsonwire"
)

//go:embed applypatch.md
var applyPatchText string

// ApplyPatch is the tool that changes several files at once. It is for models
// that were trained on its format; the others do better with Edit.
func ApplyPatch(opts ApplyPatchOptions) *agent.Tool {
	fs, queue := opts.Env, opts.Queue
	if queue == nil {
		queue = &FileQueue{}
	}
	t := declare("apply_patch", applyPatchText, param{name: "input", typ: "string", required: true})
	t.Reserve = func(call agent.Call) func() {
		files, err := parsePatchArgs(call.Args)
		if err != nil {
			return func() {} // it will fail without touching a file
		}
		return queue.reserve(context.Background(), fs, call.ID, patchPaths(fs, files)...)
	}
	t.Execute = func(ctx context.Context, call agent.Call) (agent.Result, error) {
		files, err := parsePatchArgs(call.Args)
		if err != nil {
			return agent.Result{}, err
		}
		done, err := queue.enter(ctx, fs, call.ID, patchPaths(fs, files)...)
		if err != nil {
			return agent.Result{}, err
		}
		defer done()
		p := patching{fs: fs, anyPath: opts.AnyPath, files: map[string]*patchedFile{}}
		for _, f := range files {
			if err := p.plan(ctx, f); err != nil {
				return agent.Result{}, systemError(err)
			}
		}
		if ctx.Err() != nil {
			return agent.Result{}, errAborted
		}
		// What has begun is done or undone as a whole.
		if err := p.run(context.WithoutCancel(ctx)); err != nil {
			return agent.Result{}, err
		}
		return p.result(), nil
	}
	return t
}

func parsePatchArgs(args jsontext.Value) ([]patchFile, error) {
	text, ok := jsonwire.StringValue(jsonwire.Get(args, "input"))
	if !ok {
		return nil, errors.New("input must be a string")
	}
	return parsePatch(jsonwire.ToValidUTF8(text))
}

// patchPaths are the absolute paths of all files that a patch touches.
func patchPaths(fs env.FileSystem, files []patchFile) []string {
	var out []string
	for _, f := range files {
		out = append(out, resolvePath(fs, f.path))
		if f.moveTo != "" {
			out = append(out, resolvePath(fs, f.moveTo))
		}
	}
	return out
}

// patching applies one patch. All of it is planned before anything is done.
type patching struct {
	fs      env.FileSystem
	anyPath bool

	files   map[string]*patchedFile // by absolute path: as they are after the steps so far
	steps   []patchStep
	deletes []string // removed when all else is done

	added, modified, deleted []string
	details                  [][]byte // one object for each file
}

// patchedFile is what a path holds.
type patchedFile struct {
	exists bool
	data   string
}

// patchStep is one change of the disk and what takes it back.
type patchStep struct{ do, undo func(context.Context) error }

// plan checks what a patch does to a file and notes the steps.
func (p *patching) plan(ctx context.Context, f patchFile) error {
	path := resolvePath(p.fs, f.path)
	if err := p.allow(ctx, path, f.path); err != nil {
		return err
	}
	name := p.name(path)
	file, err := p.load(ctx, path, f.kind != patchAdd)
	if err != nil {
		return err
	}
	switch f.kind {
	case patchAdd:
		if file.exists {
			return fmt.Errorf("Could not add %s: it exists. Nothing was changed. Use *** Update File: to change it.", f.path)
		}
		p.write(path, file, "", []string{f.text})
		p.added = append(p.added, name)
		p.note("added", name, "", []textPart{changedPart("", f.text)})
		return nil
	case patchDelete:
		if !file.exists {
			return fmt.Errorf("Could not delete %s: there is no such file. Nothing was changed.", f.path)
		}
		file.exists = false
		p.deletes = append(p.deletes, path)
		p.deleted = append(p.deleted, name)
		p.note("deleted", name, "", nil)
		return nil
	}
	if !file.exists {
		return fmt.Errorf("Could not update %s: there is no such file. Nothing was changed. Use *** Add File: to make it.", f.path)
	}
	src := newSource(file.data)
	list, err := patchLines(src).apply(f.path, f.hunks)
	if err != nil {
		return err
	}
	parts, changed := src.parts(list)
	data, to := file.data, path
	if f.moveTo != "" {
		to = resolvePath(p.fs, f.moveTo)
	}
	if to != path {
		if err := p.allow(ctx, to, f.moveTo); err != nil {
			return err
		}
		target, err := p.load(ctx, to, false)
		if err != nil {
			return err
		}
		if target.exists {
			return fmt.Errorf("Could not move %s to %s: that exists. Nothing was changed. Delete it in the patch first if it is to be replaced.", f.path, f.moveTo)
		}
		p.steps = append(p.steps, patchStep{
			do: func(ctx context.Context) error {
				if err := p.fs.MakeDir(ctx, filepath.Dir(to)); err != nil {
					return err
				}
				return p.fs.Rename(ctx, path, to)
			},
			undo: func(ctx context.Context) error { return p.fs.Rename(ctx, to, path) },
		})
		file.exists, target.exists, target.data = false, true, data
		file = target
	} else if !changed {
		return nil
	}
	if changed {
		p.write(to, file, data, src.segments(list))
	}
	moved := ""
	if to != path {
		moved = p.name(to)
		p.modified = append(p.modified, moved)
	} else if !slices.Contains(p.modified, name) && !slices.Contains(p.added, name) {
		p.modified = append(p.modified, name)
	}
	p.note("modified", name, moved, parts)
	return nil
}

// allow refuses what is outside of the working directory.
func (p *patching) allow(ctx context.Context, path, given string) error {
	if p.anyPath {
		return nil
	}
	refused := fmt.Errorf("%s is outside of the working directory, where patches may not write. Nothing was changed.", given)
	root, err := p.fs.Canonical(ctx, p.fs.WorkDir())
	if err != nil {
		return err
	}
	if path == p.fs.WorkDir() || !within(p.fs.WorkDir(), path) && !within(root, path) {
		return refused
	}
	// What exists of the path must not lead out, and a link to nowhere would
	// make a file where it points.
	for at := path; ; at = filepath.Dir(at) {
		real, err := p.fs.Canonical(ctx, at)
		if err == nil {
			if real != root && !within(root, real) {
				return refused
			}
			return nil
		}
		if info, infoErr := p.fs.Info(ctx, at); infoErr == nil && info.Kind == env.KindSymlink {
			return fmt.Errorf("%s is a link that leads to nothing. Nothing was changed.", given)
		}
		if code := env.CodeOf(err); code != env.NotFound && code != env.NotDirectory || at == filepath.Dir(at) {
			return err
		}
	}
}

// within reports whether path lies below dir, both absolute and clean.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != "." && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// name is how results name a file.
func (p *patching) name(path string) string {
	if rel, err := filepath.Rel(p.fs.WorkDir(), path); err == nil && within(p.fs.WorkDir(), path) {
		return filepath.ToSlash(rel)
	}
	return path
}

// load is what a path holds at this point of the patch. Content is read where it
// is needed.
func (p *patching) load(ctx context.Context, path string, content bool) (*patchedFile, error) {
	if f := p.files[path]; f != nil {
		return f, nil
	}
	f := &patchedFile{}
	_, err := p.fs.Info(ctx, path)
	switch code := env.CodeOf(err); {
	case code == env.NotFound || code == env.NotDirectory:
	case err != nil:
		return nil, err
	default:
		f.exists = true
		if content {
			if err := p.fs.Access(ctx, path, env.Readable|env.Writable); err != nil {
				return nil, err
			}
			if f.data, err = readWhole(ctx, p.fs, path); err != nil {
				return nil, err
			}
		}
	}
	p.files[path] = f
	return f, nil
}

// write notes that a file that holds data becomes pieces.
func (p *patching) write(path string, f *patchedFile, data string, pieces []string) {
	existed := f.exists
	if i := slices.Index(p.deletes, path); i >= 0 {
		// It is written anew instead of being deleted.
		p.deletes = slices.Delete(p.deletes, i, i+1)
		existed, data = true, f.data
		pieces = []string{strings.Join(pieces, "")}
	}
	f.exists, f.data = true, strings.Join(pieces, "")
	p.steps = append(p.steps, patchStep{
		do: func(ctx context.Context) error {
			if !existed {
				return p.create(ctx, path, strings.Join(pieces, ""))
			}
			return writePieces(ctx, p.fs, path, data, pieces)
		},
		undo: func(ctx context.Context) error {
			if !existed {
				return p.fs.Remove(ctx, path)
			}
			return p.fs.WriteFile(ctx, path, []byte(data))
		},
	})
}

// create makes a file. One that there was no room for is taken away again.
func (p *patching) create(ctx context.Context, path, data string) error {
	err := p.fs.WriteFile(ctx, path, []byte(data))
	if e, ok := errors.AsType[*env.Error](err); ok && e.Op == "write" {
		p.fs.Remove(ctx, path)
	}
	return err
}

// run does the steps. When one fails the ones before are taken back.
func (p *patching) run(ctx context.Context) error {
	for _, path := range p.deletes {
		before := p.files[path].data
		p.steps = append(p.steps, patchStep{
			do:   func(ctx context.Context) error { return p.fs.Remove(ctx, path) },
			undo: func(ctx context.Context) error { return p.fs.WriteFile(ctx, path, []byte(before)) },
		})
	}
	for i, s := range p.steps {
		err := s.do(ctx)
		if err == nil {
			continue
		}
		var left error
		for _, done := range slices.Backward(p.steps[:i]) {
			if undoErr := done.undo(ctx); left == nil {
				left = undoErr
			}
		}
		if left != nil {
			return fmt.Errorf("%w. Taking back what was done failed too: %w. Look at the files before you go on.", systemError(err), systemError(left))
		}
		return fmt.Errorf("%w. Nothing was changed.", systemError(err))
	}
	return nil
}

// note adds a file to the details. parts are nil for one without a diff.
func (p *patching) note(status, name, moved string, parts []textPart) {
	b := jsonwire.AppendString([]byte(`{"path":`), name)
	b = append(append(append(b, `,"status":"`...), status...), '"')
	if moved != "" {
		b = jsonwire.AppendString(append(b, `,"movedTo":`...), moved)
		name = moved
	}
	if parts != nil {
		c := compare(parts)
		if hunks := c.hunks(); len(hunks) > 0 {
			b = jsonwire.AppendString(append(b, `,"diff":`...), c.display(hunks))
			b = jsonwire.AppendString(append(b, `,"patch":`...), c.patch(name, hunks))
			b = strconv.AppendInt(append(b, `,"firstChangedLine":`...), int64(hunks[0].newStart+1), 10)
		}
	}
	p.details = append(p.details, append(b, '}'))
}

// result lists the changed files.
func (p *patching) result() agent.Result {
	var text strings.Builder
	b := []byte(`{"summary":{`)
	for i, list := range []struct {
		name  string
		sign  string
		paths []string
	}{{"added", "A", p.added}, {"modified", "M", p.modified}, {"deleted", "D", p.deleted}} {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(jsonwire.AppendString(b, list.name), ':', '[')
		for k, path := range list.paths {
			if k > 0 {
				b = append(b, ',')
			}
			b = jsonwire.AppendString(b, path)
			text.WriteString("\n" + list.sign + " " + path)
		}
		b = append(b, ']')
	}
	nothing := len(p.steps) == 0
	b = strconv.AppendBool(append(b, `},"noOp":`...), nothing)
	b = append(b, `,"files":[`...)
	for i, d := range p.details {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, d...)
	}
	r := agent.TextResult("The patch was applied." + text.String())
	if nothing {
		r = agent.TextResult("The patch changes nothing: the files read as it wants them already.")
	}
	r.Details = append(b, `]}`...)
	return r
}
