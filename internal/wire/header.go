package wire

import (
	"cmp"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pinch-agent/pinch/llm"
)

// Header makes the header fields of a JSON request: the identity of the
// sender, then what the model asks for. Formats add theirs and finish with
// Override, as the caller's fields win over all.
func (h *Host) Header(m *llm.Model, o *llm.Options) http.Header {
	header := http.Header{}
	header.Set("Accept", "application/json")
	header.Set("Content-Type", "application/json")
	header.Set("User-Agent", h.UserAgent(o.Identity.UserAgent))
	attribute(header, m, o)
	return header
}

// Override applies the model's own header fields and then those of the request,
// without regard to case; a nil value takes a field away.
func Override(header http.Header, m *llm.Model, o *llm.Options) {
	for name, v := range m.Headers {
		header.Set(name, v)
	}
	for name, v := range o.Headers {
		switch {
		case v != nil:
			header.Set(name, *v)
		case http.CanonicalHeaderKey(name) == "User-Agent":
			header.Set(name, "") // absent, it would be Go's own
		default:
			header.Del(name)
		}
	}
}

// HeaderOverride finds what the request, else the model, says about a header
// field. ok is false when neither says anything; value is nil when the field
// is to be left out.
func HeaderOverride(name string, m *llm.Model, o *llm.Options) (value *string, ok bool) {
	for k, v := range o.Headers {
		if strings.EqualFold(k, name) {
			return v, true
		}
	}
	for k, v := range m.Headers {
		if strings.EqualFold(k, name) {
			return &v, true
		}
	}
	return nil, false
}

// UserAgent is the User-Agent of requests: custom when given, the bare name
// for "short", else pinch/<version> (<os>; go; <arch>).
func (h *Host) UserAgent(custom string) string {
	switch custom {
	case "", "detailed":
		return "pinch/" + h.version() + " (" + runtime.GOOS + "; go; " + runtime.GOARCH + ")"
	case "short":
		return "pinch"
	default:
		return custom
	}
}

func (h *Host) version() string {
	if h.Version == "" {
		return "dev"
	}
	return h.Version
}

// attribute names the product to gateways that list their traffic by product.
func attribute(header http.Header, m *llm.Model, o *llm.Options) {
	host := hostname(m.BaseURL)
	openCode := m.Provider == "opencode" || m.Provider == "opencode-go" || host == "opencode.ai"
	if openCode && o.SessionID != "" {
		header.Set("X-Opencode-Session", o.SessionID)
	}
	a := o.Identity.Attribution
	if a == nil {
		return
	}
	switch {
	case IsOpenRouter(m):
		header.Set("HTTP-Referer", a.URL)
		header.Set("X-OpenRouter-Title", a.Name)
		if len(a.Categories) > 0 {
			header.Set("X-OpenRouter-Categories", strings.Join(a.Categories, ","))
		}
	case m.Provider == "nvidia" || host == "integrate.api.nvidia.com":
		header.Set("X-BILLING-INVOKE-ORIGIN", capital(a.Name))
	case openCode:
		header.Set("X-Opencode-Client", a.Name)
	}
}

// IsOpenRouter reports whether requests for m go to OpenRouter.
func IsOpenRouter(m *llm.Model) bool {
	return m.Provider == "openrouter" || strings.Contains(m.BaseURL, "openrouter.ai")
}

func hostname(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

func capital(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return s
	}
	return string(unicode.ToUpper(r)) + s[n:]
}

// Copilot adds the header fields that GitHub Copilot bills by: who caused the
// request, and whether it shows pictures.
func Copilot(header http.Header, messages []llm.Message) {
	initiator := "agent"
	if n := len(messages); n > 0 && messages[n-1].Role() == llm.RoleUser {
		initiator = "user"
	}
	header.Set("X-Initiator", initiator)
	header.Set("Openai-Intent", "conversation-edits")
	for _, m := range messages {
		var blocks []llm.Block
		switch m := m.(type) {
		case *llm.User:
			blocks = m.Content.Blocks
		case *llm.ToolResult:
			blocks = m.Content
		}
		for _, b := range blocks {
			if _, ok := b.(*llm.Image); ok {
				header.Set("Copilot-Vision-Request", "true")
				return
			}
		}
	}
}

// CacheRetention is how long the caller wants prompts kept: none, short or long.
func (h *Host) CacheRetention(o *llm.Options) string {
	switch {
	case o.CacheRetention != "":
		return o.CacheRetention
	case cmp.Or(h.Env(o, "PINCH_CACHE_RETENTION"), h.Env(o, "PI_CACHE_RETENTION")) == "long":
		return "long"
	default:
		return "short"
	}
}
