package google

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"go.uber.org/goleak"

	"github.com/pinch-agent/pinch/internal/wire/wiretest"
	"github.com/pinch-agent/pinch/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func testModel(id string) *llm.Model {
	return &llm.Model{
		ID: id, API: ID, Provider: "google", BaseURL: "http://service.test/v1beta", Reasoning: true,
		Input: []string{"text", "image"}, ContextWindow: 1_000_000, MaxTokens: 60_000,
		Cost: llm.Rates{Input: 0.5, Output: 3, CacheRead: 0.05},
	}
}

// deltas is chunks of the kinds that make up long answers, with counts that
// change from one to the next, as the service sends them.
func deltas() map[string]wiretest.Deltas {
	chunk := func(part string, count int) string {
		return fmt.Sprintf(`data: {"candidates":[{"content":{"parts":[%s],"role":"model"},"index":0}],`+
			`"usageMetadata":{"promptTokenCount":1834,"candidatesTokenCount":%d,"totalTokenCount":%d,"cachedContentTokenCount":1024,`+
			`"promptTokensDetails":[{"modality":"TEXT","tokenCount":1834}],"thoughtsTokenCount":%d},`+
			`"modelVersion":"gemini-2.5-pro","responseId":"Qm9fZ8TnJ6uxkdUP1d6a6Qk"}`+"\r\n\r\n", part, count, 1834+count, 2*count)
	}
	pair := func(part string) wiretest.Deltas { return wiretest.Deltas{Event: chunk(part, 11) + chunk(part, 12)} }
	return map[string]wiretest.Deltas{
		"text":    pair(`{"text":" the tide turns at \"noon\""}`),
		"thought": pair(`{"text":" the tide turns at noon","thought":true}`),
	}
}

func openDeltas(t testing.TB, client *http.Client) *llm.Stream {
	t.Helper()
	s, err := New(Config{Client: client, Getenv: wiretest.NoEnv}).Stream(context.Background(), testModel("gemini-2.5-pro"), keyed(llm.UserText("When?", 1)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func BenchmarkGoogleDelta(b *testing.B) { wiretest.BenchmarkDeltas(b, deltas(), openDeltas) }

func TestDeltaAllocatesNothing(t *testing.T) { wiretest.DeltasAllocateNothing(t, deltas(), openDeltas) }
