package responses

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

func event(data string) string { return "event: x\ndata: " + data + "\n\n" }

func added(item string) string {
	return event(`{"type":"response.output_item.added","sequence_number":3,"output_index":0,"item":` + item + `}`)
}

// deltas is events of the kinds that make up long answers, with what comes
// before them.
func deltas() map[string]wiretest.Deltas {
	delta := func(first, typ, text string) wiretest.Deltas {
		return wiretest.Deltas{Start: first, Event: event(`{"type":"response.` + typ + `.delta","sequence_number":412,` +
			`"item_id":"msg_68a1f0c2d3e481908d0b6c1f2a3b4c5d0123456789abcdef","output_index":0,"content_index":0,"delta":"` + text +
			`","logprobs":[],"obfuscation":"kT3vQz81mPaX"}`)}
	}
	return map[string]wiretest.Deltas{
		"text":      delta(added(`{"type":"message","id":"msg_1"}`), "output_text", ` the tide turns at \"noon\"`),
		"reasoning": delta(added(`{"type":"reasoning","id":"rs_1","summary":[]}`), "reasoning_summary_text", ` the tide turns at noon`),
		"tool": delta(added(`{"type":"function_call","id":"fc_1","call_id":"call_1","name":"write","arguments":""}`),
			"function_call_arguments", `\\n the tide`),
		"grammar": delta(added(`{"type":"custom_tool_call","id":"ctc_1","call_id":"call_1","name":"patch","input":""}`),
			"custom_tool_call_input", `\n+ the \"tide\"`),
	}
}

func quiet(client *http.Client) Config {
	return Config{Client: client, Getenv: wiretest.NoEnv}
}

func openDeltas(t testing.TB, client *http.Client) *llm.Stream {
	t.Helper()
	s, err := New(quiet(client)).Stream(context.Background(), testModel(), keyed(llm.UserText("When?", 1)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func BenchmarkResponsesDelta(b *testing.B) { wiretest.BenchmarkDeltas(b, deltas(), openDeltas) }

func TestDeltaAllocatesNothing(t *testing.T) { wiretest.DeltasAllocateNothing(t, deltas(), openDeltas) }
