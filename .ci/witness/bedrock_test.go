package witness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"time"
	"unicode"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/document"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	smithydocument "github.com/aws/smithy-go/document"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/bedrock"
)

var bedrockFormat = format{
	api: bedrock.ID,
	new: func() llm.API {
		return bedrock.New(bedrock.Config{
			Version: "test", Getenv: noEnv,
			Wait: func(context.Context, time.Duration) error { return nil },
		})
	},
	stream: func(ctx context.Context, api llm.API, m *llm.Model, req *llm.Request, raw []byte) (*llm.Stream, error) {
		o, err := options[bedrock.Options](raw)
		if err != nil {
			return nil, err
		}
		return api.(*bedrock.API).StreamWith(ctx, m, req, o), nil
	},
	repeat:   repeatBedrock,
	dissents: bedrockDissents,
}

func repeatBedrock(ctx context.Context, base, path string, body []byte) (*answer, error) {
	prefix, rest, _ := strings.Cut(path, "/model/")
	id, ok := strings.CutSuffix(rest, "/converse-stream")
	if !ok {
		return nil, fmt.Errorf("the path %s is none of the operation", path)
	}
	id, err := url.PathUnescape(id)
	if err != nil {
		return nil, err
	}
	raw, err := parse(body)
	if err != nil {
		return nil, err
	}
	input := &bedrockruntime.ConverseStreamInput{ModelId: &id}
	if err := fill("", reflect.ValueOf(input).Elem(), raw); err != nil {
		return nil, err
	}
	client := bedrockruntime.New(bedrockruntime.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(base + prefix), RetryMaxAttempts: 1,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret"}, nil
		}),
	})
	out, err := client.ConverseStream(ctx, input)
	if err != nil {
		var e *smithyhttp.ResponseError
		if errors.As(err, &e) && e.HTTPStatusCode() != 200 {
			return nil, &statusError{e.HTTPStatusCode(), err}
		}
		return nil, err
	}
	return readBedrock(out.GetStream())
}

func readBedrock(stream *bedrockruntime.ConverseStreamEventStream) (*answer, error) {
	defer stream.Close()
	a := &answer{}
	calls := map[int32]int{} // block to index
	for event := range stream.Events() {
		switch e := event.(type) {
		case *types.ConverseStreamOutputMemberContentBlockStart:
			if start, ok := e.Value.Start.(*types.ContentBlockStartMemberToolUse); ok {
				calls[aws.ToInt32(e.Value.ContentBlockIndex)] = len(a.calls)
				a.calls = append(a.calls, call{id: aws.ToString(start.Value.ToolUseId), name: aws.ToString(start.Value.Name)})
			}
		case *types.ConverseStreamOutputMemberContentBlockDelta:
			switch d := e.Value.Delta.(type) {
			case *types.ContentBlockDeltaMemberText:
				a.text += d.Value
			case *types.ContentBlockDeltaMemberToolUse:
				if i, ok := calls[aws.ToInt32(e.Value.ContentBlockIndex)]; ok {
					a.calls[i].arguments += aws.ToString(d.Value.Input)
				}
			case *types.ContentBlockDeltaMemberReasoningContent:
				if text, ok := d.Value.(*types.ReasoningContentBlockDeltaMemberText); ok {
					a.thinking += text.Value
				}
			}
		case *types.ConverseStreamOutputMemberMetadata:
			if u := e.Value.Usage; u != nil {
				a.usage = usage{
					input: int64(aws.ToInt32(u.InputTokens)), output: int64(aws.ToInt32(u.OutputTokens)),
					cacheRead: int64(aws.ToInt32(u.CacheReadInputTokens)), cacheWrite: int64(aws.ToInt32(u.CacheWriteInputTokens)),
				}
			}
		}
	}
	return a, stream.Err()
}

// unions are the alternatives of the library's union types, which reflection
// cannot list. The name of an alternative ends in that of its JSON member.
var unions = map[reflect.Type][]any{
	reflect.TypeFor[types.ContentBlock](): {
		&types.ContentBlockMemberText{}, &types.ContentBlockMemberImage{}, &types.ContentBlockMemberToolUse{},
		&types.ContentBlockMemberToolResult{}, &types.ContentBlockMemberReasoningContent{}, &types.ContentBlockMemberCachePoint{},
	},
	reflect.TypeFor[types.SystemContentBlock]():    {&types.SystemContentBlockMemberText{}, &types.SystemContentBlockMemberCachePoint{}},
	reflect.TypeFor[types.ImageSource]():           {&types.ImageSourceMemberBytes{}},
	reflect.TypeFor[types.ReasoningContentBlock](): {&types.ReasoningContentBlockMemberReasoningText{}, &types.ReasoningContentBlockMemberRedactedContent{}},
	reflect.TypeFor[types.Tool]():                  {&types.ToolMemberToolSpec{}, &types.ToolMemberCachePoint{}},
	reflect.TypeFor[types.ToolInputSchema]():       {&types.ToolInputSchemaMemberJson{}},
	reflect.TypeFor[types.ToolChoice]():            {&types.ToolChoiceMemberAuto{}, &types.ToolChoiceMemberAny{}, &types.ToolChoiceMemberTool{}},
	reflect.TypeFor[types.ToolResultContentBlock](): {&types.ToolResultContentBlockMemberText{}, &types.ToolResultContentBlockMemberImage{},
		&types.ToolResultContentBlockMemberJson{}},
}

// fill puts a JSON value into a parameter type of the library, which reads no
// JSON itself. What the type has no place for is an error.
func fill(path string, v reflect.Value, raw any) error {
	misfit := func() error { return fmt.Errorf("%s does not take %s", path, brief(raw)) }
	if v.Type() == reflect.TypeFor[document.Interface]() {
		v.Set(reflect.ValueOf(document.NewLazyDocument(plain(raw))))
		return nil
	}
	if alternatives, ok := unions[v.Type()]; ok {
		members, ok := raw.(map[string]any)
		if !ok || len(members) != 1 {
			return misfit()
		}
		for name, value := range members {
			for _, alternative := range alternatives {
				t := reflect.TypeOf(alternative).Elem()
				if strings.HasSuffix(t.Name(), "Member"+fieldName(name)) {
					chosen := reflect.New(t)
					v.Set(chosen)
					return fill(member(path, name), chosen.Elem().FieldByName("Value"), value)
				}
			}
		}
		return misfit()
	}
	switch value := raw.(type) {
	case map[string]any:
		switch v.Kind() {
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
			return fill(path, v.Elem(), raw)
		case reflect.Struct:
			for name, value := range value {
				f, ok := v.Type().FieldByName(fieldName(name))
				if !ok || !f.IsExported() {
					return fmt.Errorf("%s is not known: %s", member(path, name), brief(value))
				}
				if err := fill(member(path, name), v.FieldByIndex(f.Index), value); err != nil {
					return err
				}
			}
			return nil
		case reflect.Map:
			v.Set(reflect.MakeMap(v.Type()))
			for name, value := range value {
				element := reflect.New(v.Type().Elem()).Elem()
				if err := fill(member(path, name), element, value); err != nil {
					return err
				}
				v.SetMapIndex(reflect.ValueOf(name), element)
			}
			return nil
		}
	case []any:
		if v.Kind() == reflect.Slice {
			v.Set(reflect.MakeSlice(v.Type(), len(value), len(value)))
			for i := range value {
				if err := fill(path+"[]", v.Index(i), value[i]); err != nil {
					return err
				}
			}
			return nil
		}
	default:
		// Strings, numbers, truth values and bytes, which are base64 here too.
		b, err := json.Marshal(raw)
		if err == nil && json.Unmarshal(b, v.Addr().Interface()) == nil {
			return nil
		}
	}
	return misfit()
}

// fieldName is the Go name of a JSON member.
func fieldName(name string) string {
	r := []rune(name)
	r[0] = unicode.ToUpper(r[0])
	return string(r)
}

// plain is a JSON value in the types that the library's documents take.
func plain(raw any) any {
	switch value := raw.(type) {
	case json.Number:
		return smithydocument.Number(value)
	case map[string]any:
		out := make(map[string]any, len(value))
		for name, v := range value {
			out[name] = plain(v)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, v := range value {
			out[i] = plain(v)
		}
		return out
	}
	return raw
}
