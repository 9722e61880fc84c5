package tool

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/env"
	"github.com/pinch-agent/pinch/internal/jsonwire"
)

//go:embed edit.md
var editText string

// Edit is the tool that replaces pieces of a file.
func Edit(opts EditOptions) *agent.Tool {
	fs, queue := opts.Env, opts.Queue
	if queue == nil {
		queue = &FileQueue{}
	}
	t := declare("edit", editText,
		param{name: "path", typ: "string", required: true},
		param{name: "edits", typ: "array", required: true, items: []param{
			{name: "oldText", typ: "string", required: true},
			{name: "newText", typ: "string", required: true},
		}})
	t.Prepare = prepareEdit
	t.Reserve = queue.reserver(fs)
	t.Execute = func(ctx context.Context, call agent.Call) (agent.Result, error) {
		path, edits, err := parseEdit(call.Args)
		if err != nil {
			return agent.Result{}, err
		}
		if len(edits) == 0 {
			return agent.Result{}, errors.New("Edit tool input is invalid. edits must contain at least one replacement.")
		}
		abs := resolvePath(fs, path)
		done, err := queue.enter(ctx, fs, call.ID, abs)
		if err != nil {
			return agent.Result{}, err
		}
		defer done()
		if err := fs.Access(ctx, abs, env.Readable|env.Writable); err != nil {
			if e, ok := errors.AsType[*env.Error](err); ok && e.Code != env.Aborted {
				if code := errnoOf(e); code != "" {
					return agent.Result{}, fmt.Errorf("Could not edit file: %s. Error code: %s.", path, code)
				}
			}
			return agent.Result{}, systemError(err)
		}
		data, err := readWhole(ctx, fs, abs)
		if err != nil {
			return agent.Result{}, systemError(err)
		}
		after, details, err := applyEdits(data, path, edits)
		if err != nil {
			return agent.Result{}, err
		}
		if err := writePieces(ctx, fs, abs, data, after); err != nil {
			return agent.Result{}, systemError(err)
		}
		r := agent.TextResult(fmt.Sprintf("Successfully replaced %d block(s) in %s.", len(edits), path))
		r.Details = details
		return r, nil
	}
	return t
}

// applyEdits is the new content of a file, in pieces, and the details of the
// result.
func applyEdits(data, path string, edits []replacement) (after []string, details jsontext.Value, err error) {
	src := newSource(data)
	sp, found, err := matches(src, path, edits)
	if err != nil {
		return nil, nil, err
	}
	list := src.changes(sp, found)
	parts, changed := src.parts(list)
	if !changed {
		if len(edits) == 1 {
			return nil, nil, fmt.Errorf("No changes made to %s. The replacement produced identical content. This might indicate an issue with special characters or the text not existing as expected.", path)
		}
		return nil, nil, fmt.Errorf("No changes made to %s. The replacements produced identical content.", path)
	}
	c := compare(parts)
	hunks := c.hunks()
	b := jsonwire.AppendString([]byte(`{"diff":`), c.display(hunks))
	b = jsonwire.AppendString(append(b, `,"patch":`...), c.patch(path, hunks))
	b = strconv.AppendInt(append(b, `,"firstChangedLine":`...), int64(hunks[0].newStart+1), 10)
	return src.segments(list), append(b, '}'), nil
}

func parseEdit(args jsontext.Value) (path string, edits []replacement, err error) {
	var r jsonwire.Reader
	r.Reset(args)
	text := func() string { return withLF(jsonwire.ToValidUTF8(r.Text())) }
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "path":
			path = jsonwire.ToValidUTF8(r.Text())
		case "edits":
			for r.Array(); r.More(); {
				var e replacement
				for r.Object(); r.More(); {
					switch string(r.Key()) {
					case "oldText":
						e.old = text()
					case "newText":
						e.new = text()
					default:
						r.Skip()
					}
				}
				edits = append(edits, e)
			}
		default:
			r.Skip()
		}
	}
	return path, edits, r.Err()
}

// prepareEdit accepts what models make of the arguments: edits as JSON text, one
// edit without the array, and the members of a single edit at the top.
func prepareEdit(args jsontext.Value) (jsontext.Value, error) {
	if !jsonwire.IsObject(args) {
		return args, nil
	}
	edits := jsontext.Value(jsonwire.Get(args, "edits"))
	oldText, newText := jsonwire.Get(args, "oldText"), jsonwire.Get(args, "newText")
	given := edits != nil
	changed := false
	if s, ok := jsonwire.StringValue(edits); ok {
		if v := jsontext.Value(s); jsonwire.Check(v) == nil && (v.Kind() == '[' || isEdit(v)) {
			edits, changed = v, true
		}
	}
	if isEdit(edits) {
		edits, changed = wrap(edits), true
	}
	_, oldIsText := jsonwire.StringValue(oldText)
	_, newIsText := jsonwire.StringValue(newText)
	single := oldIsText && newIsText
	if single {
		e := append(append([]byte(`{"oldText":`), oldText...), `,"newText":`...)
		e = append(append(e, newText...), '}')
		edits, changed = appendElement(edits, e), true
	}
	if !changed {
		return args, nil
	}
	out := []byte{'{'}
	member := func(name, value []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(jsonwire.AppendString(out, name), ':')
		out = append(out, value...)
	}
	var r jsonwire.Reader
	r.Reset(args)
	for r.Object(); r.More(); {
		key := append([]byte(nil), r.Key()...)
		value := r.Raw()
		switch {
		case string(key) == "edits":
			member(key, edits)
		case single && (string(key) == "oldText" || string(key) == "newText"):
		default:
			member(key, value)
		}
	}
	if !given {
		member([]byte("edits"), edits)
	}
	return append(out, '}'), r.Err()
}

// isEdit reports whether v is an object with the texts of an edit.
func isEdit(v jsontext.Value) bool {
	if v.Kind() != '{' {
		return false
	}
	_, a := jsonwire.StringValue(jsonwire.Get(v, "oldText"))
	_, b := jsonwire.StringValue(jsonwire.Get(v, "newText"))
	return a && b
}

func wrap(v []byte) jsontext.Value { return append(append([]byte{'['}, v...), ']') }

// appendElement adds an element to a JSON array; what is none is replaced.
func appendElement(array jsontext.Value, element []byte) jsontext.Value {
	if array.Kind() != '[' {
		return wrap(element)
	}
	var r jsonwire.Reader
	out := []byte{'['}
	r.Reset(array)
	for r.Array(); r.More(); {
		out = append(append(out, r.Raw()...), ',')
	}
	return append(append(out, element...), ']')
}
