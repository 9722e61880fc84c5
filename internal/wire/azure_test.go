package wire

import (
	"testing"

	"github.com/pinch-agent/pinch/llm"
)

func TestAzure(t *testing.T) {
	const resource = "AZURE_OPENAI_RESOURCE_NAME"
	for name, c := range map[string]struct {
		model    llm.Model
		env      map[string]string
		process  map[string]string
		wanted   Azure
		resource string
		want     Azure
		err      string
	}{
		"from the model": {model: llm.Model{ID: "m", BaseURL: "https://r.openai.azure.com/openai/v1/"},
			want: Azure{"https://r.openai.azure.com/openai/v1", "v1", "m"}},
		"the address of a resource": {model: llm.Model{ID: "m", BaseURL: "https://R.Services.AI.azure.com/openai/?a=b"},
			want: Azure{"https://r.services.ai.azure.com/openai/v1", "v1", "m"}},
		"another path stays": {model: llm.Model{ID: "m", BaseURL: "https://r.openai.azure.com/openai/deployments/x?a=b"},
			want: Azure{"https://r.openai.azure.com/openai/deployments/x?a=b", "v1", "m"}},
		"another host stays": {model: llm.Model{ID: "m", BaseURL: "https://openai.azure.com.test/openai"},
			want: Azure{"https://openai.azure.com.test/openai", "v1", "m"}},
		"a variable in the model's": {model: llm.Model{ID: "m", BaseURL: "https://{RES}.openai.azure.com"}, env: map[string]string{"RES": "r"},
			want: Azure{"https://r.openai.azure.com/openai/v1", "v1", "m"}},
		"an unset variable": {model: llm.Model{ID: "m", BaseURL: "https://{RES}.test"},
			err: "RES is not set; the base URL https://{RES}.test needs it"},
		"the environment wins over the model": {model: llm.Model{ID: "m", BaseURL: "https://model.test"}, process: map[string]string{resource: "r"},
			want: Azure{"https://r.openai.azure.com/openai/v1", "v1", "m"}},
		"an address wins over a resource": {env: map[string]string{"AZURE_OPENAI_BASE_URL": "http://localhost:1/x/", resource: "r"}, resource: "s",
			want: Azure{"http://localhost:1/x", "v1", ""}},
		"the request's resource wins": {env: map[string]string{resource: "r"}, resource: " s ",
			want: Azure{"https://s.openai.azure.com/openai/v1", "v1", ""}},
		"the request wins": {model: llm.Model{ID: "m"}, wanted: Azure{"https://w.test", "v2", "d"},
			env:  map[string]string{"AZURE_OPENAI_BASE_URL": "https://e.test", "AZURE_OPENAI_API_VERSION": "v3", "AZURE_OPENAI_DEPLOYMENT_NAME_MAP": "m=e"},
			want: Azure{"https://w.test", "v2", "d"}},
		"the request's environment wins": {model: llm.Model{ID: "m", BaseURL: "https://p.test"},
			env: map[string]string{"AZURE_OPENAI_API_VERSION": "v3"}, process: map[string]string{"AZURE_OPENAI_API_VERSION": "v4"},
			want: Azure{"https://p.test", "v3", "m"}},
		"blank values": {model: llm.Model{ID: "m", BaseURL: "https://p.test"}, wanted: Azure{BaseURL: " ", APIVersion: "\t"},
			env:  map[string]string{"AZURE_OPENAI_BASE_URL": " ", resource: " ", "AZURE_OPENAI_API_VERSION": " ", "AZURE_OPENAI_DEPLOYMENT_NAME_MAP": " "},
			want: Azure{"https://p.test", "v1", "m"}},
		"a deployment from the list": {model: llm.Model{ID: "gpt=x", BaseURL: "https://p.test"}, env: map[string]string{"AZURE_OPENAI_DEPLOYMENT_NAME_MAP": "gpt=y"},
			want: Azure{"https://p.test", "v1", "gpt=x"}},
		"the last entry counts": {model: llm.Model{ID: "m", BaseURL: "https://p.test"}, env: map[string]string{"AZURE_OPENAI_DEPLOYMENT_NAME_MAP": "m=a, m = b =c,m= ,m"},
			want: Azure{"https://p.test", "v1", "b"}},
		"none": {model: llm.Model{ID: "m", BaseURL: " / "}, err: (&AzureURLError{}).Error()},
		"no address": {model: llm.Model{ID: "m", BaseURL: "r.openai.azure.com"},
			err: `the Azure OpenAI base URL "r.openai.azure.com" cannot be used: it has to begin with https:// or http:// and the name of a host`},
	} {
		h := Host{Getenv: func(name string) string { return c.process[name] }}.Default()
		got, err := h.Azure(&c.model, &llm.Options{Env: c.env}, c.wanted, c.resource)
		if got != c.want || text(err) != c.err {
			t.Errorf("%s: got %+v, %v; want %+v, %q", name, got, err, c.want, c.err)
		}
	}
}

func TestAzureURL(t *testing.T) {
	for _, c := range []struct {
		at   Azure
		want string
	}{
		{Azure{"https://r.test/openai/v1", "v1", ""}, "https://r.test/openai/v1/responses?api-version=v1"},
		{Azure{"https://r.test/x/?tenant=a%20b&api-version=old", "2025-04-01 preview", ""}, "https://r.test/x/responses?api-version=2025-04-01+preview&tenant=a+b"},
		{Azure{"https://r.test/x?a=b", "", ""}, "https://r.test/x/responses?a=b"},
		{Azure{"https://r.test/x", "", ""}, "https://r.test/x/responses"},
		{Azure{"https://r.test/x?%zz", "v1", ""}, "https://r.test/x/responses?api-version=v1"},
	} {
		if got := c.at.URL("/responses"); got != c.want {
			t.Errorf("%+v: got %s, want %s", c.at, got, c.want)
		}
	}
}
