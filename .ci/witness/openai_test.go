package witness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	api "github.com/openai/openai-go/v3/responses"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/completions"
	"github.com/pinch-agent/pinch/llm/responses"
)

var completionsFormat = format{
	api: completions.ID,
	new: func() llm.API { return completions.New(completions.Config{Version: "test", Getenv: noEnv}) },
	stream: func(ctx context.Context, api llm.API, m *llm.Model, req *llm.Request, raw []byte) (*llm.Stream, error) {
		o, err := options[completions.Options](raw)
		if err != nil {
			return nil, err
		}
		return api.(*completions.API).StreamWith(ctx, m, req, o), nil
	},
	repeat:     repeatCompletions,
	exceptions: completionsExceptions,
	dissents:   completionsDissents,
}

var responsesFormat = format{
	api: responses.ID,
	new: func() llm.API { return responses.New(responses.Config{Version: "test", Getenv: noEnv}) },
	stream: func(ctx context.Context, api llm.API, m *llm.Model, req *llm.Request, raw []byte) (*llm.Stream, error) {
		o, err := options[responses.Options](raw)
		if err != nil {
			return nil, err
		}
		return api.(*responses.API).StreamWith(ctx, m, req, o), nil
	},
	repeat:     repeatResponses,
	exceptions: responsesExceptions,
	dissents:   responsesDissents,
}

var azureFormat = format{
	api: responses.AzureID,
	new: func() llm.API { return responses.NewAzure(responses.Config{Version: "test", Getenv: noEnv}) },
	stream: func(ctx context.Context, api llm.API, m *llm.Model, req *llm.Request, raw []byte) (*llm.Stream, error) {
		o, err := options[struct {
			responses.Options
			BaseURL      string `json:"azureBaseUrl"`
			ResourceName string `json:"azureResourceName"`
			APIVersion   string `json:"azureApiVersion"`
			Deployment   string `json:"azureDeploymentName"`
		}](raw)
		if err != nil {
			return nil, err
		}
		return api.(*responses.Azure).StreamWith(ctx, m, req, responses.AzureOptions(o)), nil
	},
	repeat:     repeatResponses,
	exceptions: responsesExceptions,
}

var codexFormat = format{
	api: responses.CodexID,
	new: func() llm.API { return responses.NewCodex(responses.Config{Version: "test", Getenv: noEnv}) },
	stream: func(ctx context.Context, api llm.API, m *llm.Model, req *llm.Request, raw []byte) (*llm.Stream, error) {
		o, err := options[responses.CodexOptions](raw)
		if err != nil {
			return nil, err
		}
		return api.(*responses.Codex).StreamWith(ctx, m, req, o), nil
	},
	repeat:   repeatResponses,
	dissents: codexDissents,
}

func openAIClient(base, path, end string) (sdk.Client, error) {
	base, err := before(base, path, end)
	return sdk.NewClient(option.WithBaseURL(base+"/"), option.WithAPIKey("key"), option.WithMaxRetries(0)), err
}

func openAIError(err error) error {
	var e *sdk.Error
	if errors.As(err, &e) && e.StatusCode != 200 {
		return &statusError{e.StatusCode, err}
	}
	return err
}

func repeatCompletions(ctx context.Context, base, path string, body []byte) (*answer, error) {
	var params sdk.ChatCompletionNewParams
	if err := decode(body, &params); err != nil {
		return nil, err
	}
	client, err := openAIClient(base, path, "/chat/completions")
	if err != nil {
		return nil, err
	}
	stream := client.Chat.Completions.NewStreaming(ctx, params)
	defer stream.Close()
	var acc sdk.ChatCompletionAccumulator
	a := &answer{}
	for stream.Next() {
		chunk := stream.Current()
		if !acc.AddChunk(chunk) {
			return nil, errors.New("a chunk does not fit to those before")
		}
		// Counts may come with any chunk, and each is of the whole.
		if chunk.JSON.Usage.Valid() {
			u := chunk.Usage
			a.usage = usage{
				input:  max(0, u.PromptTokens-u.PromptTokensDetails.CachedTokens-u.PromptTokensDetails.CacheWriteTokens),
				output: u.CompletionTokens, cacheRead: u.PromptTokensDetails.CachedTokens, cacheWrite: u.PromptTokensDetails.CacheWriteTokens,
			}
		}
		for _, choice := range chunk.Choices {
			a.thinking += reasoningOf(choice.Delta.RawJSON())
		}
	}
	if err := stream.Err(); err != nil {
		return nil, openAIError(err)
	}
	if len(acc.Choices) > 0 {
		message := acc.Choices[0].Message
		a.text = message.Content
		for _, c := range message.ToolCalls {
			a.calls = append(a.calls, call{c.ID, c.Function.Name, c.Function.Arguments})
		}
	}
	return a, nil
}

// reasoningOf is the reasoning text of a delta, which the protocol of OpenAI
// has no field for, by the names that others gave it.
func reasoningOf(delta string) string {
	var d struct {
		Content   string `json:"reasoning_content"`
		Reasoning string `json:"reasoning"`
		Text      string `json:"reasoning_text"`
	}
	if json.Unmarshal([]byte(delta), &d) != nil {
		return ""
	}
	for _, text := range []string{d.Content, d.Reasoning, d.Text} {
		if text != "" {
			return text
		}
	}
	return ""
}

func repeatResponses(ctx context.Context, base, path string, body []byte) (*answer, error) {
	params, err := responseParams(body)
	if err != nil {
		return nil, err
	}
	client, err := openAIClient(base, path, "/responses")
	if err != nil {
		return nil, err
	}
	stream := client.Responses.NewStreaming(ctx, *params)
	defer stream.Close()
	a := &answer{}
	// By their place in the output.
	thinking, calls := map[int64]string{}, map[int64]call{}
	for stream.Next() {
		switch e := stream.Current().AsAny().(type) {
		case api.ResponseTextDeltaEvent:
			a.text += e.Delta
		case api.ResponseRefusalDeltaEvent:
			a.text += e.Delta
		case api.ResponseReasoningSummaryTextDeltaEvent:
			thinking[e.OutputIndex] += e.Delta
		case api.ResponseReasoningTextDeltaEvent:
			thinking[e.OutputIndex] += e.Delta
		case api.ResponseOutputItemDoneEvent:
			switch item := e.Item.AsAny().(type) {
			case api.ResponseReasoningItem:
				if whole := thinkingOf(&item); whole != "" {
					thinking[e.OutputIndex] = whole
				}
			case api.ResponseFunctionToolCall:
				calls[e.OutputIndex] = call{item.CallID + "|" + item.ID, item.Name, item.Arguments}
			case api.ResponseCustomToolCall:
				input, _ := json.Marshal(map[string]string{"input": item.Input})
				calls[e.OutputIndex] = call{item.CallID + "|" + item.ID, item.Name, string(input)}
			}
		case api.ResponseCompletedEvent:
			a.usage = responseUsage(&e.Response.Usage)
		case api.ResponseIncompleteEvent:
			a.usage = responseUsage(&e.Response.Usage)
		case api.ResponseFailedEvent:
			return nil, &responseError{string(e.Response.Error.Code), e.Response.Error.Message}
		case api.ResponseErrorEvent:
			return nil, &responseError{e.Code, e.Message}
		}
	}
	for _, i := range slices.Sorted(maps.Keys(thinking)) {
		a.thinking += thinking[i]
	}
	for _, i := range slices.Sorted(maps.Keys(calls)) {
		a.calls = append(a.calls, calls[i])
	}
	return a, openAIError(stream.Err())
}

// responseError is what an event says of an answer that failed.
type responseError struct{ code, message string }

func (e *responseError) Error() string { return e.code + ": " + e.message }

// thinkingOf is the text of a reasoning item, its parts set apart as pinch does.
func thinkingOf(item *api.ResponseReasoningItem) string {
	var parts []string
	for _, p := range item.Summary {
		parts = append(parts, p.Text)
	}
	if parts == nil {
		for _, p := range item.Content {
			parts = append(parts, p.Text)
		}
	}
	return strings.Join(parts, "\n\n")
}

// responseParams reads a body. The library's decoder needs help with messages:
// it knows them by a type, which the protocol lets away, and takes each for one
// of the user.
func responseParams(body []byte) (*api.ResponseNewParams, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, err
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(members["input"], &raw); err != nil {
		return nil, err
	}
	delete(members, "input")
	rest, err := json.Marshal(members)
	if err != nil {
		return nil, err
	}
	var params api.ResponseNewParams
	if err := decode(rest, &params); err != nil {
		return nil, err
	}
	items := make(api.ResponseInputParam, len(raw))
	for i := range raw {
		var kind struct{ Type, Role string }
		if err := json.Unmarshal(raw[i], &kind); err != nil {
			return nil, err
		}
		switch {
		case kind.Type == "" && kind.Role != "":
			items[i].OfMessage = &api.EasyInputMessageParam{}
			err = decode(raw[i], items[i].OfMessage)
		case kind.Type == "message" && kind.Role == "assistant":
			items[i].OfOutputMessage = &api.ResponseOutputMessageParam{}
			err = decode(raw[i], items[i].OfOutputMessage)
		default:
			err = decode(raw[i], &items[i])
		}
		if err != nil {
			return nil, fmt.Errorf("input[%d]: %w", i, err)
		}
	}
	params.Input.OfInputItemList = items
	return &params, nil
}

func responseUsage(u *api.ResponseUsage) usage {
	read, write := u.InputTokensDetails.CachedTokens, u.InputTokensDetails.CacheWriteTokens
	return usage{input: max(0, u.InputTokens-read-write), output: u.OutputTokens, cacheRead: read, cacheWrite: write}
}
