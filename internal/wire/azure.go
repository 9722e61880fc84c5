package wire

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/pinch-agent/pinch/llm"
)

// azureVersion is the version of the service that is asked for where nobody
// names one.
const azureVersion = "v1"

// Azure says where the requests for a model of Azure OpenAI go. As the input of
// Host.Azure its fields are what the request itself wants, "" for nothing.
type Azure struct {
	BaseURL    string // with the path in front of /responses and the like, without a slash at its end
	APIVersion string // for the query api-version
	Deployment string // sent as the model
}

// AzureURLError says that a base URL of Azure OpenAI cannot be used.
type AzureURLError struct{ BaseURL string } // "" when none is given

func (e *AzureURLError) Error() string {
	if e.BaseURL == "" {
		return "Azure OpenAI base URL is required. Set AZURE_OPENAI_BASE_URL or AZURE_OPENAI_RESOURCE_NAME, or pass azureBaseUrl, azureResourceName, or model.baseUrl."
	}
	return fmt.Sprintf("the Azure OpenAI base URL %q cannot be used: it has to begin with https:// or http:// and the name of a host", e.BaseURL)
}

// Azure completes what a request wants by the environment and the model. The
// base URL comes from the request, AZURE_OPENAI_BASE_URL, the resource's name
// (the request's, else AZURE_OPENAI_RESOURCE_NAME) or the model; the version
// from the request or AZURE_OPENAI_API_VERSION; the deployment from the request,
// AZURE_OPENAI_DEPLOYMENT_NAME_MAP (id=name,…) or the model's id. Blank values
// count for nothing. The error is an *AzureURLError or a *VariableError.
func (h *Host) Azure(m *llm.Model, o *llm.Options, wanted Azure, resource string) (Azure, error) {
	env := func(name string) string { return strings.TrimSpace(h.Env(o, name)) }
	first := func(v, name string) string {
		if v = strings.TrimSpace(v); v == "" {
			v = env(name)
		}
		return v
	}
	at := Azure{
		BaseURL:    first(wanted.BaseURL, "AZURE_OPENAI_BASE_URL"),
		APIVersion: first(wanted.APIVersion, "AZURE_OPENAI_API_VERSION"),
		Deployment: wanted.Deployment,
	}
	if at.BaseURL == "" {
		if name := first(resource, "AZURE_OPENAI_RESOURCE_NAME"); name != "" {
			at.BaseURL = "https://" + name + ".openai.azure.com/openai/v1"
		} else {
			var err error
			if at.BaseURL, err = h.BaseURL(m, o); err != nil {
				return Azure{}, err
			}
		}
	}
	var err error
	if at.BaseURL, err = azureBase(at.BaseURL); err != nil {
		return Azure{}, err
	}
	if at.APIVersion == "" {
		at.APIVersion = azureVersion
	}
	if at.Deployment == "" {
		at.Deployment = azureDeployment(env("AZURE_OPENAI_DEPLOYMENT_NAME_MAP"), m.ID)
	}
	return at, nil
}

// URL is the address of an operation, such as /responses. It names the version
// when there is one.
func (a *Azure) URL(operation string) string {
	base, query, _ := strings.Cut(a.BaseURL, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		values = url.Values{}
	}
	if a.APIVersion != "" {
		values.Set("api-version", a.APIVersion)
	}
	address := strings.TrimRight(base, "/") + operation
	if len(values) > 0 {
		address += "?" + values.Encode()
	}
	return address
}

// azureBase is a base URL without a slash at its end. On hosts of Azure itself
// the address of a resource, as the portal shows it, is completed.
func azureBase(base string) (string, error) {
	base = strings.TrimRight(strings.TrimSpace(base), "/")
	if base == "" {
		return "", &AzureURLError{}
	}
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return "", &AzureURLError{BaseURL: base}
	}
	u.Host = strings.ToLower(u.Host)
	path := strings.TrimRight(u.Path, "/")
	if ofAzure(u.Hostname()) && (path == "" || path == "/openai" || path == "/openai/v1/responses") {
		u.Path, u.RawPath, u.RawQuery, u.ForceQuery = "/openai/v1", "", "", false
	}
	u.Fragment, u.RawFragment = "", ""
	return strings.TrimRight(u.String(), "/"), nil
}

func ofAzure(host string) bool {
	for _, domain := range []string{".openai.azure.com", ".cognitiveservices.azure.com", ".ai.azure.com"} {
		if strings.HasSuffix(host, domain) {
			return true
		}
	}
	return false
}

// azureDeployment finds a model in a list of id=name pairs between commas, its
// id when it is not there. Of several entries the last one counts; what follows
// a second = is no part of the name.
func azureDeployment(list, id string) string {
	name := id
	for entry := range strings.SplitSeq(list, ",") {
		parts := strings.SplitN(entry, "=", 3)
		if len(parts) < 2 || strings.TrimSpace(parts[0]) != id {
			continue
		}
		if v := strings.TrimSpace(parts[1]); v != "" {
			name = v
		}
	}
	return name
}
