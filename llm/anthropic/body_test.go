package anthropic_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/anthropic"
)

// history is a conversation of about n messages with everything that is sent
// in some way of its own: empty messages, changes of the prompt, pictures,
// failed and late results, answers of other models.
func history(r *rand.Rand, n int) []llm.Message {
	text := func() string {
		return []string{"", " ", "plain", "two\n\"lines\"", "half \xed\xa0\xbd", strings.Repeat("long \\ ", 40)}[r.IntN(6)]
	}
	blocks := func() (list []llm.Block) {
		for range r.IntN(3) {
			list = append(list, &llm.Text{Text: text()})
			if r.IntN(4) == 0 {
				list = append(list, &llm.Image{Data: "AAAA", MimeType: "image/png"})
			}
		}
		return list
	}
	answer := func(i int, content ...llm.Block) *llm.Assistant {
		m := &llm.Assistant{API: testModel.API, Provider: testModel.Provider, Model: testModel.ID, StopReason: llm.StopStop, Timestamp: int64(i), Content: content}
		if r.IntN(6) == 0 {
			m.Model = "another"
		}
		if r.IntN(6) == 0 {
			m.ProviderThinkingLevel = "low"
		}
		return m
	}
	list := []llm.Message{&llm.System{Content: llm.Plain("be brief")}}
	for i := len(list); i < n; i++ {
		switch r.IntN(7) {
		case 0:
			list = append(list, &llm.User{Content: llm.Plain(text()), Timestamp: int64(i)})
		case 1:
			list = append(list, &llm.User{Content: llm.Blocks(blocks()...), Timestamp: int64(i)})
		case 2:
			list = append(list, &llm.System{Sections: []llm.Section{{Name: fmt.Sprint("s", i), Text: text()}}, Timestamp: int64(i)})
		case 3:
			list = append(list, answer(i, &llm.Thinking{Thinking: text(), Signature: new("sig")}, &llm.Text{Text: text()}))
		case 4:
			list = append(list, answer(i, &llm.Text{Text: text()}))
		default:
			var calls []llm.Block
			var results []llm.Message
			for k := range 1 + r.IntN(3) {
				id := fmt.Sprintf("call|%d_%d", i, k)
				calls = append(calls, &llm.ToolCall{ID: id, Name: "read", Arguments: jsontext.Value(`{"path": "a\u0062", "n":1.0}`)})
				if r.IntN(5) > 0 {
					results = append(results, &llm.ToolResult{ToolCallID: id, ToolName: "read", Content: blocks(), IsError: r.IntN(3) == 0, Timestamp: int64(i)})
				}
			}
			m := answer(i, calls...)
			m.StopReason = llm.StopToolUse
			list = append(append(list, m), results...)
		}
	}
	return list
}

// A body is the same whether its messages were encoded before, while it was
// written, or one by one as they came; and being sent changes nothing of what
// is stored.
func TestBodyIsTheSameHoweverItIsMade(t *testing.T) {
	thinking := llm.LevelHigh
	models := map[string]string{
		"collapsed": `{}`,
		"in place":  `{"supportsMidConvoSystemMessages":true}`,
		"effort":    `{"supportsMidConvoSystemMessages":true,"supportsMidConvoEffort":true}`,
		"threads":   `{"supportsMessageThreads":true}`,
	}
	for name, compat := range models {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(12) {
				model := *testModel
				model.Compat, model.Reasoning = jsontext.Value(compat), true
				all := history(rand.New(rand.NewPCG(seed, 1)), 200)
				body := func(memo *llm.Memo, n int, untouched bool) string {
					client := &served{body: deltas(1)}
					req := &llm.Request{Messages: all[:n], Options: llm.Options{
						APIKey: "key", Client: &http.Client{Transport: client}, Memo: memo, Reasoning: thinking, SessionID: "s",
					}}
					if untouched { // who may see the body may change it, so that nothing shares it
						req.OnPayload = func(jsontext.Value, *llm.Model) (jsontext.Value, error) { return nil, nil }
					}
					// A new API each time: none goes on with a thread of the server.
					if m := result(t, anthropic.New(anthropic.Config{}), &model, req); m.StopReason != llm.StopStop {
						t.Fatal(m.ErrorMessage)
					}
					return client.seen[0]
				}
				var shared, grown llm.Memo
				for n := 1; n <= len(all); n += 1 + len(all)/7 {
					body(&grown, n, true)
				}
				half, n := len(all)*2/3, len(all)
				for step, got := range []struct {
					body string
					n    int
				}{
					{body(&shared, half, false), half}, // encodes while it writes
					{body(&shared, half, false), half}, // copies
					{body(&shared, n, false), n},       // copies and encodes the rest
					{body(&shared, half, false), half},
					{body(&grown, n, true), n},
				} {
					if want := body(nil, got.n, true); got.body != want {
						t.Fatalf("seed %d, step %d:\n got %s\nwant %s", seed, step, got.body, want)
					}
				}
			}
		})
	}
}
