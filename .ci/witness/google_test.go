package witness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"

	sdk "google.golang.org/genai"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/google"
)

var googleFormat = format{
	api:        google.ID,
	new:        func() llm.API { return google.New(google.Config{Version: "test", Getenv: noEnv}) },
	stream:     streamGoogle,
	repeat:     repeatGoogle(sdk.BackendGeminiAPI),
	exceptions: googleExceptions,
	dissents:   googleDissents,
}

var vertexFormat = format{
	api:        google.VertexID,
	new:        func() llm.API { return google.NewVertex(google.Config{Version: "test", Getenv: noEnv}) },
	stream:     streamGoogle,
	repeat:     repeatGoogle(sdk.BackendEnterprise),
	exceptions: googleExceptions,
}

func streamGoogle(ctx context.Context, api llm.API, m *llm.Model, req *llm.Request, raw []byte) (*llm.Stream, error) {
	type thinking struct {
		Enabled bool
		Budget  *int `json:"budgetTokens"`
		Level   string
	}
	o, err := options[struct {
		ToolChoice, Project, Location string
		Thinking                      *thinking
	}](raw)
	if err != nil {
		return nil, err
	}
	own := google.Options{ToolChoice: o.ToolChoice, Project: o.Project, Location: o.Location}
	if o.Thinking != nil {
		own.Thinking = new(google.Thinking(*o.Thinking))
	}
	return api.(*google.API).StreamWith(ctx, m, req, own), nil
}

// googlePath has the prefix, the version, project, location and model in a path.
var googlePath = regexp.MustCompile(`^(.*?)/(v1\w*)/(?:projects/([^/]+)/locations/([^/]+)/)?(?:publishers/google/)?models/(.+):streamGenerateContent\?alt=sse$`)

func repeatGoogle(backend sdk.Backend) func(ctx context.Context, base, path string, body []byte) (*answer, error) {
	return func(ctx context.Context, base, path string, body []byte) (*answer, error) {
		part := googlePath.FindStringSubmatch(path)
		if part == nil {
			return nil, fmt.Errorf("the path %s is none of the service", path)
		}
		contents, config, err := googleParams(body)
		if err != nil {
			return nil, err
		}
		c := &sdk.ClientConfig{
			Backend: backend, Project: part[3], Location: part[4], HTTPClient: http.DefaultClient,
			HTTPOptions: sdk.HTTPOptions{BaseURL: base + part[1], APIVersion: part[2]},
		}
		if c.Project == "" {
			c.APIKey = "key"
		}
		client, err := sdk.NewClient(ctx, c)
		if err != nil {
			return nil, err
		}
		a := &answer{}
		for chunk, err := range client.Models.GenerateContentStream(ctx, part[5], contents, config) {
			if err != nil {
				var e sdk.APIError
				if errors.As(err, &e) && e.Code != 200 {
					return nil, &statusError{e.Code, err}
				}
				return nil, err
			}
			if err := a.addGoogle(chunk); err != nil {
				return nil, err
			}
		}
		return a, nil
	}
}

// googleParams reads a body. The library has no type for the whole body: what
// the protocol puts into generationConfig stands in its config itself.
func googleParams(body []byte) ([]*sdk.Content, *sdk.GenerateContentConfig, error) {
	var request struct {
		Contents          []*sdk.Content
		SystemInstruction *sdk.Content
		Tools             []*sdk.Tool
		ToolConfig        *sdk.ToolConfig
		GenerationConfig  json.RawMessage
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, nil, err
	}
	config := &sdk.GenerateContentConfig{}
	if request.GenerationConfig != nil {
		if err := json.Unmarshal(request.GenerationConfig, config); err != nil {
			return nil, nil, err
		}
	}
	config.SystemInstruction, config.Tools, config.ToolConfig = request.SystemInstruction, request.Tools, request.ToolConfig
	return request.Contents, config, nil
}

func (a *answer) addGoogle(chunk *sdk.GenerateContentResponse) error {
	if u := chunk.UsageMetadata; u != nil {
		a.usage = usage{
			input:  int64(max(0, u.PromptTokenCount-u.CachedContentTokenCount)),
			output: int64(u.CandidatesTokenCount + u.ThoughtsTokenCount), cacheRead: int64(u.CachedContentTokenCount),
		}
	}
	if len(chunk.Candidates) == 0 || chunk.Candidates[0].Content == nil {
		return nil
	}
	for _, p := range chunk.Candidates[0].Content.Parts {
		switch {
		case p.FunctionCall != nil:
			var arguments []byte
			if p.FunctionCall.Args != nil {
				var err error
				if arguments, err = json.Marshal(p.FunctionCall.Args); err != nil {
					return err
				}
			}
			a.calls = append(a.calls, call{p.FunctionCall.ID, p.FunctionCall.Name, string(arguments)})
		case p.Thought:
			a.thinking += p.Text
		default:
			a.text += p.Text
		}
	}
	return nil
}
