package responses

import (
	"slices"

	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

// openAI is the dialect of the wire format openai-responses.
func openAI() *dialect {
	return &dialect{
		id: ID, notStrict: "false", callIDs: []string{"openai", "openai-codex", "opencode"},
		prepare: func(x *exchange) error {
			if !authorized(x.model, &x.req.Options) {
				return &llm.KeyError{Provider: x.model.Provider}
			}
			return nil
		},
		members:    (*exchange).members,
		call:       (*exchange).call,
		errorEvent: statedError,
	}
}

// call is the request of the wire format openai-responses.
func (x *exchange) call(body []byte) (*wire.Call, error) {
	o := &x.req.Options
	base, err := x.host.BaseURL(x.model, o)
	if err != nil {
		return nil, err
	}
	header := x.host.Header(x.model, o)
	if o.APIKey != "" {
		header.Set("Authorization", "Bearer "+o.APIKey)
	}
	if x.session != "" {
		switch x.compat.SessionAffinityFormat {
		case "openrouter":
			header.Set("X-Session-Id", x.session)
		case "openai-nosession":
			header.Set("X-Client-Request-Id", x.session)
		default:
			header.Set("Session-Id", x.session)
			header.Set("X-Client-Request-Id", x.session)
		}
	}
	if x.model.Provider == "github-copilot" {
		wire.Copilot(header, x.req.Messages)
	}
	wire.Override(header, x.model, o)
	return &wire.Call{URL: wire.Join(base, "/responses"), Header: header, Body: body, ErrorText: errorText(x.model.Provider)}, nil
}

// authorized reports whether a request has a key or a header in its place.
func authorized(m *llm.Model, o *llm.Options) bool {
	if o.APIKey != "" {
		return true
	}
	for _, name := range []string{"authorization", "cf-aig-authorization"} {
		if v, _ := wire.HeaderOverride(name, m, o); v != nil && *v != "" {
			return true
		}
	}
	return false
}

// errorText words an error response of a provider.
func errorText(provider string) func(*wire.StatusError) string {
	prefix := provider + " API error"
	if provider == "openai" {
		prefix = "OpenAI API error"
	}
	words := wire.StructuredError(prefix)
	return func(e *wire.StatusError) string {
		text := words(e)
		if slices.Contains(usageLimits(), e.Code()) {
			text += "\nCheck your ChatGPT usage: https://chatgpt.com/settings/usage"
		}
		return text
	}
}

// usageLimits are the codes of a ChatGPT plan that is used up.
func usageLimits() []string {
	return []string{
		"subscription_sharing_usage_limit_exceeded", "subscription_sharing_workplace_individual_usage_limit_exceeded",
	}
}
