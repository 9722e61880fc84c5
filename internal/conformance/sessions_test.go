package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/jsonl"
	"github.com/pinch-agent/pinch/session/memory"
)

var sessionDeviations = []deviation{}

type sessionVector struct {
	Kind   string          `json:"kind"`
	Name   string          `json:"name"`
	Input  json.RawMessage `json:"input"`
	Expect json.RawMessage `json:"expect"`
	Cases  []json.RawMessage
}

func TestSessions(t *testing.T) {
	const name = "sessions"
	g := newGroup(name)
	kinds := map[string]func(*testing.T, sessionVector) outcome{
		"context": sessionContext,
		"tree":    sessionTree,
		"migrate": sessionMigrate,
		"load":    sessionLoad,
		"ops":     sessionOps,
		"listing": sessionListing,
		"export":  sessionExport,
	}
	rows := map[string]func(json.RawMessage) outcome{
		"convertToLlm":     rowConvertToLLM,
		"systemReplay":     rowSystemReplay,
		"toolStateChanges": rowToolStateChanges,
		"directoryName":    rowDirectoryName,
		"sessionId":        rowSessionID,
		"latestCompaction": rowLatestCompaction,
	}
	for _, file := range vectorFiles(t, name) {
		base := strings.TrimSuffix(filepath.Base(file), ".json")
		var v sessionVector
		readVector(t, file, &v)
		switch {
		case kinds[v.Kind] != nil:
			g.report(t, base, kinds[v.Kind](t, v), sessionDeviations)
		case rows[v.Kind] != nil:
			for i, raw := range v.Cases {
				g.report(t, fmt.Sprintf("%s#%d", base, i+1), rows[v.Kind](raw), sessionDeviations)
			}
		default:
			g.report(t, base, outcome{"kind": "unknown kind " + v.Kind}, sessionDeviations)
		}
	}
}

const demoHeader = `{"type":"session","version":3,"id":"sess-one","timestamp":"2026-03-01T08:00:00.000Z","cwd":"/srv/demo"}` + "\n"

// openEntries is a session in memory with entries behind the usual header.
func openEntries(entries []json.RawMessage) (*session.Session, error) {
	log := []byte(demoHeader)
	for _, e := range entries {
		var line bytes.Buffer
		if err := json.Compact(&line, e); err != nil {
			return nil, err
		}
		log = append(append(log, line.Bytes()...), '\n')
	}
	return session.Open(memory.NewFrom(log), session.Options{CWD: "/nowhere"})
}

func entryIDs(entries []*session.Entry) []any {
	ids := []any{}
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	return ids
}

func messageTrees(list []agent.Message) []any {
	out := []any{}
	for _, m := range list {
		out = append(out, tree(m.AppendJSON(nil)))
	}
	return out
}

func contextTree(c session.Context) map[string]any {
	out := map[string]any{"messages": messageTrees(c.Messages), "thinkingLevel": string(c.ThinkingLevel), "model": nil}
	if c.Model != nil {
		out["model"] = map[string]any{"provider": c.Model.Provider, "modelId": c.Model.ID}
	}
	return out
}

// compare notes where got differs from want, member by member.
func (o outcome) compare(field string, got, want any) {
	if w, ok := want.(map[string]any); ok {
		if g, ok := got.(map[string]any); ok {
			for k := range w {
				o.compare(field+"."+k, g[k], w[k])
			}
			for k := range g {
				if _, ok := w[k]; !ok {
					o.add(field+"."+k, "unexpected %v", shortJSON(g[k]))
				}
			}
			return
		}
	}
	if w, ok := want.([]any); ok {
		if g, ok := got.([]any); ok && len(g) == len(w) {
			for i := range w {
				o.compare(fmt.Sprintf("%s[%d]", field, i), g[i], w[i])
			}
			return
		}
	}
	if !fits(got, want) {
		o.add(field, "got %s, want %s", shortJSON(got), shortJSON(want))
	}
}

func sessionContext(t *testing.T, v sessionVector) outcome {
	in := row[struct {
		Entries []json.RawMessage
		Leaf    *string
	}](v.Input)
	o := outcome{}
	s, err := openEntries(in.Entries)
	if err != nil {
		o.add("open", "%v", err)
		return o
	}
	defer s.Close()
	var path []*session.Entry
	switch {
	case in.Leaf == nil:
		s.ResetLeaf()
	case *in.Leaf == "$LAST":
		path = s.Path()
	default:
		path = s.PathTo(*in.Leaf)
		if s.Entry(*in.Leaf) != nil {
			if err := s.Branch(*in.Leaf); err != nil {
				o.add("branch", "%v", err)
			}
		}
	}
	c := contextTree(session.ContextOf(path))
	c["contextEntryIds"] = entryIDs(session.Select(path))
	per := []any{}
	for _, p := range session.Project(path) {
		per = append(per, []any{p.Entry.ID, float64(len(p.Messages))})
	}
	c["perEntry"] = per
	o.compare("expect", c, tree(v.Expect))
	// The kept view of the session is the same.
	if live := contextTree(s.Context()); shortJSON(live["messages"]) != shortJSON(c["messages"]) {
		o.add("live", "got %s, want %s", shortJSON(live), shortJSON(c))
	}
	return o
}

func nodeTrees(nodes []*session.Node, name func(string) string) []any {
	out := []any{}
	for _, n := range nodes {
		m := map[string]any{"id": name(n.Entry.ID)}
		if n.Label != "" {
			m["label"], m["labelTimestamp"] = n.Label, n.LabelTimestamp
		}
		if len(n.Children) > 0 {
			m["children"] = nodeTrees(n.Children, name)
		}
		out = append(out, m)
	}
	return out
}

func sessionTree(t *testing.T, v sessionVector) outcome {
	in := row[struct{ Entries []json.RawMessage }](v.Input)
	o := outcome{}
	s, err := openEntries(in.Entries)
	if err != nil {
		o.add("open", "%v", err)
		return o
	}
	defer s.Close()
	children := map[string]any{}
	for _, e := range s.Entries() {
		children[e.ID] = entryIDs(s.Children(e.ID))
	}
	var leaf any
	if s.Leaf() != nil {
		leaf = s.LeafID()
	}
	o.compare("expect", map[string]any{
		"leafId":   leaf,
		"roots":    nodeTrees(s.Tree(), func(id string) string { return id }),
		"path":     entryIDs(s.Path()),
		"children": children,
	}, tree(v.Expect))
	return o
}

func sessionMigrate(t *testing.T, v sessionVector) outcome {
	in := row[struct{ Lines []json.RawMessage }](v.Input)
	o := outcome{}
	var log []byte
	for _, l := range in.Lines {
		var line bytes.Buffer
		if err := json.Compact(&line, l); err != nil {
			t.Fatal(err)
		}
		log = append(append(log, line.Bytes()...), '\n')
	}
	out, err := session.Migrate(log, rand.NewChaCha8([32]byte{1}))
	if err != nil {
		o.add("migrate", "%v", err)
		return o
	}
	names := map[string]string{}
	got := []any{}
	for i, l := range bytes.Split(bytes.TrimSpace(out), []byte("\n")) {
		line := tree(l).(map[string]any)
		if id, _ := line["id"].(string); i < len(in.Lines) && id != textMember(in.Lines[i], "id") {
			names[id] = fmt.Sprintf("n%d", i)
		}
		got = append(got, line)
	}
	for _, l := range got {
		line := l.(map[string]any)
		for _, k := range []string{"id", "parentId", "firstKeptEntryId"} {
			if id, ok := line[k].(string); ok && names[id] != "" {
				line[k] = names[id]
			}
		}
	}
	o.compare("expect", map[string]any{"lines": got}, tree(v.Expect))
	return o
}

func sessionLoad(t *testing.T, v sessionVector) outcome {
	in := row[struct{ Text *string }](v.Input)
	o := outcome{}
	path := filepath.Join(t.TempDir(), "case.jsonl")
	var before []byte
	if in.Text != nil {
		before = []byte(*in.Text)
		if err := os.WriteFile(path, before, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	types := []any{}
	for typ := range session.Lines(before) {
		types = append(types, string(typ))
	}
	got := map[string]any{
		"parsedTypes":        types,
		"loadAppendsNewline": len(types) > 0 && before[len(before)-1] != '\n',
	}
	s, err := jsonl.Open(path, jsonl.Options{Options: session.Options{CWD: "$PROCESS_CWD"}})
	if err != nil {
		kind := err.Error()
		if e, ok := errors.AsType[*session.Error](err); ok {
			kind = string(e.Kind)
		}
		got["open"] = map[string]any{"error": kind}
	} else {
		entries := []any{}
		for _, e := range s.Entries() {
			entries = append(entries, string(e.Type))
		}
		first, _, _ := bytes.Cut(before, []byte("\n"))
		got["open"] = map[string]any{
			"entryTypes":        entries,
			"leafSet":           s.Leaf() != nil,
			"sessionIdFromFile": s.ID() == textMember(first, "id"),
			"cwd":               s.CWD(),
		}
		if err := s.Close(); err != nil {
			o.add("close", "%v", err)
		}
	}
	after, err := os.ReadFile(path)
	switch {
	case err != nil:
		got["file"] = "absent"
	case bytes.Equal(before, after):
		got["file"] = "unchanged"
	case string(after) == string(before)+"\n":
		got["file"] = "newline_appended"
	default:
		got["file"] = "rewritten"
		lines := []any{}
		for typ, raw := range session.Lines(after) {
			m := map[string]any{"type": string(typ), "hasId": textMember(raw, "id") != ""}
			if v := jsonwire.Get(raw, "version"); v != nil {
				m["version"] = tree(v)
			}
			lines = append(lines, m)
		}
		got["fileTypes"] = lines
	}
	o.compare("expect", got, tree(v.Expect))
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) > 1 {
		o.add("junk", "%v", left)
	}
	return o
}

func sessionListing(t *testing.T, v sessionVector) outcome {
	in := row[struct{ Files map[string]string }](v.Input)
	o := outcome{}
	dir := t.TempDir()
	cwd := "/srv/caller"
	old := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, text := range in.Files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "$CWD", cwd)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	repo := &jsonl.Repository{Folder: dir}
	list := func(infos []session.Info, err error) []any {
		if err != nil {
			o.add("list", "%v", err)
		}
		out := []any{}
		for _, i := range infos {
			m := map[string]any{
				"id": i.ID, "cwd": i.CWD, "messageCount": float64(i.MessageCount), "firstMessage": i.FirstMessage,
				"allMessagesText": i.Text,
				"created":         i.Created.Format("2006-01-02T15:04:05.000Z"),
				"modified":        i.Modified.Format("2006-01-02T15:04:05.000Z"),
			}
			if i.CWD == cwd {
				m["cwd"] = "$CWD"
			}
			if i.Name != "" {
				m["name"] = i.Name
			}
			if i.ParentSession != "" {
				m["parent"] = i.ParentSession
			}
			out = append(out, m)
		}
		return out
	}
	got := map[string]any{
		"custom": list(repo.List(context.Background(), cwd, nil)),
		"all":    list(repo.ListAll(context.Background(), nil)),
	}
	for field, id := range map[string]string{"findAaa": "aaa", "findCcc": "ccc"} {
		got[field] = nil
		if m, ok := repo.FindID(context.Background(), cwd, id); ok {
			got[field] = m.ID
		}
	}
	o.compare("expect", got, tree(v.Expect))
	return o
}

func sessionExport(t *testing.T, v sessionVector) outcome {
	in := row[struct {
		Entries  []json.RawMessage
		BranchTo string
	}](v.Input)
	o := outcome{}
	s, err := openEntries(in.Entries)
	if err != nil {
		o.add("open", "%v", err)
		return o
	}
	defer s.Close()
	if err := s.Branch(in.BranchTo); err != nil {
		o.add("branch", "%v", err)
	}
	var out bytes.Buffer
	if err := s.Export(&out); err != nil {
		o.add("export", "%v", err)
	}
	lines := []any{}
	for i, l := range bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n")) {
		m := tree(l).(map[string]any)
		if i > 0 {
			m = map[string]any{"id": m["id"], "parentId": m["parentId"], "type": m["type"]}
		} else if isISO(m["timestamp"]) && m["timestamp"] != "2026-03-01T08:00:00.000Z" {
			m["timestamp"] = "<iso>"
		}
		lines = append(lines, m)
	}
	o.compare("expect", map[string]any{"lines": lines}, tree(v.Expect))
	return o
}

var isoForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)

func isISO(v any) bool {
	s, ok := v.(string)
	return ok && isoForm.MatchString(s)
}

func sessionMessages(raw json.RawMessage) []agent.Message {
	var out []agent.Message
	for _, m := range row[[]json.RawMessage](raw) {
		msg, err := session.ParseMessage(m)
		if err != nil {
			panic(err)
		}
		out = append(out, msg)
	}
	return out
}

func rowConvertToLLM(raw json.RawMessage) outcome {
	c := row[struct{ Messages, LLM json.RawMessage }](raw)
	in := sessionMessages(c.Messages)
	o := outcome{}
	got := session.ToLLM(in)
	out := []any{}
	for _, m := range got {
		out = append(out, tree(m.AppendJSON(nil)))
	}
	// The wording around summaries is our own; the tags are not.
	want := strings.NewReplacer(
		"«COMPACTION_PREFIX»", escaped(session.CompactionLeadIn()+"<summary>\n"),
		"«COMPACTION_SUFFIX»", escaped("\n</summary>"),
		"«BRANCH_PREFIX»", escaped(session.BranchLeadIn()+"<summary>\n"),
	).Replace(string(c.LLM))
	o.compare("llm", out, tree([]byte(want)))
	if again := session.ToLLM(in); !slices.Equal(got, again) {
		o.add("identity", "the same messages gave other pointers")
	}
	return o
}

func escaped(s string) string {
	b := jsonwire.AppendString(nil, s)
	return string(b[1 : len(b)-1])
}

func rowSystemReplay(raw json.RawMessage) outcome {
	c := row[struct {
		Messages, Current json.RawMessage
		Prompt            string
		Tools             json.RawMessage
	}](raw)
	o := outcome{}
	folded := session.FoldSystem(sessionMessages(c.Messages))
	o.checkValue("prompt", session.Prompt(folded), c.Prompt)
	tools := []any{}
	current := []byte("null")
	if folded != nil {
		current = folded.AppendJSON(nil)
		for _, t := range folded.ToolsAdded {
			tools = append(tools, []any{t.Name, t.Description})
		}
	}
	o.check("current", current, c.Current)
	o.compare("tools", tools, tree(c.Tools))
	o.checkValue("current.sections order", memberNames(jsonwire.Get(current, "sections")), memberNames(jsonwire.Get(c.Current, "sections")))
	return o
}

func memberNames(raw []byte) []string {
	var r jsonwire.Reader
	r.Reset(raw)
	names := []string{}
	for r.Object(); r.More(); {
		names = append(names, string(r.Key()))
		r.Skip()
	}
	return names
}

func rowToolStateChanges(raw json.RawMessage) outcome {
	c := row[struct {
		Previous, Current [][2]string
		Added, Removed    []string
	}](raw)
	tools := func(list [][2]string) (out []llm.Tool) {
		for _, t := range list {
			out = append(out, llm.Tool{Name: t[0], Description: t[1]})
		}
		return out
	}
	added, removed := session.ToolChanges(tools(c.Previous), tools(c.Current))
	names := []string{}
	for _, t := range added {
		names = append(names, t.Name)
	}
	o := outcome{}
	o.checkValue("added", names, c.Added)
	o.checkValue("removed", append([]string{}, removed...), c.Removed)
	return o
}

func rowDirectoryName(raw json.RawMessage) outcome {
	c := row[struct{ CWD, Directory string }](raw)
	repo := &jsonl.Repository{Root: filepath.Join("agent", "sessions")}
	got, err := filepath.Rel("agent", repo.Dir(c.CWD))
	o := outcome{}
	if err != nil {
		o.add("directory", "%v", err)
	}
	o.checkValue("directory", filepath.ToSlash(got), c.Directory)
	return o
}

func rowSessionID(raw json.RawMessage) outcome {
	c := row[struct {
		ID    string
		Valid bool
	}](raw)
	o := outcome{}
	o.checkValue("valid", session.ValidID(c.ID), c.Valid)
	return o
}

func rowLatestCompaction(raw json.RawMessage) outcome {
	c := row[struct {
		IDs    [][2]string
		Latest *string
	}](raw)
	o := outcome{}
	var lines []json.RawMessage
	for _, e := range c.IDs {
		lines = append(lines, fmt.Appendf(nil, `{"type":%q,"id":%q,"parentId":null,"timestamp":"2026-03-01T08:00:01.000Z"}`, e[1], e[0]))
	}
	s, err := openEntries(lines)
	if err != nil {
		o.add("open", "%v", err)
		return o
	}
	defer s.Close()
	var got, want any
	if i := session.LatestCompaction(s.Entries()); i >= 0 {
		got = s.Entries()[i].ID
	}
	if c.Latest != nil {
		want = *c.Latest
	}
	o.checkValue("latest", got, want)
	return o
}
