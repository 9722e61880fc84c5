package conformance

import (
	"context"
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/completions"
)

func newCompletions() formatEntries {
	api := completions.New(completions.Config{Version: "test", Getenv: noEnv})
	return formatEntries{
		api: api,
		stream: func(ctx context.Context, m *llm.Model, req *llm.Request, options []byte) (*llm.Stream, error) {
			var o struct {
				ReasoningEffort llm.ThinkingLevel `json:"reasoningEffort"`
				ToolChoice      jsontext.Value    `json:"toolChoice"`
			}
			if err := json.Unmarshal(options, &o); err != nil {
				return nil, err
			}
			return api.StreamWith(ctx, m, req, completions.Options(o)), nil
		},
	}
}
