package wire

import (
	"errors"
	"testing"

	"github.com/pinch-agent/pinch/llm"
)

func TestBaseURLFillsVariables(t *testing.T) {
	h := Host{Getenv: func(name string) string { return map[string]string{"ACCOUNT": "process", "GATEWAY_2": "g"}[name] }}.Default()
	o := &llm.Options{Env: map[string]string{"ACCOUNT": "own"}}
	for base, want := range map[string]string{
		"https://x.test/v1/":                     "https://x.test/v1",
		"https://x.test/{ACCOUNT}/{GATEWAY_2}/a": "https://x.test/own/g/a",
		"https://{location}.x.test/{}":           "https://{location}.x.test/{}",
		"https://x.test/{ACCOUNT":                "https://x.test/{ACCOUNT",
	} {
		got, err := h.BaseURL(&llm.Model{BaseURL: base}, o)
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", base, got, err, want)
		}
	}
	_, err := h.BaseURL(&llm.Model{BaseURL: "https://x.test/{MISSING}"}, o)
	var unset *VariableError
	if !errors.As(err, &unset) || unset.Name != "MISSING" {
		t.Errorf("unset variable: %v", err)
	}
}

func TestJoin(t *testing.T) {
	for _, c := range []struct{ base, path, want string }{
		{"https://x.test/v1", "/chat", "https://x.test/v1/chat"},
		{"https://x.test/v1/", "/chat", "https://x.test/v1/chat"},
		{"https://x.test/v1?api-version=2", "/chat", "https://x.test/v1/chat?api-version=2"},
		{"https://x.test/v1/?a=1&b=2#top", "/chat?alt=sse", "https://x.test/v1/chat?alt=sse&a=1&b=2"},
		{"https://x.test?", "/chat", "https://x.test/chat"},
	} {
		if got := Join(c.base, c.path); got != c.want {
			t.Errorf("%s and %s: got %s, want %s", c.base, c.path, got, c.want)
		}
	}
}
