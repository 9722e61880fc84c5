package conformance

import (
	"context"
	"encoding/json"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/responses"
)

func newResponses() formatEntries {
	api := responses.New(responses.Config{Version: "test", Getenv: noEnv})
	return formatEntries{
		api: api,
		stream: func(ctx context.Context, m *llm.Model, req *llm.Request, options []byte) (*llm.Stream, error) {
			var o responsesOptions
			if err := json.Unmarshal(options, &o); err != nil {
				return nil, err
			}
			return api.StreamWith(ctx, m, req, responses.Options(o)), nil
		},
	}
}
