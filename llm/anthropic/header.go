package anthropic

import (
	"net/http"
	"slices"
	"strings"

	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

// hasAuthHeader reports whether the caller's or the model's header fields
// authorize the request.
func hasAuthHeader(m *llm.Model, o *llm.Options) bool {
	for _, name := range []string{"authorization", "x-api-key", "cf-aig-authorization"} {
		if v, ok := wire.HeaderOverride(name, m, o); ok && v != nil && *v != "" {
			return true
		}
	}
	return false
}

// isAccessToken reports whether a key is an OAuth access token.
func isAccessToken(key string) bool { return strings.Contains(key, "sk-ant-oat") }

func (x *exchange) header(betas []string) http.Header {
	m, o := x.model, &x.req.Options
	h := x.api.host.Header(m, o)
	h.Set("Anthropic-Version", protocol)
	switch {
	case m.Provider == "github-copilot":
		if x.key != "" {
			h.Set("Authorization", "Bearer "+x.key)
		}
		wire.Copilot(h, x.req.Messages)
	case isAccessToken(x.key), x.workload != (identity{}):
		h.Set("Authorization", "Bearer "+x.key)
	default:
		if x.key != "" {
			h.Set("X-Api-Key", x.key)
		}
		if x.compat.SessionAffinity && o.SessionID != "" && x.api.host.CacheRetention(o) != "none" {
			name := "X-Session-Affinity"
			if x.compat.SessionAffinityFormat == "openrouter" {
				name = "X-Session-Id"
			}
			h.Set(name, o.SessionID)
		}
	}
	wire.Override(h, m, o)
	if v, ok := wire.HeaderOverride("anthropic-beta", m, o); ok {
		betas = nil
		if v != nil {
			betas = splitList(*v)
		}
	}
	h.Del("Anthropic-Beta")
	if len(betas) > 0 {
		h.Set("Anthropic-Beta", strings.Join(betas, ","))
	}
	return h
}

func splitList(s string) []string {
	var out []string
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" && !slices.Contains(out, part) {
			out = append(out, part)
		}
	}
	return out
}
