package conformance

import (
	"context"
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/mistral"
)

func newMistral() formatEntries {
	api := mistral.New(mistral.Config{Version: "test", Getenv: noEnv})
	return formatEntries{
		api: api,
		stream: func(ctx context.Context, m *llm.Model, req *llm.Request, options []byte) (*llm.Stream, error) {
			var o struct {
				ToolChoice      jsontext.Value `json:"toolChoice"`
				ReasoningEffort string         `json:"reasoningEffort"`
				PromptMode      string         `json:"promptMode"`
			}
			if err := json.Unmarshal(options, &o); err != nil {
				return nil, err
			}
			return api.StreamWith(ctx, m, req, mistral.Options(o)), nil
		},
	}
}
