package conformance

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/compact"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/jsonl"
)

// Overflow storms: a whole harness over a real wire format and a session file,
// with a service that refuses what is too long for it in its vendor's words.

// stormAsked is one request as the service sees it.
type stormAsked struct {
	tokens  int // four bytes of the body each
	summary bool
	refused bool
}

// storm is a conversation with a service.
type storm struct {
	*scenarioCell
	*harness.Harness
	file string
	ends []harness.Event // of compactions

	mu        sync.Mutex
	window    int // in tokens; requests above are refused
	reply     func(a stormAsked) scenarioReply
	asked     []stormAsked
	uncounted bool // the service says nothing about usage
	words     int  // which of the vendor's words come next
	peakHeap  uint64
}

// newStorm makes one; o lacks only what the storm gives.
func newStorm(t *testing.T, d *scenarioDialect, window int, o harness.Options) *storm {
	t.Helper()
	s := newStormService(t, d, window)
	s.open(o)
	return s
}

// newStormService makes a storm without its harness.
func newStormService(t *testing.T, d *scenarioDialect, window int) *storm {
	t.Helper()
	before := goleak.IgnoreCurrent()
	s := &storm{scenarioCell: newScenarioCell(t, d), window: window, file: filepath.Join(t.TempDir(), "storm.jsonl")}
	s.server.next = s.serve
	t.Cleanup(func() {
		if s.Harness != nil {
			_ = s.Close() // again
		}
		s.close()
		if err := goleak.Find(before); err != nil {
			t.Errorf("something is left: %v", err)
		}
	})
	return s
}

// session opens the file of the session.
func (s *storm) session() *session.Session {
	s.Helper()
	sess, err := jsonl.Open(s.file, jsonl.Options{Options: session.Options{CWD: "/srv/demo"}})
	if err != nil {
		s.Fatal(err)
	}
	return sess
}

func (s *storm) open(o harness.Options) {
	s.Helper()
	o.Model, o.Session, o.Request.APIKey = s.named("", s.window), s.session(), s.key
	o.Stream, o.Retry.BaseDelay = llm.NewRegistry(s.format).Stream, time.Microsecond
	var err error
	if s.Harness, err = harness.New(o); err != nil {
		s.Fatal(err)
	}
	s.Subscribe(func(_ context.Context, ev harness.Event) error {
		if ev.Type == harness.CompactionEnd {
			s.ends = append(s.ends, ev)
		}
		return nil
	})
}

// named is a model of the service with a name and a window of its own.
func (s *storm) named(name string, window int) *llm.Model {
	m := s.target()
	m.ID, m.ContextWindow, m.MaxTokens, m.Reasoning = m.ID+name, window, 8000, false
	return m
}

// serve answers a request.
func (s *storm) serve(req scenarioRequest) scenarioReply {
	body, err := unpacked(req.header, req.body)
	if err != nil {
		s.Error(err)
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peakHeap = max(s.peakHeap, mem.HeapAlloc)
	text := string(body)
	a := stormAsked{tokens: len(text) / 4, summary: strings.Contains(text, "conversation>\\n") && !strings.Contains(text, `"big"`)}
	a.refused = a.tokens > s.window
	reply := s.refuse()
	if !a.refused {
		reply = s.reply(a)
		a.refused = reply.status == 400 || reply.status == 413
	}
	s.asked = append(s.asked, a)
	return reply
}

// refuse is the next of the vendor's answers to a request that is too long.
func (s *storm) refuse() scenarioReply {
	s.words++
	return s.overflow[s.words%len(s.overflow)].response()
}

func (s *storm) says(a stormAsked, texts ...string) scenarioReply {
	return s.response(&scenarioAnswer{text: texts, stop: llm.StopStop, usage: s.usage(a)})
}

func (s *storm) usage(a stormAsked) scenarioUsage {
	if s.uncounted {
		return scenarioUsage{}
	}
	return scenarioUsage{input: int64(a.tokens), output: 9}
}

// calls answers with n calls of the tool big.
func (s *storm) calls(a stormAsked, n int) scenarioReply {
	out := &scenarioAnswer{stop: llm.StopToolUse, usage: s.usage(a)}
	for i := range n {
		call := scenarioCall{name: "big", args: fmt.Sprintf(`{"path":"f%d"}`, i)}
		if len(s.ids) > 0 {
			id := s.ids[0]
			tail := fmt.Sprintf("%04d%04d", len(s.asked)%10000, i)
			call.id = id[:len(id)-min(8, len(id)/2)] + tail[8-min(8, len(id)/2):]
		}
		out.calls = append(out.calls, call)
	}
	return s.response(out)
}

// take gives what was asked since the last take.
func (s *storm) take() []stormAsked {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.asked
	s.asked = nil
	return out
}

func (s *storm) answers(reply func(a stormAsked) scenarioReply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reply = reply
}

// ended gives the ends of compactions since the last call.
func (s *storm) ended() []harness.Event {
	out := s.ends
	s.ends = nil
	return out
}

// usable checks that the session answers a prompt on another model, and is the
// same when its file is read again.
func (s *storm) usable() {
	s.Helper()
	s.answers(func(a stormAsked) scenarioReply { return s.says(a, "back again") })
	s.mu.Lock()
	s.window = 1 << 40
	s.mu.Unlock()
	if err := s.SetModel(s.named("-large", 100_000_000)); err != nil {
		s.Fatal(err)
	}
	s.take()
	m, err := s.Prompt(s.Context(), "go on")
	if err != nil || m.StopReason != llm.StopStop || llm.TextOf(m.Content, "") != "back again" || s.Phase() != harness.PhaseIdle {
		s.Fatalf("the session goes on with %+v, %v, %s", m, err, s.Phase())
	}
	if n := len(s.take()); n != 1 {
		s.Errorf("%d requests for an answer", n)
	}
	want, leaf := s.Session().Context().Messages, s.Session().LeafID()
	if err := s.Close(); err != nil {
		s.Fatal(err)
	}
	again := s.session()
	defer again.Close()
	got := again.Context().Messages
	if again.LeafID() != leaf || !slices.EqualFunc(got, want, func(a, b agent.Message) bool {
		return a.Role() == b.Role() && session.Tokens(a) == session.Tokens(b)
	}) {
		s.Errorf("the file has %d messages, the session %d", len(got), len(want))
	}
}

func bigTool(text func() string) *agent.Tool {
	t := &agent.Tool{Execute: func(context.Context, agent.Call) (agent.Result, error) { return agent.TextResult(text()), nil }}
	t.Name, t.Description = "big", "Reads much."
	t.Parameters = jsontext.Value(`{"type":"object","properties":{"path":{"type":"string"}}}`)
	return t
}

// A model that always says that the request is too long. A prompt costs at most
// the request, one compaction and one more request; then the person is told.
func TestStormAlwaysOverflows(t *testing.T) {
	long := strings.Repeat("word ", 400)
	for _, d := range scenarioDialects() {
		for _, all := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/summaries too %v", d.api, all), func(t *testing.T) {
				s := newStorm(t, d, 100_000, harness.Options{
					Tools:      []*agent.Tool{bigTool(func() string { return "a result" })},
					Compaction: compact.Settings{KeepRecentTokens: new(int64(50))},
				})
				s.answers(func(a stormAsked) scenarioReply { return s.says(a, long) })
				for _, text := range []string{"one", "two"} {
					if m, err := s.Prompt(t.Context(), text); err != nil || m.StopReason != llm.StopStop {
						t.Fatal(m, err)
					}
				}
				s.take()
				storm := func(a stormAsked) scenarioReply {
					if a.summary && !all {
						return s.says(a, "a summary")
					}
					return s.refuse()
				}
				called := false
				s.answers(func(a stormAsked) scenarioReply {
					if !called {
						called = true
						return s.calls(a, 1)
					}
					return storm(a)
				})
				for i, want := range []struct{ requests, summaries int }{
					// The call, the refusal; then one summary that is refused, or two
					// and another refusal. After that there is nothing left to sum up.
					map[bool]struct{ requests, summaries int }{true: {3, 1}, false: {5, 2}}[all],
					map[bool]struct{ requests, summaries int }{true: {2, 1}, false: {1, 0}}[all],
				} {
					m, err := s.Prompt(t.Context(), "three")
					if err != nil || m == nil || m.StopReason != llm.StopError || !llm.IsContextOverflow(m, 0) {
						t.Fatalf("answer %+v, %v", m, err)
					}
					asked, summaries := s.take(), 0
					for _, a := range asked {
						if a.summary {
							summaries++
						}
					}
					if len(asked) != want.requests || summaries != want.summaries {
						t.Errorf("prompt %d: %d requests with %d summaries, want %+v", i, len(asked), summaries, want)
					}
					ends := s.ended()
					if last := ends[len(ends)-1]; last.WillRetry || !strings.Contains(last.ErrorMessage, "larger context window") {
						t.Errorf("prompt %d: the person is told %q", i, last.ErrorMessage)
					}
				}
				s.usable()
			})
		}
	}
}

// stormSummary is a way in which a model fails to write a summary.
type stormSummary struct {
	name  string
	reply func(s *storm, a stormAsked) scenarioReply
	kind  compact.Kind
	tries int // requests
}

func stormSummaries() []stormSummary {
	answer := func(out scenarioAnswer) func(*storm, stormAsked) scenarioReply {
		return func(s *storm, a stormAsked) scenarioReply {
			out.usage = scenarioUsage{input: int64(a.tokens), output: 9}
			return s.response(&out)
		}
	}
	return []stormSummary{
		{"half of the window", answer(scenarioAnswer{text: []string{strings.Repeat("sum ", 60_000)}, stop: llm.StopStop}), compact.Oversized, 1},
		{"cut at the output limit", answer(scenarioAnswer{text: []string{"half"}, stop: llm.StopLength}), compact.Truncated, 1},
		{"nothing", answer(scenarioAnswer{stop: llm.StopStop}), compact.EmptySummary, 1},
		{"blanks", answer(scenarioAnswer{text: []string{" \n", "\t"}, stop: llm.StopStop}), compact.EmptySummary, 1},
		{"only thoughts", answer(scenarioAnswer{thinking: scenarioThought, stop: llm.StopStop}), compact.EmptySummary, 1},
		{"a call", func(s *storm, a stormAsked) scenarioReply { return s.calls(a, 1) }, compact.CalledTool, 1},
		{"a failure in the stream", func(s *storm, a stormAsked) scenarioReply {
			r := s.begun(s.answer(), "")
			r.pieces = append(r.pieces, s.encode(s.inside[0].event))
			return r
		}, compact.Failed, 4},
		{"a stream that breaks", func(s *storm, a stormAsked) scenarioReply { return s.begun(s.answer(), "cut") }, compact.Failed, 4},
		{"a refused key", func(s *storm, a stormAsked) scenarioReply { f := s.failures["key"]; return f.response() }, compact.Failed, 1},
		{"silence until it is aborted", func(s *storm, a stormAsked) scenarioReply {
			go func() {
				s.AbortCompaction()
				s.AbortBranchSummary()
			}()
			return s.begun(s.answer(), "hang")
		}, compact.Aborted, 1},
	}
}

// A summary model that answers nonsense or nothing: an error with a kind, the
// conversation as it was, and a compaction that works once the model does. The
// same in the middle of a run ends nothing but the compaction.
func TestStormOfBadSummaries(t *testing.T) {
	long := strings.Repeat("word ", 400)
	for _, d := range []*scenarioDialect{scenarioAnthropic(), scenarioCompletions(), scenarioResponses(), scenarioGoogle()} {
		for _, c := range stormSummaries() {
			t.Run(d.api+"/"+c.name, func(t *testing.T) {
				s := newStorm(t, d, 100_000, harness.Options{Compaction: compact.Settings{KeepRecentTokens: new(int64(50))}})
				s.answers(func(a stormAsked) scenarioReply { return s.says(a, long) })
				answered := ""
				for _, text := range []string{"one", "two"} {
					if m, err := s.Prompt(t.Context(), text); err != nil || m.StopReason != llm.StopStop {
						t.Fatal(m, err)
					}
					if answered == "" {
						answered = s.Session().LeafID()
					}
				}
				s.take()
				entries, messages := len(s.Session().Entries()), s.Messages()
				s.answers(func(a stormAsked) scenarioReply { return c.reply(s, a) })
				_, err := s.Compact(t.Context(), "")
				e, ok := errors.AsType[*harness.Error](err)
				if !ok || e.Kind != harness.KindCompaction || !errors.Is(err, &compact.Error{Kind: c.kind}) {
					t.Errorf("error %v, want %s", err, c.kind)
				}
				if n := len(s.take()); n != c.tries {
					t.Errorf("%d requests, want %d", n, c.tries)
				}
				if len(s.Session().Entries()) != entries || !slices.Equal(s.Messages(), messages) || s.Phase() != harness.PhaseIdle {
					t.Error("the conversation is another one")
				}
				ends := s.ended()
				if len(ends) != 1 || ends[0].Aborted != (c.kind == compact.Aborted) || ends[0].Aborted == (ends[0].ErrorMessage != "") {
					t.Errorf("told %+v", ends)
				}
				// Of a branch.
				leaf := s.Session().LeafID()
				moved, err := s.NavigateTree(t.Context(), answered, harness.TreeOptions{Summarize: true})
				if c.kind == compact.Aborted {
					if err != nil || !moved.Aborted {
						t.Errorf("moved %+v, %v", moved, err)
					}
				} else if e, ok := errors.AsType[*harness.Error](err); !ok || e.Kind != harness.KindBranchSummary || !errors.Is(err, &compact.Error{Kind: c.kind}) {
					t.Errorf("error %v, want %s", err, c.kind)
				}
				if n := len(s.take()); n != c.tries || s.Session().LeafID() != leaf || len(s.Session().Entries()) != entries {
					t.Errorf("%d requests, want %d, at %s", n, c.tries, s.Session().LeafID())
				}
				// By itself, for a request that does not fit.
				refused := false
				s.answers(func(a stormAsked) scenarioReply {
					if a.summary {
						return c.reply(s, a)
					}
					refused = true
					return s.refuse()
				})
				m, err := s.Prompt(t.Context(), "three")
				if err != nil || m == nil || !llm.IsContextOverflow(m, 0) || !refused {
					t.Errorf("answer %+v, %v", m, err)
				}
				if n := len(s.take()); n != c.tries+1 {
					t.Errorf("%d requests, want %d", n, c.tries+1)
				}
				s.answers(func(a stormAsked) scenarioReply { return s.says(a, "a summary") })
				if made, err := s.Compact(t.Context(), ""); err != nil || !strings.Contains(made.Summary, "a summary") {
					t.Error(made, err)
				}
				s.usable()
			})
		}
	}
}

// A conversation that is too long for one summary: it is read in pieces that
// become smaller until the model takes them, at most 16; one that takes none
// ends it.
func TestStormOfLongSummaries(t *testing.T) {
	for _, d := range []*scenarioDialect{scenarioAnthropic(), scenarioCompletions()} {
		for _, c := range []struct {
			name          string
			limit         int // of the service for summaries, in tokens; 0 for none that is taken
			known         bool
			most, refused int // requests
			fails         bool
		}{
			{name: "until they are small enough", limit: 12_000, most: 31, refused: 15},
			{name: "a window that is known", limit: 12_000, known: true, most: 16},
			{name: "none is small enough", most: 31, refused: 31, fails: true},
		} {
			t.Run(d.api+"/"+c.name, func(t *testing.T) {
				s := newStorm(t, d, 1_000_000, harness.Options{Compaction: compact.Settings{KeepRecentTokens: new(int64(50))}})
				long := strings.Repeat("word ", 4000) // 5000 tokens
				s.answers(func(a stormAsked) scenarioReply { return s.says(a, long) })
				for range 16 {
					if m, err := s.Prompt(t.Context(), "more"); err != nil || m.StopReason != llm.StopStop {
						t.Fatal(m, err)
					}
				}
				s.take()
				s.answers(func(a stormAsked) scenarioReply {
					if !a.summary || a.tokens <= c.limit {
						return s.says(a, "a summary")
					}
					return s.refuse()
				})
				if c.known {
					if err := s.SetModel(s.named("-small", c.limit)); err != nil {
						t.Fatal(err)
					}
				}
				made, err := s.Compact(t.Context(), "")
				asked, refused := s.take(), 0
				for _, a := range asked {
					if a.refused {
						refused++
					}
				}
				t.Logf("%d requests, %d refused, %v", len(asked), refused, err)
				if len(asked) > c.most || refused > c.refused || (err != nil) != c.fails || c.fails != errors.Is(err, &compact.Error{Kind: compact.TooLong}) {
					t.Errorf("%d requests, %d refused: %v, %v", len(asked), refused, made, err)
				}
				if c.fails && !strings.Contains(err.Error(), "larger context window") {
					t.Error(err)
				}
				s.usable()
			})
		}
	}
}

// stormOutput is much output of tools in one session.
type stormOutput struct {
	name         string
	results      int // of one call each
	calls        int // in one answer, where that is not 1
	size         int // of a result in bytes
	without      bool
	afterwards   bool // it grows without compaction, which is then switched on
	longs, sizes int  // results and size of the long proof
}

// 50 MB of output of tools: no request is longer than the window, no more than
// three compactions in a row make no room, and the session goes on.
func TestStormOfOutput(t *testing.T) {
	const window = 128_000
	for _, d := range []*scenarioDialect{scenarioAnthropic(), scenarioCompletions()} {
		for _, c := range []stormOutput{
			{name: "many results", results: 60, calls: 1, size: 50_000, longs: 1000, sizes: 50_000},
			{name: "many results, uncounted", results: 40, calls: 1, size: 50_000, longs: 1000, sizes: 50_000, without: true},
			{name: "one result", results: 1, calls: 1, size: 2_000_000, longs: 1, sizes: 20_000_000},
			{name: "many calls", results: 1, calls: 200, size: 15_000, longs: 1, sizes: 250_000},
			{name: "opened with it", results: 60, calls: 1, size: 50_000, longs: 1000, sizes: 50_000, afterwards: true},
		} {
			t.Run(d.api+"/"+c.name, func(t *testing.T) {
				if *long {
					c.results, c.size = c.longs, c.sizes
				}
				output := 0
				result := strings.Repeat("a line of output\n", c.size/17+1)[:c.size]
				s := newStormService(t, d, window)
				s.uncounted = c.without
				rounds := 0
				if c.afterwards {
					s.grow(c, result)
					rounds, output = c.results, c.results*c.size
				}
				s.open(harness.Options{
					Tools: []*agent.Tool{bigTool(func() string { output += c.size; return strings.Clone(result) })}, Execution: agent.Sequential,
				})
				begun := time.Now()
				s.answers(func(a stormAsked) scenarioReply {
					switch {
					case a.summary:
						return s.says(a, strings.Repeat("What was done. ", 100))
					case rounds < c.results:
						rounds++
						return s.calls(a, c.calls)
					}
					return s.says(a, "done")
				})
				m, err := s.Prompt(t.Context(), "read it all")
				if err != nil || m.StopReason != llm.StopStop || llm.TextOf(m.Content, "") != "done" {
					t.Errorf("answer %+v, %v", m, err)
				}
				asked := s.take()
				refused, summaries, largest, sent := 0, 0, 0, 0
				for _, a := range asked {
					if sent += a.tokens * 4; a.refused {
						refused++
					}
					if a.summary {
						summaries++
					}
					largest = max(largest, a.tokens)
				}
				made, futile, worst := 0, 0, 0
				for _, ev := range s.ended() {
					switch {
					case ev.ErrorMessage != "":
						t.Errorf("a compaction ended with %s", ev.ErrorMessage)
					case ev.Compacted.TokensAfter >= ev.Compacted.TokensBefore || ev.Compacted.TokensAfter > window:
						futile++
					default:
						futile = 0
					}
					made++
					worst = max(worst, futile)
				}
				if refused > 0 || worst > 3 || made == 0 {
					t.Errorf("%d of %d requests refused, %d compactions, %d in a row without room", refused, len(asked), made, worst)
				}
				// The session holds the output in memory; a request a window's worth.
				if most := uint64(10*output + 200_000_000); s.peakHeap > most {
					t.Errorf("the heap grew to %d bytes, more than %d", s.peakHeap, most)
				}
				t.Logf("%.1f MB of output: %d requests (%d of them for %d summaries), at most %d tokens, %.1f MB sent, heap at most %.0f MB, %.1f s",
					float64(output)/1e6, len(asked), summaries, made, largest, float64(sent)/1e6, float64(s.peakHeap)/1e6, time.Since(begun).Seconds())
				s.usable()
			})
		}
	}
}

// grow makes the conversation of a session that was never compacted.
func (s *storm) grow(c stormOutput, result string) {
	s.Helper()
	sess, m := s.session(), s.target()
	add := func(m agent.Message) {
		if _, err := sess.AppendMessage(m); err != nil {
			s.Fatal(err)
		}
	}
	add(llm.UserText("begin", 1))
	for i := range c.results {
		id := fmt.Sprintf("toolu_%08d", i)
		add(&llm.Assistant{
			Content: []llm.Block{&llm.ToolCall{ID: id, Name: "big", Arguments: jsontext.Value(`{}`)}}, API: m.API, Provider: m.Provider, Model: m.ID,
			StopReason: llm.StopToolUse, Timestamp: 1,
		})
		add(&llm.ToolResult{ToolCallID: id, ToolName: "big", Content: []llm.Block{&llm.Text{Text: strings.Clone(result)}}, Timestamp: 1})
	}
	if err := sess.Close(); err != nil {
		s.Fatal(err)
	}
}
