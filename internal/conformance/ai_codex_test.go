package conformance

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/zstd"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/responses"
)

// responsesOptions are the options of the Responses family in a vector.
type responsesOptions struct {
	ReasoningEffort  llm.ThinkingLevel `json:"reasoningEffort"`
	ReasoningSummary string            `json:"reasoningSummary"`
	ServiceTier      string            `json:"serviceTier"`
	ToolChoice       jsontext.Value    `json:"toolChoice"`
}

func newAzure() formatEntries {
	api := responses.NewAzure(responses.Config{Version: "test", Getenv: noEnv})
	return formatEntries{
		api: api,
		stream: func(ctx context.Context, m *llm.Model, req *llm.Request, options []byte) (*llm.Stream, error) {
			var o struct {
				responsesOptions
				AzureBaseURL        string `json:"azureBaseUrl"`
				AzureResourceName   string `json:"azureResourceName"`
				AzureAPIVersion     string `json:"azureApiVersion"`
				AzureDeploymentName string `json:"azureDeploymentName"`
			}
			if err := json.Unmarshal(options, &o); err != nil {
				return nil, err
			}
			return api.StreamWith(ctx, m, req, responses.AzureOptions{
				Options: responses.Options(o.responsesOptions), BaseURL: o.AzureBaseURL, ResourceName: o.AzureResourceName,
				APIVersion: o.AzureAPIVersion, Deployment: o.AzureDeploymentName,
			}), nil
		},
	}
}

func newCodex() formatEntries {
	api := responses.NewCodex(responses.Config{Version: "test", Getenv: noEnv})
	return formatEntries{
		api: api,
		stream: func(ctx context.Context, m *llm.Model, req *llm.Request, options []byte) (*llm.Stream, error) {
			var o struct {
				responsesOptions
				TextVerbosity string `json:"textVerbosity"`
			}
			if err := json.Unmarshal(options, &o); err != nil {
				return nil, err
			}
			return api.StreamWith(ctx, m, req, responses.CodexOptions{
				Options: responses.Options(o.responsesOptions), TextVerbosity: o.TextVerbosity,
			}), nil
		},
	}
}

// unpacked is the body of a request as it is recorded: without the compression
// that its header names.
func unpacked(header http.Header, body []byte) ([]byte, error) {
	if header.Get("Content-Encoding") != "zstd" {
		return body, nil
	}
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.DecodeAll(body, nil)
}

func TestUnpacked(t *testing.T) {
	if _, err := unpacked(http.Header{"Content-Encoding": {"zstd"}}, []byte("plain")); err == nil {
		t.Error("a body that is not compressed passes for one that is")
	}
}
