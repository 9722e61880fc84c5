package pimessages

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
		ID: "m-1", API: ID, Provider: "radius", BaseURL: "http://backend.test/v1", Reasoning: true,
		Input: []string{"text", "image"}, ContextWindow: 128000, MaxTokens: 16000,
	}
}

func deltas() map[string]wiretest.Deltas {
	kinds := map[string]wiretest.Deltas{}
	for _, kind := range []string{"text", "thinking", "toolcall"} {
		event := fmt.Sprintf(`{"type":"%s_delta","contentIndex":0,"delta":" the tide turns at \"noon\""}`, kind)
		kinds[kind] = wiretest.Deltas{Start: sse(`{"type":"start"}`, start(kind, 0)), Event: sse(event)}
	}
	return kinds
}

func openDeltas(t testing.TB, client *http.Client) *llm.Stream {
	t.Helper()
	s, err := New(Config{Client: client, Getenv: wiretest.NoEnv}).Stream(context.Background(), testModel(), hello())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func BenchmarkPiMessagesDelta(b *testing.B) { wiretest.BenchmarkDeltas(b, deltas(), openDeltas) }

func TestDeltaAllocatesNothing(t *testing.T) { wiretest.DeltasAllocateNothing(t, deltas(), openDeltas) }

func BenchmarkTurn(b *testing.B) {
	for _, turns := range []int{10, 1000} {
		b.Run(fmt.Sprint(turns), func(b *testing.B) {
			build := turn(turns)
			build()
			b.ReportAllocs()
			for b.Loop() {
				build()
			}
		})
	}
}

// turn builds the body of one turn of a conversation again and again. The
// leading message is made anew for each, as callers do.
func turn(turns int) func() {
	prompt, tools, history := conversation(turns)
	memo := &llm.Memo{}
	a := New(Config{Getenv: wiretest.NoEnv})
	return func() {
		req := &llm.Request{Messages: llm.Fold(prompt, tools, history), Options: llm.Options{APIKey: "k", Memo: memo}}
		(&exchange{host: a.host, model: testModel(), req: req}).body()
	}
}
