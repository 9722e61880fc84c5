package bedrock

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/llm"
)

func TestKind(t *testing.T) {
	claude := kind{claude: true, caches: true}
	adaptive := kind{claude: true, caches: true, adaptive: true}
	bound := kind{claude: true, caches: true, adaptive: true, binding: true}
	for _, c := range []struct {
		id, name string
		want     kind
	}{
		{"anthropic.claude-sonnet-4-20250514-v1:0", "", claude},
		{"anthropic.claude-opus-4-20250514-v1:0", "", claude},
		{"us.anthropic.claude-opus-4-1-20250805-v1:0", "", claude},
		{"us.anthropic.claude-sonnet-4-5-20250929-v1:0", "", claude},
		{"anthropic.claude-3-7-sonnet-20250219-v1:0", "", claude},
		{"anthropic.claude-3-5-haiku-20241022-v1:0", "", claude},
		{"anthropic.claude-3-5-sonnet-20241022-v2:0", "", kind{claude: true}},
		{"anthropic.claude-sonnet-4-6", "", adaptive},
		{"global.anthropic.claude-opus-4-6-v1", "", adaptive},
		{"anthropic.claude-opus-4-7", "", bound},
		{"anthropic.claude-opus-4-12-x", "", bound},
		{"anthropic.claude-opus-5", "", bound},
		{"anthropic.claude-fable-5", "", bound},
		{"arn:aws:bedrock:us-west-2:1:application-inference-profile/x", "Claude Opus 4.6", adaptive},
		{"arn:aws:bedrock:us-west-2:1:application-inference-profile/x", "Claude  Sonnet_4.5", claude},
		{"arn:aws:bedrock:us-west-2:1:application-inference-profile/x", "Nova", kind{}},
		{"amazon.nova-pro-v1:0", "Nova Pro", kind{}},
		{"openai.gpt-oss-120b-1:0", "", kind{gptOSS: true}},
		{"openai.gpt-5.6", "", kind{gpt: true}},
		{"acme.opus-5", "", kind{}},
	} {
		if got := kindOf(&llm.Model{ID: c.id, Name: c.name}); got != c.want {
			t.Errorf("%s %q:\n got %+v\nwant %+v", c.id, c.name, got, c.want)
		}
	}
	if !kindOf(&llm.Model{Compat: jsontext.Value(`{"supportsStrictMode":true}`)}).strict || kindOf(&llm.Model{Compat: jsontext.Value(`{"supportsStrictMode":0}`)}).strict {
		t.Error("supportsStrictMode is misread")
	}
}

func TestGovCloud(t *testing.T) {
	for _, c := range []struct {
		id, region string
		want       bool
	}{
		{"us-gov.anthropic.claude-sonnet-4-5", "us-east-1", true},
		{"arn:aws-us-gov:bedrock:us-gov-west-1:1:inference-profile/x", "", true},
		{"anthropic.claude-sonnet-4-5", "us-gov-east-1", true},
		{"us.anthropic.claude-sonnet-4-5", "us-east-1", false},
	} {
		if got := govCloud(&llm.Model{ID: c.id}, c.region); got != c.want {
			t.Errorf("%+v", c)
		}
	}
}
