package responses

import (
	"context"

	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

// AzureID is the name of the wire format of Azure OpenAI.
const AzureID = "azure-openai-responses"

// Azure is the wire format azure-openai-responses: the protocol as Azure OpenAI
// serves it, with a resource's own address and a deployment for each model. It
// is safe for concurrent use.
//
// The address comes from the request, from AZURE_OPENAI_BASE_URL or
// AZURE_OPENAI_RESOURCE_NAME, or from the model's base URL. That of a resource,
// such as https://NAME.openai.azure.com, is completed. The version is that of
// the request or of AZURE_OPENAI_API_VERSION, else v1. The deployment is the
// request's, or the model's entry in AZURE_OPENAI_DEPLOYMENT_NAME_MAP
// (id=name,…), else it has the name of the model; answers carry the model's id.
type Azure struct{ service *service }

// AzureOptions are what a request to Azure can say beyond llm.Options. Empty
// fields leave it to the environment and the model.
type AzureOptions struct {
	Options
	BaseURL      string // of the operations, such as https://NAME.openai.azure.com/openai/v1
	ResourceName string // in place of a base URL
	APIVersion   string
	Deployment   string
}

// NewAzure makes the wire format azure-openai-responses.
func NewAzure(c Config) *Azure { return &Azure{newService(c, azure(AzureOptions{}))} }

// ID implements llm.API.
func (a *Azure) ID() string { return AzureID }

// Stream implements llm.API, like API.Stream. Its error is a *llm.KeyError:
// there is no key.
func (a *Azure) Stream(ctx context.Context, m *llm.Model, req *llm.Request) (*llm.Stream, error) {
	if req.APIKey == "" {
		return nil, &llm.KeyError{Provider: m.Provider}
	}
	x := a.service.exchange(m, req)
	x.simple()
	return x.stream(ctx), nil
}

// StreamWith is Stream with the options of this wire format, like
// API.StreamWith.
func (a *Azure) StreamWith(ctx context.Context, m *llm.Model, req *llm.Request, o AzureOptions) *llm.Stream {
	x := a.service.exchange(m, req)
	x.dialect = azure(o)
	x.with(o.Options)
	return x.stream(ctx)
}

// azure is the dialect of requests with these options.
func azure(o AzureOptions) *dialect {
	d := openAI()
	d.id, d.strict = AzureID, true
	d.callIDs = append(d.callIDs, "azure")
	d.prepare = func(x *exchange) error {
		if x.req.APIKey == "" {
			return &llm.KeyError{Provider: x.model.Provider}
		}
		wanted := wire.Azure{BaseURL: o.BaseURL, APIVersion: o.APIVersion, Deployment: o.Deployment}
		at, err := x.host.Azure(x.model, &x.req.Options, wanted, o.ResourceName)
		if err != nil {
			return err
		}
		x.name, x.url = at.Deployment, at.URL("/responses")
		x.session = x.req.SessionID // it is a key, and no matter of retention, here
		return nil
	}
	d.members = azureMembers
	d.call = azureCall
	return d
}

// azureMembers is the body of API without what the service does not know.
func azureMembers(x *exchange, w *wire.Body, c *conversation) {
	w.Text("model", x.name)
	c.input(w)
	w.Bool("stream", true)
	c.cacheKey(w)
	w.Bool("store", false)
	c.maxOutputTokens(w)
	c.temperature(w)
	c.serviceTier(w)
	c.tools(w)
	c.toolChoice(w)
	c.reasoning(w)
}

func azureCall(x *exchange, body []byte) (*wire.Call, error) {
	o := &x.req.Options
	header := x.host.Header(x.model, o)
	header.Set("Api-Key", o.APIKey)
	wire.Override(header, x.model, o)
	return &wire.Call{
		URL: x.url, Header: header, Body: body, ErrorText: wire.StructuredError("Azure OpenAI API error"),
	}, nil
}
