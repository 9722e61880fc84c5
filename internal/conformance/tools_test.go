package conformance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"image"
	_ "image/jpeg"
	_ "image/png"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/env"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/completions"
	"github.com/pinch-agent/pinch/tool"
)

// The built-in tools. A scripted model calls them in a real loop over the
// chat-completions format, so that schema checks, events, stored messages and
// the next request are those of the product.

var toolDeviations = []deviation{
	// The wording of JSON errors is one JavaScript engine's.
	{Group: "tools/calls", Case: "arguments-not-json", Field: "parserMessage"},
	// Bytes that are no UTF-8 stay in the file; all else of it is as recorded.
	{Group: "tools/edit", Case: "*", Field: "filesAfter.undecodable"},
}

func TestTools(t *testing.T) {
	for _, name := range []string{"read", "bash", "edit", "write", "grep", "find", "ls", "calls"} {
		g := newGroup("tools/" + name)
		// Some bash cases hold only while processes run in time, which a machine
		// that is busy with the others does not promise: these come again alone.
		var mu sync.Mutex
		var again []string
		run := func(t *testing.T, file string, last bool) bool {
			var v toolVector
			readVector(t, file, &v)
			o := runToolVector(t, &v)
			if len(o) > 0 && !last {
				return false
			}
			g.report(t, strings.TrimSuffix(filepath.Base(file), ".json"), o, toolDeviations)
			return true
		}
		t.Run(name, func(t *testing.T) {
			for _, file := range vectorFiles(t, g.name) {
				t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
					t.Parallel()
					if !run(t, file, name != "bash") {
						mu.Lock()
						defer mu.Unlock()
						again = append(again, file)
					}
				})
			}
		})
		for _, file := range again {
			t.Run(name, func(t *testing.T) {
				for tries := 1; !run(t, file, tries == 4); tries++ {
				}
			})
		}
	}
}

type toolVector struct {
	Files     map[string]json.RawMessage
	HomeFiles map[string]json.RawMessage
	Settings  struct {
		ShellPath          string
		ShellCommandPrefix string
		Images             struct {
			AutoResize  *bool
			BlockImages bool
		}
	}
	Env     map[string]string
	Model   string
	Tools   string
	Turns   [][]toolCallVector
	Compare string
	Expect  struct {
		Results      []toolResultVector
		ToModel      json.RawMessage
		FilesAfter   map[string]json.RawMessage
		EndOrder     []string
		MessageOrder []string
	}
}

type toolCallVector struct {
	Tool    string
	Args    json.RawMessage
	RawArgs *string
}

type toolResultVector struct {
	StartedArgs       json.RawMessage
	IsError           bool
	Content           json.RawMessage
	Details           json.RawMessage
	StructuredContent json.RawMessage
	MessageIsError    bool
	MessageDetails    json.RawMessage
	MessageContent    json.RawMessage
	DurationReported  bool
	Updates           *struct {
		First   json.RawMessage
		AtLeast int
	}
}

// toolPlace is the folders of one case.
type toolPlace struct{ root, work, home, agent, temp string }

func newToolPlace(t *testing.T) toolPlace {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := toolPlace{root, root + "/proj", root + "/home", root + "/home/.pi/agent", root + "/tmp"}
	for _, dir := range []string{p.work, p.agent, p.temp} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// fill puts real paths into an input.
func (p toolPlace) fill(s string) string {
	return strings.NewReplacer("{{CWD}}", p.work, "{{AGENT}}", p.agent, "{{HOME}}", p.home, "{{TMP}}", p.temp).Replace(s)
}

var spillName = regexp.MustCompile(`/pinch-bash-[0-9a-f]{16}\.log`)

// blank puts placeholders into an output. The prefix of the spill file's name
// is the program's own.
func (p toolPlace) blank(s string) string {
	s = strings.NewReplacer(p.work, "{{CWD}}", p.agent, "{{AGENT}}", p.home, "{{HOME}}", p.temp, "{{TMP}}").Replace(s)
	return spillName.ReplaceAllString(s, "/pi-bash-{{HEX16}}.log")
}

func runToolVector(t *testing.T, v *toolVector) outcome {
	place := newToolPlace(t)
	makeToolFiles(t, place.work, v.Files)
	makeToolFiles(t, place.home, v.HomeFiles)
	before := toolFiles(t, place.work)

	id := 0
	var turns []scriptedTurn
	for _, calls := range v.Turns {
		var turn scriptedTurn
		for _, c := range calls {
			id++
			call := scriptedCall{ID: fmt.Sprintf("call_%d", id), Name: c.Tool, RawArgs: c.RawArgs}
			call.Args = json.RawMessage(place.fill(string(c.Args)))
			turn.ToolCalls = append(turn.ToolCalls, call)
		}
		turns = append(turns, turn)
	}
	turns = append(turns, scriptedTurn{Text: scriptedText{"done"}})
	srv := startScripted(t, turns)

	model := &llm.Model{
		ID: "plain", Name: "Scripted Plain", API: completions.ID, Provider: "scripted",
		BaseURL: "http://" + srv.addr() + "/lane/v1", Input: []string{"text", "image"},
		ContextWindow: 200000, MaxTokens: 8000,
	}
	if v.Model == "scripted/thinker" {
		model.ID, model.Input, model.Reasoning = "thinker", []string{"text"}, true
	}
	rec := &toolRecorder{}
	_, err := agent.Run(context.Background(), agent.Config{
		Model: model, Stream: completions.New(completions.Config{}).Stream,
		Options: llm.Options{APIKey: "scripted-key"},
		ToLLM:   toolMessages(v.Settings.Images.BlockImages),
	}, agent.Context{Tools: vectorTools(v, place, model)}, []agent.Message{llm.UserText("go", 1)}, rec.sink)
	o := outcome{}
	if err != nil {
		o.add("run", "%v", err)
		return o
	}

	for i, want := range v.Expect.Results {
		rec.compare(o, fmt.Sprintf("results.%d", i), fmt.Sprintf("call_%d", i+1), want, v.Compare, place)
	}
	if want := v.Expect.EndOrder; want != nil && !slices.Equal(rec.ends, want) {
		o.add("endOrder", "got %v, want %v", rec.ends, want)
	}
	if want := v.Expect.MessageOrder; want != nil && !slices.Equal(rec.stored, want) {
		o.add("messageOrder", "got %v, want %v", rec.stored, want)
	}
	requests := srv.requests()
	got := toolRequestMessages(requests[len(requests)-1])
	toolMatch{mode: v.Compare}.check(o, "toModel", v.Expect.ToModel, []byte(place.blank(string(got))))
	compareToolFiles(o, v.Expect.FilesAfter, before, toolFiles(t, place.work))
	return o
}

// vectorTools is the set of tools of a case.
func vectorTools(v *toolVector, place toolPlace, model *llm.Model) []*agent.Tool {
	// The program names itself to commands; the vectors were recorded from
	// another one, so its name stands here.
	environ := append(os.Environ(), "HOME="+place.home, "TMPDIR="+place.temp, "AI_AGENT=pi", "PI_CODING_AGENT=true")
	for name, value := range v.Env {
		environ = append(environ, name+"="+value)
	}
	e := &env.Local{
		Dir: place.work, Home: place.home, Temp: place.temp, Shell: v.Settings.ShellPath,
		Environ: environ, PathDirs: []string{place.agent + "/bin"},
	}
	images := v.Settings.Images
	var queue tool.FileQueue
	all := []*agent.Tool{
		tool.Read(tool.ReadOptions{
			Env: e, Model: func() *llm.Model { return model },
			KeepImageSize: images.AutoResize != nil && !*images.AutoResize,
		}),
		tool.Bash(tool.BashOptions{
			Env: e, Prefix: v.Settings.ShellCommandPrefix,
			Session: func() tool.SessionVars {
				return tool.SessionVars{
					ID: "a-session", File: place.agent + "/sessions/s.jsonl", Provider: model.Provider, Model: model.ID, ReasoningLevel: llm.LevelOff,
				}
			},
		}),
		tool.Edit(tool.EditOptions{Env: e, Queue: &queue}),
		tool.Write(tool.WriteOptions{Env: e, Queue: &queue}),
		tool.Grep(tool.GrepOptions{Env: e}),
		tool.Find(tool.FindOptions{Env: e}),
		tool.Ls(tool.LsOptions{Env: e}),
	}
	if v.Tools == "" {
		return all
	}
	names := strings.Split(v.Tools, ",")
	return slices.DeleteFunc(all, func(t *agent.Tool) bool { return !slices.Contains(names, t.Name) })
}

// toolMessages turns the transcript into the model's messages. With blocked
// images it says so in their place, as the session layer does.
func toolMessages(block bool) func([]agent.Message) []llm.Message {
	return func(list []agent.Message) []llm.Message {
		var out []llm.Message
		for _, m := range list {
			res, ok := m.(*llm.ToolResult)
			if !ok || !block {
				out = append(out, m.(llm.Message))
				continue
			}
			c := *res
			c.Content = nil
			for _, b := range res.Content {
				if _, ok := b.(*llm.Image); ok {
					b = &llm.Text{Text: "Image reading is disabled."}
				}
				c.Content = append(c.Content, b)
			}
			out = append(out, &c)
		}
		return out
	}
}

// toolRequestMessages are the results in a request, and the images that had to
// go into user messages.
func toolRequestMessages(r scriptedRequest) []byte {
	list := []json.RawMessage{}
	for i, raw := range r.Messages {
		var m struct{ Role string }
		json.Unmarshal(raw, &m)
		if m.Role == "tool" || m.Role == "user" && i > 0 && bytes.Contains(raw, []byte(`"image_url"`)) {
			list = append(list, raw)
		}
	}
	b, _ := json.Marshal(list)
	return b
}

// toolRecorder keeps what a run says about its tools.
type toolRecorder struct {
	mu       sync.Mutex
	started  map[string]json.RawMessage
	updates  map[string][]*agent.Result
	ended    map[string]agent.Event
	messages map[string]*llm.ToolResult
	ends     []string
	stored   []string
}

func (r *toolRecorder) sink(_ context.Context, ev agent.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started == nil {
		r.started, r.updates = map[string]json.RawMessage{}, map[string][]*agent.Result{}
		r.ended, r.messages = map[string]agent.Event{}, map[string]*llm.ToolResult{}
	}
	switch ev.Type {
	case agent.ToolExecutionStart:
		r.started[ev.ToolCallID] = json.RawMessage(ev.Args)
	case agent.ToolExecutionUpdate:
		r.updates[ev.ToolCallID] = append(r.updates[ev.ToolCallID], ev.Result)
	case agent.ToolExecutionEnd:
		r.ended[ev.ToolCallID] = ev
		r.ends = append(r.ends, ev.ToolCallID)
	case agent.MessageEnd:
		if m, ok := ev.Message.(*llm.ToolResult); ok {
			r.messages[m.ToolCallID] = m
			r.stored = append(r.stored, m.ToolCallID)
		}
	}
	return nil
}

func (r *toolRecorder) compare(o outcome, at, id string, want toolResultVector, mode string, place toolPlace) {
	m := toolMatch{mode: mode}
	check := func(field string, want json.RawMessage, got []byte) {
		if len(want) == 0 && len(got) == 0 {
			return
		}
		if len(want) == 0 || len(got) == 0 {
			o.add(at+"."+field, "got %s, want %s", clip(string(got)), clip(string(want)))
			return
		}
		m.check(o, at+"."+field, want, []byte(place.blank(string(got))))
	}
	end, ok := r.ended[id]
	if !ok {
		o.add(at, "no end event")
		return
	}
	check("startedArgs", want.StartedArgs, r.started[id])
	if end.IsError != want.IsError {
		o.add(at+".isError", "got %v", end.IsError)
	}
	content := llm.AppendBlocks(nil, end.Result.Content)
	check("content", want.Content, content)
	check("details", want.Details, end.Result.Details)
	check("structuredContent", want.StructuredContent, end.Result.StructuredContent)
	if (end.DurationMs != nil) != want.DurationReported {
		o.add(at+".durationReported", "got %v", end.DurationMs != nil)
	}
	msg := r.messages[id]
	if msg == nil {
		o.add(at+".message", "no tool result")
		return
	}
	if msg.IsError != want.MessageIsError {
		o.add(at+".messageIsError", "got %v", msg.IsError)
	}
	same := func(field string, want json.RawMessage, ended, stored []byte) {
		if string(want) == `"{{SAME}}"` {
			if !bytes.Equal(ended, stored) {
				o.add(at+"."+field, "got %s, want %s", clip(string(stored)), clip(string(ended)))
			}
			return
		}
		check(field, want, stored)
	}
	same("messageContent", want.MessageContent, content, llm.AppendBlocks(nil, msg.Content))
	same("messageDetails", want.MessageDetails, end.Result.Details, msg.Details)
	if u := want.Updates; u != nil {
		got := r.updates[id]
		if len(got) < u.AtLeast {
			o.add(at+".updates", "got %d, want at least %d", len(got), u.AtLeast)
		}
		if len(got) > 0 {
			b := append([]byte(`{"content":`), llm.AppendBlocks(nil, got[0].Content)...)
			if d := got[0].Details; d != nil {
				b = append(append(b, `,"details":`...), d...)
			}
			check("updates.first", u.First, append(b, '}'))
		}
	}
}

// toolMatch compares expected JSON with what came.
type toolMatch struct{ mode string }

// parserMessage is what a JSON parser says about arguments, in the frame of the
// loop.
var parserMessage = regexp.MustCompile(`(Invalid arguments for tool \\"[^"\\]*\\": )[^\\]*(?:\\"[^\\]*)*(\\n\\nReceived arguments:)`)

// check notes a difference in a field. One that is only in the words of a JSON
// parser is noted as that.
func (m toolMatch) check(o outcome, field string, want, got []byte) {
	err := m.json(want, got)
	if err == nil {
		return
	}
	if !bytes.Contains(want, []byte("must be a JSON object")) {
		frame := []byte("$1$2")
		if m.json(parserMessage.ReplaceAll(want, frame), parserMessage.ReplaceAll(got, frame)) == nil {
			field = "parserMessage"
		}
	}
	o.add(field, "%v", err)
}

func (m toolMatch) json(want, got []byte) error {
	var w, g any
	if err := json.Unmarshal(want, &w); err != nil {
		return err
	}
	if err := json.Unmarshal(got, &g); err != nil {
		return fmt.Errorf("%w in %s", err, clip(string(got)))
	}
	return m.value("", w, g)
}

func (m toolMatch) value(path string, want, got any) error {
	switch w := want.(type) {
	case map[string]any:
		if long, ok := w["longText"].(map[string]any); ok && len(w) == 1 {
			s, ok := got.(string)
			sum := sha256.Sum256([]byte(s))
			if !ok || hex.EncodeToString(sum[:]) != long["sha256"] {
				return fmt.Errorf("%s: got %d bytes %s, want %v bytes %s", path, len(s), clip(s), long["bytes"], long["head"])
			}
			return nil
		}
		if pic, ok := w["image"].(map[string]any); ok && len(w) == 1 {
			return matchPicture(path, pic, got)
		}
		g, ok := got.(map[string]any)
		if !ok || len(g) != len(w) {
			return fmt.Errorf("%s: got %s, want %s", path, clip(fmt.Sprint(got)), clip(fmt.Sprint(want)))
		}
		for _, k := range slices.Sorted(maps.Keys(w)) {
			v, ok := g[k]
			if !ok {
				return fmt.Errorf("%s.%s is missing", path, k)
			}
			if err := m.value(path+"."+k, w[k], v); err != nil {
				return err
			}
		}
		return nil
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return fmt.Errorf("%s: got %s, want %s", path, clip(fmt.Sprint(got)), clip(fmt.Sprint(want)))
		}
		for i := range w {
			if err := m.value(fmt.Sprintf("%s[%d]", path, i), w[i], g[i]); err != nil {
				return err
			}
		}
		return nil
	case string:
		if w == "{{SECONDS}}" {
			if n, ok := got.(float64); ok && n >= 0 {
				return nil
			}
			return fmt.Errorf("%s: got %v, want seconds", path, got)
		}
		g, ok := got.(string)
		if ok && m.mode == "loose" {
			w, g = looseText(w), looseText(g)
		}
		if ok && m.mode == "sorted-lines" {
			w, g = sortedLines(w), sortedLines(g)
		}
		if ok && m.mode == "image-size" && strings.HasPrefix(w, "data:image/") {
			wk, ww, wh, err := pictureSize(w[strings.IndexByte(w, ',')+1:])
			if err != nil {
				return err
			}
			return matchPicture(path, map[string]any{"kind": wk, "width": float64(ww), "height": float64(wh)}, g[strings.IndexByte(g, ',')+1:])
		}
		if !ok || w != g {
			return fmt.Errorf("%s: got %s, want %s", path, clip(fmt.Sprintf("%q", got)), clip(fmt.Sprintf("%q", want)))
		}
		return nil
	}
	if !reflect.DeepEqual(want, got) {
		return fmt.Errorf("%s: got %v, want %v", path, got, want)
	}
	return nil
}

// sortedLines is a text as a set of lines: programs that walk in parallel have no
// order.
func sortedLines(s string) string {
	return strings.Join(slices.Sorted(strings.SplitSeq(s, "\n")), "\n")
}

// looseText is the shape of a text whose length is a matter of time: repeated
// lines once, seconds of any number.
func looseText(s string) string {
	lines := slices.Compact(strings.Split(s, "\n"))
	return regexp.MustCompile(`after [0-9.]+ seconds`).ReplaceAllString(strings.Join(lines, "\n"), "after N seconds")
}

func pictureSize(data string) (kind string, w, h int, err error) {
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return "", 0, 0, err
	}
	c, kind, err := image.DecodeConfig(bytes.NewReader(raw))
	return kind, c.Width, c.Height, err
}

func matchPicture(path string, want map[string]any, got any) error {
	data, _ := got.(string)
	kind, w, h, err := pictureSize(data)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if kind != want["kind"] || float64(w) != want["width"] || float64(h) != want["height"] {
		return fmt.Errorf("%s: got %s %dx%d, want %v", path, kind, w, h, want)
	}
	return nil
}

func clip(s string) string {
	if len(s) > 700 {
		return s[:500] + " … " + s[len(s)-150:]
	}
	return s
}

// makeToolFiles makes the files that a vector names.
func makeToolFiles(t *testing.T, dir string, files map[string]json.RawMessage) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var spec struct {
			Symlink   string
			Dir       bool
			Mode      json.RawMessage
			ManyEmpty *struct {
				Count, Pad     int
				Prefix, Suffix string
			}
		}
		json.Unmarshal(files[name], &spec)
		var err error
		switch {
		case spec.Symlink != "":
			err = os.Symlink(spec.Symlink, path)
		case spec.Dir:
			err = os.MkdirAll(path, 0o755)
		case spec.ManyEmpty != nil:
			m := spec.ManyEmpty
			if m.Pad == 0 {
				m.Pad = 4
			}
			for i := range m.Count {
				if err = os.WriteFile(filepath.Join(filepath.Dir(path), fmt.Sprintf("%s%0*d%s", m.Prefix, m.Pad, i, m.Suffix)), nil, 0o644); err != nil {
					break
				}
			}
		default:
			err = os.WriteFile(path, toolFileContent(t, files[name]), 0o644)
			if err == nil && spec.Mode != nil {
				var mode uint32
				s := strings.Trim(string(spec.Mode), `"`)
				if _, scanErr := fmt.Sscanf(s, "%o", &mode); scanErr == nil && strings.HasPrefix(string(spec.Mode), `"`) {
					err = os.Chmod(path, fs.FileMode(mode))
				} else if json.Unmarshal(spec.Mode, &mode) == nil {
					err = os.Chmod(path, fs.FileMode(mode))
				}
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func toolFileContent(t *testing.T, raw json.RawMessage) []byte {
	t.Helper()
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []byte(text)
	}
	var spec struct {
		Base64 *string
		Repeat *struct {
			Text, Tail string
			Count      int
		}
		Lines *struct {
			Count, Pad  int
			Prefix      *string
			Suffix, Eol string
			FinalEol    *bool
		}
		Parts []json.RawMessage
	}
	if err := json.Unmarshal(raw, &spec); err != nil {
		t.Fatal(err)
	}
	switch {
	case spec.Base64 != nil:
		b, err := base64.StdEncoding.DecodeString(*spec.Base64)
		if err != nil {
			t.Fatal(err)
		}
		return b
	case spec.Repeat != nil:
		return []byte(strings.Repeat(spec.Repeat.Text, spec.Repeat.Count) + spec.Repeat.Tail)
	case spec.Lines != nil:
		l := spec.Lines
		prefix, eol := "line ", "\n"
		if l.Prefix != nil {
			prefix = *l.Prefix
		}
		if l.Eol != "" {
			eol = l.Eol
		}
		var b bytes.Buffer
		for i := 1; i <= l.Count; i++ {
			fmt.Fprintf(&b, "%s%0*d%s", prefix, l.Pad, i, l.Suffix)
			if i < l.Count || l.FinalEol == nil || *l.FinalEol {
				b.WriteString(eol)
			}
		}
		return b.Bytes()
	}
	var b []byte
	for _, part := range spec.Parts {
		b = append(b, toolFileContent(t, part)...)
	}
	return b
}

// toolFiles reads the regular files under dir.
func toolFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		out[filepath.ToSlash(rel)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// compareToolFiles compares the files that a run changed with the expected ones.
func compareToolFiles(o outcome, want map[string]json.RawMessage, before, after map[string]string) {
	changed := map[string]any{}
	for name, text := range after {
		if old, ok := before[name]; !ok || old != text {
			changed[name] = text
			if !utf8.ValidString(text) {
				changed[name] = map[string]any{"base64": base64.StdEncoding.EncodeToString([]byte(text))}
			}
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			changed[name] = nil
		}
	}
	for name, raw := range want {
		got, ok := changed[name]
		if !ok {
			o.add("filesAfter", "%s did not change", name)
			continue
		}
		b, _ := json.Marshal(got)
		if err := (toolMatch{}).json(raw, b); err != nil {
			field := "filesAfter"
			b, _ = json.Marshal(string(jsonwire.AppendUTF8(nil, after[name])))
			if !utf8.ValidString(after[name]) && (toolMatch{}).json(raw, b) == nil {
				field += ".undecodable"
			}
			o.add(field, "%s: %v", name, err)
		}
	}
	for name := range changed {
		if _, ok := want[name]; !ok {
			o.add("filesAfter", "%s changed", name)
		}
	}
}
