package witness

import (
	"context"
	"errors"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/anthropic"
)

var anthropicFormat = format{
	api: anthropic.ID,
	new: func() llm.API { return anthropic.New(anthropic.Config{Version: "test", Getenv: noEnv}) },
	stream: func(ctx context.Context, api llm.API, m *llm.Model, req *llm.Request, raw []byte) (*llm.Stream, error) {
		o, err := options[anthropic.Options](raw)
		if err != nil {
			return nil, err
		}
		return api.(*anthropic.API).StreamWith(ctx, m, req, o), nil
	},
	repeat:     repeatAnthropic,
	exceptions: anthropicExceptions,
	dissents:   anthropicDissents,
}

// noEnv is the process environment that formats see.
func noEnv(string) string { return "" }

func repeatAnthropic(ctx context.Context, base, path string, body []byte) (*answer, error) {
	var params sdk.BetaMessageNewParams
	if err := decode(body, &params); err != nil {
		return nil, err
	}
	base, err := before(base, path, "/v1/messages")
	if err != nil {
		return nil, err
	}
	client := sdk.NewClient(option.WithBaseURL(base), option.WithAPIKey("key"), option.WithMaxRetries(0))
	stream := client.Beta.Messages.NewStreaming(ctx, params)
	defer stream.Close()
	var message sdk.BetaMessage
	for stream.Next() {
		if err := message.Accumulate(stream.Current()); err != nil {
			return nil, err
		}
	}
	if err := stream.Err(); err != nil {
		var e *sdk.Error
		if errors.As(err, &e) && e.StatusCode != 200 {
			return nil, &statusError{e.StatusCode, err}
		}
		return nil, err
	}
	a := &answer{usage: usage{
		input: message.Usage.InputTokens, output: message.Usage.OutputTokens,
		cacheRead: message.Usage.CacheReadInputTokens, cacheWrite: message.Usage.CacheCreationInputTokens,
	}}
	for _, block := range message.Content {
		switch b := block.AsAny().(type) {
		case sdk.BetaTextBlock:
			a.text += b.Text
		case sdk.BetaThinkingBlock:
			a.thinking += b.Thinking
		case sdk.BetaToolUseBlock:
			a.calls = append(a.calls, call{b.ID, b.Name, string(block.Input)})
		}
	}
	return a, nil
}
