package bedrock

import (
	"net/http"
	"testing"

	"github.com/pinch-agent/pinch/internal/wire/wiretest"
	"github.com/pinch-agent/pinch/llm"
)

func deltas() map[string]wiretest.Deltas {
	return map[string]wiretest.Deltas{"text": {Start: string(start), Event: string(text(0, " word 42, and\n"))}}
}

func openDeltas(t testing.TB, client *http.Client) *llm.Stream {
	t.Helper()
	s, err := quick().Stream(t.Context(), testModel, request(client.Transport))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func BenchmarkBedrockDelta(b *testing.B) { wiretest.BenchmarkDeltas(b, deltas(), openDeltas) }

func TestDeltaAllocatesNothing(t *testing.T) { wiretest.DeltasAllocateNothing(t, deltas(), openDeltas) }
