package wire

import (
	"fmt"
	"strings"

	"github.com/pinch-agent/pinch/llm"
)

// VariableError says that a base URL names an environment variable that is not set.
type VariableError struct {
	Name    string
	BaseURL string
}

func (e *VariableError) Error() string {
	return fmt.Sprintf("%s is not set; the base URL %s needs it", e.Name, e.BaseURL)
}

// BaseURL is the model's base URL without a slash at its end. Variables in
// braces, such as {CLOUDFLARE_ACCOUNT_ID}, are filled in from the environment;
// an unset one is a *VariableError.
func (h *Host) BaseURL(m *llm.Model, o *llm.Options) (string, error) {
	base := strings.TrimSuffix(m.BaseURL, "/")
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(base, "{")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed || !isVariable(name) {
			out.WriteByte('{')
			base = rest
			continue
		}
		value := h.Env(o, name)
		if value == "" {
			return "", &VariableError{Name: name, BaseURL: m.BaseURL}
		}
		out.WriteString(value)
		base = after
	}
}

// Join is the address of an operation: its path, which may have a query, behind
// the path of a base URL. A query that the base URL has, as some gateways want
// it, stays behind that.
func Join(base, path string) string {
	base, _, _ = strings.Cut(base, "#")
	base, query, has := strings.Cut(base, "?")
	address := strings.TrimRight(base, "/") + path
	switch {
	case !has || query == "":
		return address
	case strings.Contains(path, "?"):
		return address + "&" + query
	}
	return address + "?" + query
}

// isVariable reports whether name is an environment variable of capitals.
func isVariable(name string) bool {
	for _, c := range []byte(name) {
		if c != '_' && (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}
