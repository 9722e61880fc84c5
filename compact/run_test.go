package compact_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/compact"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
	"github.com/pinch-agent/pinch/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// history is a preparation of one long user message.
func history(text string) *compact.Preparation {
	return &compact.Preparation{History: []agent.Message{llm.UserText(text, 1)}, FirstKept: "k"}
}

func options(model *faux.API) compact.Options {
	return compact.Options{Model: model.Model(), Stream: model.Stream, Retry: llm.Retry{BaseDelay: time.Microsecond}}
}

// asked is the user message of each request.
func asked(model *faux.API) (out []string) {
	for _, c := range model.Requests() {
		m := c.Request.Messages[len(c.Request.Messages)-1].(*llm.User)
		out = append(out, llm.TextOf(m.Content.Blocks, ""))
	}
	return out
}

func TestRun(t *testing.T) {
	s := sketch(t, "u5 a5 u5 c5 r20 a5")
	p, err := compact.Prepare(s.Path(), limits(5))
	if err != nil {
		t.Fatal(err)
	}
	model := faux.New(faux.Options{Models: []llm.Model{{ID: "m", Reasoning: true, ContextWindow: 1000, MaxTokens: 100}}})
	model.Script(faux.Reply(faux.Think("hm"), faux.Text("HISTORY")), faux.Say("PREFIX"))
	o := options(model)
	o.ThinkingLevel, o.Instructions = llm.LevelMax, "the names"
	o.Request = llm.Options{MaxTokens: 3, SessionID: "mine", ToolChoice: "auto", Memo: &llm.Memo{}, Metadata: []byte(`{"a":1}`)}
	result, err := compact.Run(t.Context(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	if want := "HISTORY\n\n---\n\n" + compact.SplitTurnHeading() + "\n\nPREFIX"; result.Summary != want {
		t.Errorf("summary %q", result.Summary)
	}
	var id string
	for i, c := range model.Requests() {
		r := c.Request
		if r.MaxTokens != 0 || r.ToolChoice != "" || r.Memo != nil || r.CacheRetention != "none" || r.Reasoning != llm.LevelHigh || string(r.Metadata) != `{"a":1}` {
			t.Errorf("request %d: %+v", i, r.Options)
		}
		if r.SessionID == "" || r.SessionID == "mine" || i > 0 && r.SessionID != id {
			t.Errorf("request %d goes by session %q", i, r.SessionID)
		}
		id = r.SessionID
		if sys, ok := r.Messages[0].(*llm.System); !ok || sys.Content.Text == "" || len(sys.ToolsAdded) > 0 || len(r.Messages) != 2 {
			t.Errorf("request %d has no system prompt of its own", i)
		}
	}
	for i, text := range asked(model) {
		part := []compact.Part{compact.Initial, compact.TurnPrefix}[i]
		if !strings.HasSuffix(text, "\n</conversation>\n\n"+compact.Instructions(part)+"\n\n"+compact.FocusLeadIn()+"the names") {
			t.Errorf("request %d: %s", i, text)
		}
	}
	// What was prepared goes into the session.
	if _, err := s.Append(result.Entry()); err != nil {
		t.Fatal(err)
	}
	messages := s.Context().Messages
	if len(messages) != 2 || messages[0].Role() != session.RoleCompactionSummary || messages[1].Role() != llm.RoleAssistant {
		t.Errorf("the context is %d messages", len(messages))
	}
	_, err = compact.Prepare(s.Path(), limits(5))
	checkKind(t, err, compact.AlreadyCompacted)
}

func TestPrepareNothing(t *testing.T) {
	for _, words := range []string{"", "u500", "r r", "y9 l", "u1 a1 x"} {
		_, err := compact.Prepare(sketch(t, words).Path(), limits(5))
		checkKind(t, err, compact.NothingToCompact)
	}
}

func TestPreviousFiles(t *testing.T) {
	for _, c := range []struct {
		fromHook *bool
		want     int
	}{{nil, 1}, {new(false), 1}, {new(true), 0}} {
		s := sketch(t, "u5 a5")
		appendAll(t, s, &session.CompactionEntry{Summary: "x", FromHook: c.fromHook, Details: []byte(`{"readFiles":["a"]}`)})
		appendAll(t, s, sketchData(40)...)
		appendAll(t, s, answered(0, llm.StopStop), answered(0, llm.StopStop))
		p, err := compact.Prepare(s.Path(), limits(1))
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Files.Read) != c.want || p.PreviousSummary != "x" {
			t.Errorf("%+v", p)
		}
	}
}

func TestPreviousSummaryBeforeSplitTurn(t *testing.T) {
	s := sketch(t, "u5 a5 k2 u5 c5 r20 a5")
	p, err := compact.Prepare(s.Path(), limits(5))
	if err != nil {
		t.Fatal(err)
	}
	model := faux.New(faux.Options{})
	model.Script(faux.Say("PREFIX"))
	result, err := compact.Run(t.Context(), p, options(model))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(result.Summary, "xxxxxxxx\n\n---\n\n") {
		t.Errorf("summary %q", result.Summary)
	}
}

func TestRunFails(t *testing.T) {
	for _, c := range []struct {
		name  string
		reply []faux.Response
		want  compact.Kind
		calls int
	}{
		{"final", []faux.Response{faux.Fail("invalid key")}, compact.Failed, 1},
		{"quota", []faux.Response{faux.Fail("insufficient_quota")}, compact.Failed, 1},
		{"transient to the end", []faux.Response{faux.Fail("overloaded"), faux.Fail("overloaded"), faux.Fail("overloaded"), faux.Fail("overloaded")}, compact.Failed, 4},
		{"cut", []faux.Response{faux.Message(&llm.Assistant{Content: []llm.Block{faux.Text("half")}, StopReason: llm.StopLength})}, compact.Truncated, 1},
		{"call", []faux.Response{faux.Reply(faux.Text("let me see"), faux.ToolCall("read", ""))}, compact.CalledTool, 1},
		{"empty", []faux.Response{faux.Reply(faux.Think("hm"), faux.Text(" \n"))}, compact.EmptySummary, 1},
		{"too long and short", []faux.Response{faux.Fail("prompt is too long")}, compact.TooLong, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			model := faux.New(faux.Options{})
			model.Script(c.reply...)
			result, err := compact.Run(t.Context(), history("a question"), options(model))
			checkKind(t, err, c.want)
			if result != nil || len(model.Requests()) != c.calls {
				t.Errorf("%d requests", len(model.Requests()))
			}
			if e, ok := errors.AsType[*compact.Error](err); !ok || e.Part != compact.Initial || e.Error() != "compact: "+e.Reason() {
				t.Errorf("%+v", err)
			}
		})
	}
	model := faux.New(faux.Options{})
	o := options(model)
	o.Stream = func(context.Context, *llm.Model, *llm.Request) (*llm.Stream, error) {
		return nil, &llm.KeyError{Provider: "p"}
	}
	_, err := compact.Run(t.Context(), history("x"), o)
	checkKind(t, err, compact.Failed)
	if _, ok := errors.AsType[*llm.KeyError](err); !ok {
		t.Errorf("the cause is gone: %v", err)
	}
	if e, _ := errors.AsType[*compact.Error](err); e.Part != "" {
		t.Errorf("no model answered, but a summary of the part %s failed", e.Part)
	}
	o.Stream = func(context.Context, *llm.Model, *llm.Request) (*llm.Stream, error) { return nil, nil }
	_, err = compact.Run(t.Context(), history("x"), o)
	checkKind(t, err, compact.Failed)
	_, err = compact.Run(t.Context(), history("x"), compact.Options{})
	checkKind(t, err, compact.Failed)
}

// TestTextOfAnAnswerThatMeantToCall: a reason to stop that no call follows says
// nothing about the summary.
func TestTextOfAnAnswerThatMeantToCall(t *testing.T) {
	model := faux.New(faux.Options{})
	model.Script(faux.Message(&llm.Assistant{Content: []llm.Block{faux.Text("SUM")}, StopReason: llm.StopToolUse}))
	if result, err := compact.Run(t.Context(), history("a question"), options(model)); err != nil || result.Summary != "SUM" {
		t.Errorf("%+v %v", result, err)
	}
}

func TestRetriesAreReported(t *testing.T) {
	model := faux.New(faux.Options{})
	model.Script(faux.Fail("overloaded"), faux.Fail("503"), faux.Say("S"))
	var steps []compact.Step
	var last compact.Progress
	o := options(model)
	o.Progress = func(p compact.Progress) {
		if p.Step != compact.StepText {
			steps = append(steps, p.Step)
		}
		if p.Step == compact.StepRetryScheduled {
			last = p
		}
	}
	result, err := compact.Run(t.Context(), history("x"), o)
	if err != nil || result.Summary != "S" {
		t.Fatal(err)
	}
	want := []compact.Step{
		compact.StepRequest, compact.StepRetryScheduled, compact.StepRetryStart,
		compact.StepRequest, compact.StepRetryScheduled, compact.StepRetryStart,
		compact.StepRequest, compact.StepRetryFinished, compact.StepReply,
	}
	if !slices.Equal(steps, want) {
		t.Errorf("steps %v", steps)
	}
	if last.Attempt != 2 || last.MaxAttempts != 3 || last.Err == nil || last.Err.Error() != "503" || last.Delay <= 0 {
		t.Errorf("%+v", last)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	for name, reply := range map[string]faux.Response{
		"in an answer":             faux.Hang(faux.Text("some words to begin with")),
		"in the wait for a retry":  faux.Fail("overloaded"),
		"in an answer with a text": faux.Say(strings.Repeat("words ", 500)),
	} {
		t.Run(name, func(t *testing.T) {
			model := faux.New(faux.Options{})
			model.Script(reply)
			ctx, cancel := context.WithCancelCause(t.Context())
			reason := errors.New("the user pressed escape")
			o := options(model)
			o.Retry.BaseDelay = time.Hour
			o.Retry.MaxDelay = time.Hour
			o.Progress = func(p compact.Progress) {
				if p.Step == compact.StepText || p.Step == compact.StepRetryScheduled {
					cancel(reason)
				}
			}
			_, err := compact.Run(ctx, history("x"), o)
			checkKind(t, err, compact.Aborted)
			if !errors.Is(err, reason) {
				t.Errorf("got %v", err)
			}
			before := len(model.Requests())
			_, err = compact.Run(ctx, history("x"), o)
			checkKind(t, err, compact.Aborted)
			if len(model.Requests()) != before {
				t.Error("a request went out after the end")
			}
		})
	}
}

func TestLongConversationsAreReadInPieces(t *testing.T) {
	// The model takes no more than so many bytes in a request.
	const most = 9000
	var long []agent.Message
	for range 20 {
		long = append(long, llm.UserText(strings.Repeat("question ", 200), 1))
	}
	for _, c := range []struct {
		name     string
		messages []agent.Message
		silent   bool
		window   int
	}{
		{name: "many messages", messages: long},
		{name: "one message", messages: []agent.Message{llm.UserText(strings.Repeat("é", 16000), 1)}},
		{name: "a long one among short ones", messages: []agent.Message{llm.UserText("a", 1), llm.UserText(strings.Repeat("b", 30000), 1), llm.UserText("c", 1)}},
		{name: "cut without a word", messages: long, silent: true, window: most},
		{name: "with a window that is known", messages: long, window: most / 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			model := faux.New(faux.Options{Models: []llm.Model{{ID: "m", ContextWindow: c.window, MaxTokens: 100}}})
			refused, n := 0, 0
			answer := func(_ context.Context, call faux.Call) (*llm.Assistant, error) {
				text := llm.TextOf(call.Request.Messages[1].(*llm.User).Content.Blocks, "")
				if len(text) > most {
					refused++
					if c.silent {
						return &llm.Assistant{Content: []llm.Block{faux.Text("bad")}, StopReason: llm.StopStop}, nil
					}
					return nil, errors.New("prompt is too long")
				}
				n++
				return &llm.Assistant{Content: []llm.Block{faux.Text("S" + string(rune('A'+n)))}, StopReason: llm.StopStop, Usage: llm.Usage{Input: 1}}, nil
			}
			for range 40 {
				model.Script(answer)
			}
			p := &compact.Preparation{History: c.messages}
			o := options(model)
			if c.silent {
				o.Stream = counting(model)
			}
			pieces := 0
			o.Progress = func(p compact.Progress) { pieces = max(pieces, p.Pieces) }
			result, err := compact.Run(t.Context(), p, o)
			if err != nil {
				t.Fatal(err)
			}
			if n < 2 || n != pieces || n > 16 || refused > 15 || c.silent && refused == 0 {
				t.Errorf("%d pieces told, %d read, %d refused", pieces, n, refused)
			}
			if want := "S" + string(rune('A'+n)); result.Summary != want {
				t.Errorf("the summary is %q, want the last one, %q", result.Summary, want)
			}
			var read strings.Builder
			first := true
			for _, text := range asked(model) {
				if len(text) > most {
					continue
				}
				conversation, rest, _ := strings.Cut(strings.TrimPrefix(text, "<conversation>\n"), "\n</conversation>\n\n")
				read.WriteString(conversation)
				if first != !strings.HasPrefix(rest, "<previous-summary>\nS") {
					t.Errorf("a piece does not go on where the one before ended: %s", rest)
				}
				first = false
			}
			clean := func(s string) string { return strings.ReplaceAll(s, "\n\n", "") }
			if clean(read.String()) != clean(compact.Serialize(c.messages)) {
				t.Error("the pieces are not the conversation")
			}
		})
	}
}

// counting is the model with a token a byte.
func counting(model *faux.API) agent.StreamFunc {
	return func(ctx context.Context, m *llm.Model, req *llm.Request) (*llm.Stream, error) {
		s, err := model.Stream(ctx, m, req)
		if err != nil {
			return nil, err
		}
		answer := *s.Result()
		answer.Usage = llm.Usage{Input: int64(len(llm.TextOf(req.Messages[1].(*llm.User).Content.Blocks, "")))}
		return llm.NewStream(&whole{&answer}), nil
	}
}

// whole is a stream of a single event.
type whole struct{ m *llm.Assistant }

func (w *whole) Next() (llm.Event, bool) {
	m := w.m
	w.m = nil
	return llm.Event{Type: llm.EventDone, Message: m}, m != nil
}

func (*whole) Close() {}

func TestPiecesHaveAnEnd(t *testing.T) {
	model := faux.New(faux.Options{})
	for range 100 {
		model.Script(faux.Fail("prompt is too long"))
	}
	_, err := compact.Run(t.Context(), history(strings.Repeat("x", 1<<20)), options(model))
	checkKind(t, err, compact.TooLong)
	if n := len(model.Requests()); n > 32 {
		t.Errorf("%d requests", n)
	}
	// One that takes only crumbs is not fed for ever.
	model = faux.New(faux.Options{})
	for range 200 {
		model.Script(func(_ context.Context, call faux.Call) (*llm.Assistant, error) {
			if len(llm.TextOf(call.Request.Messages[1].(*llm.User).Content.Blocks, "")) > 9000 {
				return nil, errors.New("prompt is too long")
			}
			return &llm.Assistant{Content: []llm.Block{faux.Text("S")}, StopReason: llm.StopStop}, nil
		})
	}
	_, err = compact.Run(t.Context(), history(strings.Repeat("x", 1<<20)), options(model))
	checkKind(t, err, compact.TooLong)
	if n := len(model.Requests()); n > 32 {
		t.Errorf("%d requests", n)
	}
	// A service that counts more than its window and answers nevertheless is
	// believed in the end.
	model = faux.New(faux.Options{Models: []llm.Model{{ID: "m", ContextWindow: 10}}})
	model.Script(faux.Message(&llm.Assistant{Content: []llm.Block{faux.Text("S")}}))
	result, err := compact.Run(t.Context(), history("x"), options(model))
	if err != nil || result.Summary != "S" || result.Usage.Input <= 10 {
		t.Errorf("%v, %v", result, err)
	}
}

func TestPiecesOfATurnAndABranch(t *testing.T) {
	long := []agent.Message{llm.UserText(strings.Repeat("a", 5000), 1)}
	for part, run := range map[compact.Part]func(compact.Options) (string, error){
		compact.TurnPrefix: func(o compact.Options) (string, error) {
			r, err := compact.Run(t.Context(), &compact.Preparation{TurnPrefix: long, PreviousSummary: "OLD"}, o)
			if err != nil {
				return "", err
			}
			return r.Summary, nil
		},
		compact.Branch: func(o compact.Options) (string, error) {
			r, err := compact.RunBranch(t.Context(), &compact.BranchPreparation{Messages: long}, o)
			if err != nil {
				return "", err
			}
			return r.Summary, nil
		},
	} {
		t.Run(string(part), func(t *testing.T) {
			model := faux.New(faux.Options{})
			model.Script(faux.Fail("prompt is too long"), faux.Say("ONE"), faux.Say("BOTH"))
			summary, err := run(options(model))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(summary, "\n\nBOTH") {
				t.Errorf("summary %q", summary)
			}
			last := asked(model)[2]
			if !strings.Contains(last, "<previous-summary>\nONE\n</previous-summary>\n\n"+compact.Instructions(part)+"\n\n") {
				t.Errorf("asked %s", last)
			}
		})
	}
}

// A summary of a model with a larger window is not put beside the conversation,
// where nothing would fit next to it.
func TestPreviousSummaryLongerThanTheWindow(t *testing.T) {
	const window = 3000
	previous := strings.Repeat("known ", 8*window/6) // 2 windows
	for name, p := range map[string]*compact.Preparation{
		"with history":        {History: []agent.Message{llm.UserText("a question", 1)}, PreviousSummary: previous},
		"with a split turn":   {TurnPrefix: []agent.Message{llm.UserText("a question", 1)}, PreviousSummary: previous},
		"with nothing at all": {PreviousSummary: previous},
	} {
		t.Run(name, func(t *testing.T) {
			model := faux.New(faux.Options{Models: []llm.Model{{ID: "m", ContextWindow: window, MaxTokens: 100}}})
			for range 16 {
				model.Script(faux.Say("S"))
			}
			result, err := compact.Run(t.Context(), p, options(model))
			if err != nil {
				t.Fatal(err)
			}
			if len(result.Summary) > 200 || !strings.HasPrefix(result.Summary, "S") {
				t.Errorf("summary %q", result.Summary)
			}
			read := 0
			for _, text := range asked(model) {
				if len(text)/4 > window {
					t.Errorf("asked with %d tokens", len(text)/4)
				}
				read += strings.Count(text, "known ")
			}
			if read < 8*window/6-16 { // a piece may end inside a word
				t.Errorf("%d words were read", read)
			}
		})
	}
}

func TestOversizedSummary(t *testing.T) {
	for size, want := range map[int]compact.Kind{2003: "", 2004: compact.Oversized} {
		model := faux.New(faux.Options{Models: []llm.Model{{ID: "m", ContextWindow: 1000, MaxTokens: 1000}}})
		model.Script(faux.Say(strings.Repeat("x", size)))
		_, err := compact.Run(t.Context(), history("x"), options(model))
		if want == "" && err != nil || want != "" && !errors.Is(err, &compact.Error{Kind: want}) {
			t.Errorf("%d characters: %v", size, err)
		}
	}
}

func TestPrepareAllAndHalf(t *testing.T) {
	s := sketch(t, "u300 a300 u300 a300")
	recent := limits(5000)
	_, err := compact.Prepare(s.Path(), recent)
	checkKind(t, err, compact.NothingToCompact)
	p, err := compact.PrepareHalf(s.Path(), recent)
	if err != nil || len(p.History) != 2 {
		t.Errorf("%+v, %v", p, err)
	}
	p, err = compact.PrepareAll(s.Path(), recent)
	if err != nil || len(p.History) != 0 || p.FirstKept != s.Path()[0].ID {
		t.Fatalf("%+v, %v", p, err)
	}
	model := faux.New(faux.Options{})
	model.Script(faux.Say("S"))
	if result, err := compact.Run(t.Context(), p, options(model)); err != nil || result.Summary != "S" || !strings.HasPrefix(asked(model)[0], "<conversation>\n\n</conversation>\n\n") {
		t.Errorf("%+v, %v", result, err)
	}
	small := sketch(t, "u100 a100")
	_, err = compact.PrepareHalf(small.Path(), recent)
	checkKind(t, err, compact.NothingToCompact)
	_, err = compact.PrepareAll(sketch(t, "").Path(), recent)
	checkKind(t, err, compact.NothingToCompact)
}

func TestSettingsForSmallWindows(t *testing.T) {
	for _, c := range []struct{ window, reserve, keep int64 }{
		{0, compact.DefaultReserveTokens, compact.DefaultKeepRecentTokens},
		{200_000, compact.DefaultReserveTokens, compact.DefaultKeepRecentTokens},
		{32_768, compact.DefaultReserveTokens, 8192},
		{16_384, 8192, 4096},
		{8192, 4096, 2048},
	} {
		l := compact.Settings{}.For(&llm.Model{ContextWindow: int(c.window)})
		if l.ReserveTokens != c.reserve || l.KeepRecentTokens != c.keep {
			t.Errorf("of %d tokens %d are reserved and %d kept", c.window, l.ReserveTokens, l.KeepRecentTokens)
		}
	}
}
