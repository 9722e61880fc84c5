package mistral

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/pinch-agent/pinch/internal/wire/wiretest"
	"github.com/pinch-agent/pinch/llm"
)

func testModel() *llm.Model {
	return &llm.Model{
		ID: "m-1", API: ID, Provider: "mistral", BaseURL: "http://service.test", Reasoning: true,
		Input: []string{"text", "image"}, ContextWindow: 128000, MaxTokens: 16000,
		Cost: llm.Rates{Input: 1, Output: 4, CacheRead: 0.1},
	}
}

// deltas is chunks of the kinds that make up long answers.
func deltas() map[string]wiretest.Deltas {
	chunk := func(delta string) wiretest.Deltas {
		return wiretest.Deltas{Event: `data: {"id":"7e0f5e1c2b","object":"chat.completion.chunk","created":1750000000,"model":"m-1",` +
			`"choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}],"p":"abcdefghijklm"}` + "\n\n"}
	}
	return map[string]wiretest.Deltas{
		"text":     chunk(`{"content":" the tide turns at \"noon\""}`),
		"parts":    chunk(`{"content":[{"type":"text","text":" the tide turns at noon"}]}`),
		"thinking": chunk(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":" the tide turns at noon"}]}]}`),
		"tool":     chunk(`{"tool_calls":[{"id":"abcdefghi","function":{"name":"write","arguments":"\\n the tide"},"index":0}]}`),
	}
}

func openDeltas(t testing.TB, client *http.Client) *llm.Stream {
	t.Helper()
	s, err := New(Config{Client: client, Getenv: wiretest.NoEnv}).Stream(context.Background(), testModel(), hello())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func BenchmarkMistralDelta(b *testing.B) { wiretest.BenchmarkDeltas(b, deltas(), openDeltas) }

func TestDeltaAllocatesNothing(t *testing.T) { wiretest.DeltasAllocateNothing(t, deltas(), openDeltas) }

func BenchmarkTurn(b *testing.B) {
	for _, turns := range []int{10, 1000} {
		b.Run(fmt.Sprint(turns), func(b *testing.B) {
			build := turn(b, turns)
			build()
			b.ReportAllocs()
			for b.Loop() {
				build()
			}
		})
	}
}

// turn builds the body of one turn of a conversation again and again.
func turn(tb testing.TB, turns int) func() {
	m := testModel()
	all := conversation(m, turns)
	a := New(Config{Getenv: wiretest.NoEnv})
	memo := &llm.Memo{}
	return func() {
		if _, err := a.exchange(m, &llm.Request{Messages: all, Options: llm.Options{APIKey: "k", Memo: memo}}).body(); err != nil {
			tb.Fatal(err)
		}
	}
}
