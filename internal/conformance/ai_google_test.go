package conformance

import (
	"context"
	"encoding/json"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/google"
)

func newGoogle() formatEntries {
	return googleEntries(google.New(google.Config{Version: "test", Getenv: noEnv}))
}

func newGoogleVertex() formatEntries {
	return googleEntries(google.NewVertex(google.Config{Version: "test", Getenv: noEnv}))
}

func googleEntries(api *google.API) formatEntries {
	return formatEntries{
		api: api,
		stream: func(ctx context.Context, m *llm.Model, req *llm.Request, options []byte) (*llm.Stream, error) {
			var o struct {
				ToolChoice string `json:"toolChoice"`
				Thinking   *struct {
					Enabled bool   `json:"enabled"`
					Budget  *int   `json:"budgetTokens"`
					Level   string `json:"level"`
				} `json:"thinking"`
				Project  string `json:"project"`
				Location string `json:"location"`
			}
			if err := json.Unmarshal(options, &o); err != nil {
				return nil, err
			}
			own := google.Options{ToolChoice: o.ToolChoice, Project: o.Project, Location: o.Location}
			if o.Thinking != nil {
				own.Thinking = new(google.Thinking(*o.Thinking))
			}
			return api.StreamWith(ctx, m, req, own), nil
		},
	}
}

func rowGoogleModelRules(raw []byte) outcome {
	o := outcome{}
	r := row[struct {
		ID     string `json:"id"`
		Expect struct {
			UsesThinkingLevel  bool `json:"usesThinkingLevel"`
			RequiresToolCallID bool `json:"requiresToolCallId"`
			Strict             bool `json:"strict"`
		} `json:"expect"`
	}](raw)
	got := google.RulesOf(r.ID)
	if got.ThinkingLevel != r.Expect.UsesThinkingLevel {
		o.add("usesThinkingLevel", "got %v for %s", got.ThinkingLevel, r.ID)
	}
	if got.CallIDs != r.Expect.RequiresToolCallID {
		o.add("requiresToolCallId", "got %v for %s", got.CallIDs, r.ID)
	}
	if got.StrictTools != r.Expect.Strict {
		o.add("strict", "got %v for %s", got.StrictTools, r.ID)
	}
	return o
}
