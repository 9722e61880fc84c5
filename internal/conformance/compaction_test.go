package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/compact"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
	"github.com/pinch-agent/pinch/session"
)

var compactionDeviations = []deviation{}

type compactionVector struct {
	Kind          string            `json:"kind"`
	Input         json.RawMessage   `json:"input"`
	Expect        json.RawMessage   `json:"expect"`
	Cases         []json.RawMessage `json:"cases"`
	Entries       []json.RawMessage `json:"entries"`       // of branchCollect
	ContextWindow int               `json:"contextWindow"` // of silentOverflow
}

func TestCompaction(t *testing.T) {
	const name = "compaction"
	g := newGroup(name)
	kinds := map[string]func(*testing.T, compactionVector) outcome{
		"cutPoint":      compactionCut,
		"prepare":       compactionPrepare,
		"compact":       compactionRun,
		"branchPrepare": compactionBranchPrepare,
		"branchSummary": compactionBranchSummary,
	}
	rows := map[string]func(compactionVector, json.RawMessage) outcome{
		"estimateMessage":       rowCompactionMessage,
		"estimateContext":       rowCompactionContext,
		"shouldCompact":         rowCompactionShould,
		"serializeConversation": rowCompactionSerialize,
		"formatFileLists":       rowCompactionFiles,
		"branchCollect":         rowCompactionCollect,
		"errorClass":            rowCompactionErrorClass,
		"silentOverflow":        rowCompactionSilent,
		"recoverableLength":     rowCompactionLength,
		"retryDelay":            rowCompactionDelay,
		"combineUsage":          rowCompactionUsage,
	}
	for _, file := range vectorFiles(t, name) {
		base := strings.TrimSuffix(filepath.Base(file), ".json")
		var v compactionVector
		readVector(t, file, &v)
		switch {
		case kinds[v.Kind] != nil:
			g.report(t, base, kinds[v.Kind](t, v), compactionDeviations)
		case rows[v.Kind] != nil:
			for i, raw := range v.Cases {
				g.report(t, fmt.Sprintf("%s#%d", base, i+1), rows[v.Kind](v, raw), compactionDeviations)
			}
		default:
			g.report(t, base, outcome{"kind": "unknown kind " + v.Kind}, compactionDeviations)
		}
	}
}

// compactionEntries opens a session of the entries of a case.
func compactionEntries(t *testing.T, o outcome, entries []json.RawMessage) *session.Session {
	s, err := openEntries(entries)
	if err != nil {
		o.add("open", "%v", err)
		return nil
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func compactionMessage(o outcome, raw json.RawMessage) agent.Message {
	m, err := session.ParseMessage(raw)
	if err != nil {
		o.add("message", "%v", err)
	}
	return m
}

func compactionMessages(o outcome, raw []json.RawMessage) (list []agent.Message) {
	for _, r := range raw {
		list = append(list, compactionMessage(o, r))
	}
	return list
}

// compactionWording puts our own wording in the place of the placeholders.
func compactionWording(raw json.RawMessage) any {
	inJSON := func(s string) string {
		quoted := string(jsonwire.AppendString(nil, s))
		return quoted[1 : len(quoted)-1]
	}
	return tree([]byte(strings.NewReplacer(
		"«NO_PRIOR_HISTORY»", inJSON(compact.NoHistory()),
		"«SPLIT_TURN_HEADING»", inJSON(compact.SplitTurnHeading()),
		"«BRANCH_PREAMBLE»", inJSON(compact.BranchPreamble()),
		"«NOTHING_TO_SUMMARIZE»", inJSON(compact.NothingToSummarize()),
		"«COMPACTION_PREFIX»", inJSON(session.CompactionLeadIn()+"<summary>\n"),
		"«COMPACTION_SUFFIX»", inJSON("\n</summary>"),
		"«BRANCH_PREFIX»", inJSON(session.BranchLeadIn()+"<summary>\n"),
	).Replace(string(raw))))
}

func compactionStrings(list []string) []any {
	out := []any{}
	for _, s := range list {
		out = append(out, s)
	}
	return out
}

func compactionCut(t *testing.T, v compactionVector) outcome {
	in := row[struct {
		Entries          []json.RawMessage
		Start, End       int
		KeepRecentTokens int64
	}](v.Input)
	o := outcome{}
	s := compactionEntries(t, o, in.Entries)
	if s == nil {
		return o
	}
	// The entries as they are: each one is projected for itself.
	entries := s.Entries()
	var raw []session.Projected
	for _, e := range entries[in.Start:in.End] {
		raw = append(raw, session.ProjectSelected([]*session.Entry{e})...)
	}
	cut := compact.CutPoint(raw, in.KeepRecentTokens)
	id := func(i int) any {
		if i < 0 || i >= len(entries) {
			return nil
		}
		return entries[i].ID
	}
	first, turn := cut.FirstKept+in.Start, cut.TurnStart
	if turn >= 0 {
		turn += in.Start
	}
	o.compare("expect", map[string]any{
		"firstKeptEntryIndex": float64(first), "turnStartIndex": float64(turn), "isSplitTurn": cut.Split,
		"firstKept": id(first), "turnStart": id(turn),
	}, tree(v.Expect))
	return o
}

func compactionPrepare(t *testing.T, v compactionVector) outcome {
	in := row[struct {
		Entries          []json.RawMessage
		KeepRecentTokens int64
	}](v.Input)
	o := outcome{}
	s := compactionEntries(t, o, in.Entries)
	if s == nil {
		return o
	}
	limits := compact.Settings{KeepRecentTokens: &in.KeepRecentTokens}.For(nil)
	p, err := compact.Prepare(s.Path(), limits)
	if err != nil {
		var got any = err.Error()
		if errors.Is(err, &compact.Error{Kind: compact.AlreadyCompacted}) || errors.Is(err, &compact.Error{Kind: compact.NothingToCompact}) {
			got = nil
		}
		o.compare("expect", got, tree(v.Expect))
		return o
	}
	// Messages go by the id of their entry, or by their role where an edit made
	// another message of them.
	ids := map[agent.Message]string{}
	for _, e := range s.Entries() {
		for _, own := range session.ProjectSelected([]*session.Entry{e}) {
			for _, m := range own.Messages {
				ids[m] = e.ID
			}
		}
	}
	names := func(list []agent.Message) []any {
		out := []any{}
		for _, m := range list {
			if id, ok := ids[m]; ok {
				out = append(out, id)
			} else {
				out = append(out, string(m.Role()))
			}
		}
		return out
	}
	read, modified := p.Files.Lists()
	got := map[string]any{
		"firstKeptEntryId": p.FirstKept, "isSplitTurn": p.SplitTurn,
		"summarised": names(p.History), "turnPrefix": names(p.TurnPrefix), "tokensBefore": float64(p.TokensBefore),
		"fileOps": map[string]any{
			"read": compactionStrings(p.Files.Read), "written": compactionStrings(p.Files.Written), "edited": compactionStrings(p.Files.Edited),
		},
		"lists": map[string]any{"readFiles": compactionStrings(read), "modifiedFiles": compactionStrings(modified)},
	}
	if first := session.Project(s.Path())[0]; first.Entry.Type == session.TypeCompaction && len(first.Messages) > 0 {
		got["previousSummary"] = p.PreviousSummary
	}
	o.compare("expect", got, tree(v.Expect))
	return o
}

type compactionReply struct {
	Text       *string         `json:"text"`
	Thinking   *string         `json:"thinking"`
	ToolCalls  json.RawMessage `json:"toolCalls"`
	StopReason string          `json:"stopReason"`
	Usage      json.RawMessage `json:"usage"`
	Error      string          `json:"error"`
}

// message is the reply as the model gives it.
func (r *compactionReply) message(m *llm.Model) *llm.Assistant {
	a := &llm.Assistant{
		Content: []llm.Block{}, API: m.API, Provider: m.Provider, Model: m.ID,
		StopReason: llm.StopStop, Timestamp: 1,
	}
	if r.Thinking != nil {
		a.Content = append(a.Content, &llm.Thinking{Thinking: *r.Thinking})
	}
	if r.Text != nil {
		a.Content = append(a.Content, &llm.Text{Text: *r.Text})
	}
	if r.ToolCalls != nil {
		for _, raw := range row[[]struct {
			ID, Name  string
			Arguments json.RawMessage
		}](r.ToolCalls) {
			a.Content = append(a.Content, &llm.ToolCall{ID: raw.ID, Name: raw.Name, Arguments: []byte(raw.Arguments)})
		}
	}
	if r.StopReason != "" {
		a.StopReason = llm.StopReason(r.StopReason)
	}
	if r.Usage != nil {
		var rd jsonwire.Reader
		rd.Reset(r.Usage)
		a.Usage = llm.ReadUsage(&rd)
	}
	if r.Error != "" {
		a.StopReason, a.ErrorMessage = llm.StopError, r.Error
	}
	return a
}

// compactionModel answers with the replies of a case, one after the other, and
// keeps what it was asked.
type compactionModel struct {
	model   *llm.Model
	replies []compactionReply
	asked   []*llm.Request

	instructions string // in the place of ours, "" for none
}

func newCompactionModel(replies []compactionReply) *compactionModel {
	m := *faux.New(faux.Options{}).Model()
	m.API, m.Provider, m.ID = "mock-api", "acme", "alpha-1"
	return &compactionModel{model: &m, replies: replies}
}

func (c *compactionModel) stream(_ context.Context, m *llm.Model, req *llm.Request) (*llm.Stream, error) {
	c.asked = append(c.asked, req)
	if len(c.replies) == 0 {
		return nil, errors.New("no reply is left")
	}
	reply := c.replies[0].message(m)
	c.replies = c.replies[1:]
	return llm.NewStream(&compactionSource{message: reply}), nil
}

type compactionSource struct{ message *llm.Assistant }

func (s *compactionSource) Next() (llm.Event, bool) {
	m := s.message
	s.message = nil
	t := llm.EventDone
	if m != nil && m.StopReason == llm.StopError {
		t = llm.EventError
	}
	return llm.Event{Type: t, Message: m}, m != nil
}

func (*compactionSource) Close() {}

// calls takes the requests apart.
func (c *compactionModel) calls(o outcome) []any {
	out := []any{}
	for _, req := range c.asked {
		call := map[string]any{"cacheRetention": req.CacheRetention, "hasSessionId": req.SessionID != "", "reasoning": nil}
		if req.Reasoning != "" && req.Reasoning != llm.LevelOff {
			call["reasoning"] = string(req.Reasoning)
		}
		_, call["systemFirst"] = req.Messages[0].(*llm.System)
		user, ok := req.Messages[len(req.Messages)-1].(*llm.User)
		if !ok || len(req.Messages) != 2 {
			o.add("request", "%d messages", len(req.Messages))
			continue
		}
		text := llm.TextOf(user.Content.Blocks, "")
		conversation, rest, ok := strings.Cut(strings.TrimPrefix(text, "<conversation>\n"), "\n</conversation>\n\n")
		if !ok {
			o.add("request", "no conversation in %q", text)
		}
		call["conversation"] = conversation
		if previous, ok := strings.CutPrefix(rest, "<previous-summary>\n"); ok {
			call["previousSummary"], rest, _ = strings.Cut(previous, "\n</previous-summary>\n\n")
		}
		for _, part := range []compact.Part{compact.Initial, compact.Update, compact.TurnPrefix, compact.Branch} {
			if after, ok := strings.CutPrefix(rest, compact.Instructions(part)); ok {
				call["kind"], rest = string(part), after
			}
		}
		if c.instructions != "" && rest == c.instructions {
			call["kind"], rest = string(compact.Branch), ""
		}
		if focus, ok := strings.CutPrefix(rest, "\n\n"+compact.FocusLeadIn()); ok {
			call["focus"], rest = focus, ""
		}
		if rest != "" {
			o.add("request", "unknown text %q", rest)
		}
		out = append(out, call)
	}
	return out
}

func compactionError(err error) string {
	e, ok := errors.AsType[*compact.Error](err)
	switch {
	case !ok:
		return err.Error()
	case e.Kind == compact.Failed && e.Err != nil:
		return string(e.Kind) + ": " + e.Err.Error()
	}
	return string(e.Kind)
}

func compactionRun(t *testing.T, v compactionVector) outcome {
	in := row[struct {
		Entries          []json.RawMessage
		KeepRecentTokens int64
		Responses        []compactionReply
		Instructions     string
		Retry            *struct {
			Enabled     bool
			MaxRetries  int
			BaseDelayMs float64
		}
	}](v.Input)
	o := outcome{}
	s := compactionEntries(t, o, in.Entries)
	if s == nil {
		return o
	}
	p, err := compact.Prepare(s.Path(), compact.Settings{KeepRecentTokens: &in.KeepRecentTokens}.For(nil))
	if err != nil {
		o.add("prepare", "%v", err)
		return o
	}
	model := newCompactionModel(in.Responses)
	options := compact.Options{
		Model: model.model, Stream: model.stream, Instructions: in.Instructions, ThinkingLevel: llm.LevelMedium,
		Retry: llm.Retry{Disabled: in.Retry == nil},
	}
	if in.Retry != nil {
		options.Retry = llm.Retry{
			Disabled: !in.Retry.Enabled || in.Retry.MaxRetries == 0, MaxRetries: in.Retry.MaxRetries,
			BaseDelay: time.Duration(in.Retry.BaseDelayMs * float64(time.Millisecond)),
		}
	}
	result, err := compact.Run(t.Context(), p, options)
	got := map[string]any{"calls": model.calls(o)}
	if err != nil {
		got["error"] = compactionError(err)
	} else if e, err := s.Append(result.Entry()); err != nil {
		o.add("append", "%v", err)
	} else {
		members := tree(e.Raw()).(map[string]any)
		for _, k := range []string{"type", "id", "parentId", "timestamp", "systemMessage"} {
			delete(members, k)
		}
		if members["fromHook"] != false {
			o.add("fromHook", "%v", members["fromHook"])
		}
		delete(members, "fromHook")
		got["result"] = members
	}
	o.compare("expect", got, compactionWording(v.Expect))
	return o
}

func compactionBranchPrepare(t *testing.T, v compactionVector) outcome {
	in := row[struct {
		Entries     []json.RawMessage
		TokenBudget int64
	}](v.Input)
	o := outcome{}
	s := compactionEntries(t, o, in.Entries)
	if s == nil {
		return o
	}
	p := compact.PrepareBranch(s.Entries(), in.TokenBudget)
	roles, texts := []any{}, []any{}
	for _, m := range p.Messages {
		roles = append(roles, string(m.Role()))
		texts = append(texts, compactionText(m))
	}
	o.compare("expect", map[string]any{
		"roles": roles, "texts": texts, "totalTokens": float64(p.Tokens),
		"read": compactionStrings(p.Files.Read), "written": compactionStrings(p.Files.Written), "edited": compactionStrings(p.Files.Edited),
	}, tree(v.Expect))
	return o
}

// compactionText is a message as the vectors show it.
func compactionText(m agent.Message) string {
	var text string
	blocks := func(list []llm.Block) string {
		var out []string
		for _, b := range list {
			if t, ok := b.(*llm.Text); ok {
				out = append(out, t.Text)
			} else {
				out = append(out, "<"+b.BlockType()+">")
			}
		}
		return strings.Join(out, "|")
	}
	content := func(c llm.Content) string {
		if c.Blocks == nil {
			return c.Text
		}
		return blocks(c.Blocks)
	}
	switch m := m.(type) {
	case *llm.System:
		text = content(m.Content)
	case *llm.User:
		text = content(m.Content)
	case *llm.Assistant:
		text = blocks(m.Content)
	case *session.Custom:
		text = content(m.Content)
	case *session.BranchSummary:
		text = m.Summary
	case *session.CompactionSummary:
		text = m.Summary
	case *session.BashExecution:
		text = m.Command
	}
	units := utf16.Encode([]rune(text))
	return string(utf16.Decode(units[:min(20, len(units))]))
}

func compactionBranchSummary(t *testing.T, v compactionVector) outcome {
	in := row[struct {
		Entries             []json.RawMessage
		Responses           []compactionReply
		CustomInstructions  string
		ReplaceInstructions bool
	}](v.Input)
	o := outcome{}
	s := compactionEntries(t, o, in.Entries)
	if s == nil {
		return o
	}
	model := newCompactionModel(in.Responses)
	if in.ReplaceInstructions {
		model.instructions = in.CustomInstructions
	}
	budget := compact.BranchBudget(int64(model.model.ContextWindow), compact.DefaultReserveTokens)
	result, err := compact.RunBranch(t.Context(), compact.PrepareBranch(s.Entries(), budget), compact.Options{
		Model: model.model, Stream: model.stream, Retry: llm.Retry{Disabled: true},
		Instructions: in.CustomInstructions, Replace: in.ReplaceInstructions,
	})
	got := map[string]any{"call": nil}
	if calls := model.calls(o); len(calls) > 0 {
		call := calls[0].(map[string]any)
		if len(calls) > 1 || call["kind"] != string(compact.Branch) {
			o.add("call", "%s", shortJSON(calls))
		}
		for _, k := range []string{"hasSessionId", "reasoning", "systemFirst", "kind"} {
			delete(call, k)
		}
		got["call"] = call
	}
	if err != nil {
		got["result"] = map[string]any{"error": compactionError(err)}
	} else {
		r := map[string]any{"summary": result.Summary}
		if result.Usage != nil {
			read, modified := result.Files.Lists()
			r["usage"] = tree(result.Usage.AppendJSON(nil))
			r["readFiles"], r["modifiedFiles"] = compactionStrings(read), compactionStrings(modified)
		}
		got["result"] = r
	}
	o.compare("expect", got, compactionWording(v.Expect))
	return o
}

func rowCompactionMessage(_ compactionVector, raw json.RawMessage) outcome {
	c := row[struct {
		Message json.RawMessage
		Tokens  int64
	}](raw)
	o := outcome{}
	if got := session.Tokens(compactionMessage(o, c.Message)); got != c.Tokens {
		o.add("tokens", "got %d, want %d", got, c.Tokens)
	}
	return o
}

func rowCompactionContext(_ compactionVector, raw json.RawMessage) outcome {
	c := row[struct {
		Messages                            []json.RawMessage
		Tokens, UsageTokens, TrailingTokens int64
		LastUsageIndex                      *int
	}](raw)
	o := outcome{}
	want := compact.Estimate{Tokens: c.Tokens, Measured: c.UsageTokens, Trailing: c.TrailingTokens, Last: -1}
	if c.LastUsageIndex != nil {
		want.Last = *c.LastUsageIndex
	}
	if got := compact.EstimateMessages(compactionMessages(o, c.Messages)); got != want {
		o.add("estimate", "got %+v, want %+v", got, want)
	}
	return o
}

func rowCompactionShould(_ compactionVector, raw json.RawMessage) outcome {
	c := row[struct {
		Tokens, Window int64
		Settings       struct {
			Enabled                         bool
			ReserveTokens, KeepRecentTokens *int64
		}
		Compact bool
	}](raw)
	o := outcome{}
	l := compact.Settings{
		Disabled: !c.Settings.Enabled, ReserveTokens: c.Settings.ReserveTokens, KeepRecentTokens: c.Settings.KeepRecentTokens,
	}.For(nil)
	if got := compact.Should(c.Tokens, c.Window, l); got != c.Compact {
		o.add("compact", "got %v", got)
	}
	return o
}

func rowCompactionSerialize(_ compactionVector, raw json.RawMessage) outcome {
	c := row[struct {
		Messages []json.RawMessage
		Text     json.RawMessage
	}](raw)
	o := outcome{}
	o.compare("text", compact.Serialize(compactionMessages(o, c.Messages)), tree(c.Text))
	return o
}

func rowCompactionFiles(_ compactionVector, raw json.RawMessage) outcome {
	c := row[struct {
		Read, Modified []string
		Text           string
	}](raw)
	o := outcome{}
	o.compare("text", compact.FormatFiles(c.Read, c.Modified), c.Text)
	return o
}

func rowCompactionCollect(v compactionVector, raw json.RawMessage) outcome {
	c := row[struct {
		OldLeaf, Target *string
		Entries         json.RawMessage
		CommonAncestor  json.RawMessage
	}](raw)
	o := outcome{}
	s, err := openEntries(v.Entries)
	if err != nil {
		o.add("open", "%v", err)
		return o
	}
	defer s.Close()
	path := func(id *string) []*session.Entry {
		if id == nil {
			return nil
		}
		return s.PathTo(*id)
	}
	left, shared := compact.Left(path(c.OldLeaf), path(c.Target))
	o.compare("entries", entryIDs(left), tree(c.Entries))
	var ancestor any
	if shared != nil {
		ancestor = shared.ID
	}
	o.compare("commonAncestor", ancestor, tree(c.CommonAncestor))
	return o
}

func rowCompactionErrorClass(_ compactionVector, raw json.RawMessage) outcome {
	c := row[struct {
		ErrorMessage        json.RawMessage
		Overflow, Retryable bool
	}](raw)
	o := outcome{}
	text, _ := jsonwire.StringValue(c.ErrorMessage)
	m := &llm.Assistant{StopReason: llm.StopError, ErrorMessage: text}
	if got := llm.IsContextOverflow(m, 0); got != c.Overflow {
		o.add("overflow", "got %v for %q", got, text)
	}
	if got := (llm.Retry{}).Repeats(m, 0, 0); got != c.Retryable {
		o.add("retryable", "got %v for %q", got, text)
	}
	return o
}

func rowCompactionSilent(v compactionVector, raw json.RawMessage) outcome {
	c := row[struct {
		StopReason              string
		Usage                   json.RawMessage
		Overflow, WithoutWindow bool
	}](raw)
	o := outcome{}
	var rd jsonwire.Reader
	rd.Reset(c.Usage)
	m := &llm.Assistant{StopReason: llm.StopReason(c.StopReason), Usage: llm.ReadUsage(&rd)}
	if got := llm.IsContextOverflow(m, v.ContextWindow); got != c.Overflow {
		o.add("overflow", "got %v", got)
	}
	if got := llm.IsContextOverflow(m, 0); got != c.WithoutWindow {
		o.add("withoutWindow", "got %v", got)
	}
	return o
}

func rowCompactionLength(_ compactionVector, raw json.RawMessage) outcome {
	c := row[struct {
		StopReason       string
		Output           int64
		DesiredMaxOutput int
		Recoverable      bool
	}](raw)
	o := outcome{}
	m := &llm.Assistant{StopReason: llm.StopReason(c.StopReason), Usage: llm.Usage{Output: c.Output}}
	if got := llm.IsCutShort(m, c.DesiredMaxOutput); got != c.Recoverable {
		o.add("recoverable", "got %v", got)
	}
	return o
}

func rowCompactionDelay(_ compactionVector, raw json.RawMessage) outcome {
	c := row[struct {
		Policy struct{ BaseDelayMs, MaxAgentDelayMs int64 }
		Delays []int64
	}](raw)
	o := outcome{}
	for i, want := range c.Delays {
		got := llm.RetryDelay(time.Duration(c.Policy.BaseDelayMs)*time.Millisecond, time.Duration(c.Policy.MaxAgentDelayMs)*time.Millisecond, i+1)
		if got.Milliseconds() != want {
			o.add(fmt.Sprintf("delays[%d]", i), "got %v, want %d ms", got, want)
		}
	}
	return o
}

func rowCompactionUsage(_ compactionVector, raw json.RawMessage) outcome {
	c := row[struct{ First, Second, Sum json.RawMessage }](raw)
	o := outcome{}
	read := func(raw []byte) llm.Usage {
		var rd jsonwire.Reader
		rd.Reset(raw)
		return llm.ReadUsage(&rd)
	}
	sum := session.AddUsage(read(c.First), read(c.Second))
	o.compare("sum", tree(sum.AppendJSON(nil)), tree(c.Sum))
	return o
}
