package completions

import (
	"context"
	"net/http"
	"testing"

	"github.com/pinch-agent/pinch/internal/wire/wiretest"
	"github.com/pinch-agent/pinch/llm"
)

func testModel() *llm.Model {
	return &llm.Model{
		ID: "m-1", API: ID, Provider: "openai", BaseURL: "http://service.test/v1", Reasoning: true,
		Input: []string{"text", "image"}, ContextWindow: 128000, MaxTokens: 16000,
		Cost: llm.Rates{Input: 1, Output: 4, CacheRead: 0.1},
	}
}

// deltas is chunks of the kinds that make up long answers.
func deltas() map[string]wiretest.Deltas {
	chunk := func(delta string) wiretest.Deltas {
		return wiretest.Deltas{Event: `data: {"id":"chatcmpl-9f2c","object":"chat.completion.chunk","created":1750000000,"model":"m-1",` +
			`"system_fingerprint":"fp_44709d6fcb","choices":[{"index":0,"delta":` + delta + `,"logprobs":null,"finish_reason":null}]}` + "\n\n"}
	}
	return map[string]wiretest.Deltas{
		"text":      chunk(`{"content":" the tide turns at \"noon\""}`),
		"reasoning": chunk(`{"role":"assistant","content":null,"reasoning_content":" the tide turns at noon"}`),
		"details": chunk(`{"role":"assistant","content":"","reasoning":" turns","reasoning_details":` +
			`[{"type":"reasoning.text","text":" turns","format":"f-1","index":0}]}`),
		"tool": chunk(`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"write","arguments":"\\n the tide"}}]}`),
	}
}

func openDeltas(t testing.TB, client *http.Client) *llm.Stream {
	t.Helper()
	s, err := New(Config{Client: client, Getenv: wiretest.NoEnv}).Stream(context.Background(), testModel(), keyed(llm.UserText("When?", 1)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func BenchmarkCompletionsDelta(b *testing.B) { wiretest.BenchmarkDeltas(b, deltas(), openDeltas) }

func TestDeltaAllocatesNothing(t *testing.T) { wiretest.DeltasAllocateNothing(t, deltas(), openDeltas) }
