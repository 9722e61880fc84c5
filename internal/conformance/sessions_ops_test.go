package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/jsonl"
	"github.com/pinch-agent/pinch/session/memory"
)

// opsTime is a time that no case uses, so that generated times can be told
// from given ones.
var opsTime = time.Date(2041, 5, 6, 7, 8, 9, 123e6, time.UTC)

// opsRun plays the operations of one case.
type opsRun struct {
	root    string
	persist bool
	repo    *jsonl.Repository
	s       *session.Session
	ids     map[string]string // by name
	names   map[string]string // by id
	autos   int
	clock   time.Time
}

func sessionOps(t *testing.T, v sessionVector) outcome {
	in := row[struct {
		Persist bool
		Ops     [][]json.RawMessage
	}](v.Input)
	r := &opsRun{root: t.TempDir(), persist: in.Persist, ids: map[string]string{}, names: map[string]string{}, clock: opsTime}
	r.repo = &jsonl.Repository{Folder: filepath.Join(r.root, "sessions")}
	o := outcome{}
	if err := r.create(nil); err != nil {
		o.add("create", "%v", err)
		return o
	}
	defer func() { r.s.Close() }()
	got := []any{}
	for i, op := range in.Ops {
		name := row[string](op[0])
		out, reads, err := r.play(name, op[1:])
		item := map[string]any{"at": float64(i), "op": name}
		switch e, ok := errors.AsType[*session.Error](err); {
		case ok:
			item["error"] = string(e.Kind)
		case err != nil:
			item["error"] = err.Error()
		case !reads:
			continue
		default:
			item["out"] = r.plain(out)
		}
		got = append(got, item)
	}
	want := tree(v.Expect).([]any)
	if len(got) != len(want) {
		o.add("expect", "got %s, want %s", shortJSON(got), shortJSON(want))
	}
	for i := range min(len(got), len(want)) {
		o.compare(fmt.Sprintf("expect[%d]", i), got[i], want[i])
	}
	return o
}

func (r *opsRun) options() session.Options {
	return session.Options{CWD: filepath.Join(r.root, "proj"), Now: func() time.Time {
		r.clock = r.clock.Add(time.Millisecond)
		return r.clock
	}}
}

func (r *opsRun) create(options json.RawMessage) error {
	o := r.options()
	o.ID, o.ParentSession = textMember(options, "id"), textMember(options, "parentSession")
	var s *session.Session
	var err error
	if r.persist {
		s, err = r.repo.Create(o)
	} else {
		s, err = session.Open(memory.New(), o)
	}
	if err != nil {
		return err
	}
	if r.s != nil {
		r.s.Close()
	}
	r.s = s
	return nil
}

// play runs one operation; reads says that out belongs into the results.
func (r *opsRun) play(op string, args []json.RawMessage) (out any, reads bool, err error) {
	text := func(i int) string {
		if i >= len(args) {
			return ""
		}
		s, _ := jsonwire.StringValue(args[i])
		return s
	}
	id := func(i int) string {
		if id, ok := r.ids[text(i)]; ok {
			return id
		}
		return text(i)
	}
	raw := func(i int) json.RawMessage {
		if i >= len(args) {
			return nil
		}
		return args[i]
	}
	usage := func(i int) llm.Usage {
		var rd jsonwire.Reader
		rd.Reset(raw(i))
		return llm.ReadUsage(&rd)
	}
	add := func(d session.Data) (any, bool, error) {
		e, err := r.s.Append(d)
		r.call(text(0), e)
		return nil, false, err
	}
	switch op {
	case "message", "bash":
		m, err := session.ParseMessage(raw(1))
		if err != nil {
			return nil, false, err
		}
		return add(&session.MessageEntry{Message: m})
	case "model_change":
		return add(&session.ModelChangeEntry{Provider: text(1), ModelID: text(2)})
	case "thinking":
		return add(&session.ThinkingLevelEntry{Level: llm.ThinkingLevel(text(1))})
	case "custom":
		return add(&session.CustomEntry{CustomType: text(1), Value: []byte(raw(2))})
	case "customMessage":
		var rd jsonwire.Reader
		rd.Reset(raw(2))
		d := &session.CustomMessageEntry{CustomType: text(1), Content: llm.ReadContent(&rd), Display: row[bool](raw(3))}
		if details := raw(4); details != nil {
			d.Details = []byte(details)
		}
		return add(d)
	case "usage":
		return add(&session.UsageEntry{Purpose: text(1), Provider: text(2), Model: text(3), Usage: usage(4), Note: text(5)})
	case "compaction":
		d := &session.CompactionEntry{Summary: text(1), FirstKept: id(2), TokensBefore: row[int64](raw(3))}
		if details := raw(4); details != nil {
			d.Details = []byte(details)
		}
		return add(d)
	case "label":
		e, err := r.s.SetLabel(id(1), text(2))
		r.call(text(0), e)
		return nil, false, err
	case "name":
		e, err := r.s.SetName(text(1))
		r.call(text(0), e)
		return nil, false, err
	case "edit":
		replacement, err := session.ParseReplacement(raw(2))
		if err != nil {
			return nil, false, err
		}
		return add(&session.ContextEditEntry{TargetID: id(1), Replacement: replacement})
	case "branchSummary":
		e, err := r.s.BranchWithSummary(id(1), session.BranchSummaryEntry{Summary: text(2)})
		r.call(text(0), e)
		return nil, false, err
	case "branch":
		return nil, false, r.s.Branch(id(0))
	case "resetLeaf":
		r.s.ResetLeaf()
		return nil, false, nil
	case "newSession":
		return nil, false, r.create(raw(0))
	case "fork":
		return r.fork(id(0))
	}
	out, err = r.readOp(op, id)
	return out, true, err
}

func (r *opsRun) fork(leaf string) (any, bool, error) {
	old := r.s
	var err error
	var f *session.Session
	if r.persist {
		f, err = r.repo.Fork(old, leaf, r.options())
	} else {
		f, err = old.Fork(memory.New(), leaf, r.options())
	}
	if err != nil {
		return nil, true, err
	}
	r.s = f
	old.Close()
	var file any
	if f.File() != "" {
		file = f.File()
	}
	return map[string]any{"file": file, "newFile": f.File() != old.File()}, true, nil
}

func (r *opsRun) readOp(op string, id func(int) string) (any, error) {
	nullable := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	switch op {
	case "leaf":
		return nullable(r.s.LeafID()), nil
	case "path":
		return entryIDs(r.s.Path()), nil
	case "entries":
		out := []any{}
		for _, e := range r.s.Entries() {
			out = append(out, tree(e.Raw()))
		}
		return out, nil
	case "header":
		return tree(r.s.Header().Raw), nil
	case "tree":
		return nodeTrees(r.s.Tree(), func(id string) string { return id }), nil
	case "context":
		return contextTree(r.s.Context()), nil
	case "getLabel":
		return nullable(r.s.Label(id(0))), nil
	case "getName":
		return nullable(r.s.Name()), nil
	case "fileState":
		data, err := os.ReadFile(r.s.File())
		if errors.Is(err, fs.ErrNotExist) {
			return map[string]any{"exists": false}, nil
		}
		if err != nil {
			return nil, err
		}
		types := []any{}
		for typ := range session.Lines(data) {
			types = append(types, string(typ))
		}
		return map[string]any{"exists": true, "types": types}, nil
	}
	return nil, fmt.Errorf("unknown operation %q", op)
}

func (r *opsRun) call(name string, e *session.Entry) {
	if e != nil {
		r.ids[name], r.names[e.ID] = e.ID, name
	}
}

var (
	generatedFile = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z_`)
	uuidForm      = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)
)

// plain puts placeholders in the place of what was generated.
func (r *opsRun) plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if id, ok := v["id"].(string); ok && v["type"] != "session" && r.names[id] == "" && len(id) == 8 {
			r.autos++
			r.names[id] = fmt.Sprintf("auto%d", r.autos)
		}
		for k := range v {
			v[k] = r.plain(v[k])
		}
	case []any:
		for i := range v {
			v[i] = r.plain(v[i])
		}
	case float64:
		if at := opsTime.UnixMilli(); v > float64(at) && v < float64(at+100_000) {
			return "<ms>"
		}
	case string:
		if at, err := time.Parse(time.RFC3339, v); err == nil && isISO(v) && at.After(opsTime) {
			return "<iso>"
		}
		if name, ok := r.names[v]; ok {
			return name
		}
		v = strings.ReplaceAll(v, r.root, "$ROOT")
		v = generatedFile.ReplaceAllString(v, "<stamp>_")
		v = strings.ReplaceAll(v, r.s.ID(), "$SESSION_ID")
		return uuidForm.ReplaceAllString(v, "<id>")
	}
	return v
}
