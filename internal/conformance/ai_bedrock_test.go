package conformance

import (
	"context"
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/bedrock"
)

func newBedrock() formatEntries {
	api := bedrock.New(bedrock.Config{Version: "test", Getenv: noEnv})
	return formatEntries{
		api: api,
		stream: func(ctx context.Context, m *llm.Model, req *llm.Request, options []byte) (*llm.Stream, error) {
			var o struct {
				Region              string         `json:"region"`
				Profile             string         `json:"profile"`
				BearerToken         string         `json:"bearerToken"`
				ToolChoice          jsontext.Value `json:"toolChoice"`
				InterleavedThinking *bool          `json:"interleavedThinking"`
				ThinkingDisplay     string         `json:"thinkingDisplay"`
				RequestMetadata     jsontext.Value `json:"requestMetadata"`
			}
			if err := json.Unmarshal(options, &o); err != nil {
				return nil, err
			}
			return api.StreamWith(ctx, m, req, bedrock.Options(o)), nil
		},
	}
}
