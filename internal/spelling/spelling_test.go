package spelling

import (
	"strings"
	"testing"
)

func TestMeant(t *testing.T) {
	members := []string{"id", "api", "name", "cost", "baseUrl", "headers", "models", "modelsUrl", "modelOverrides", "contextWindow"}
	for name, want := range map[string]string{
		"baseurl":                  "baseUrl",
		"BASEURL":                  "baseUrl",
		"base_url":                 "baseUrl",
		"base-url":                 "baseUrl",
		"basUrl":                   "baseUrl",
		"model":                    "models",
		"costs":                    "cost",
		"ids":                      "id",
		"API":                      "api",
		"header":                   "headers",
		"modelOverride":            "modelOverrides",
		"contxtWindw":              "contextWindow",
		"context_windows":          "contextWindow",
		"apj":                      "", // too short to tell
		"nomen":                    "",
		"comment":                  "",
		"_note":                    "",
		"":                         "",
		"_":                        "",
		strings.Repeat("name", 20): "",
	} {
		if got := Meant(name, members); got != want {
			t.Errorf("%q is taken for %q, want %q", name, got, want)
		}
	}
	if got := Meant("maxTokent", []string{"minTokent", "maxToken", "maxTokents"}); got != "maxTokents" {
		t.Errorf("not the nearest: %q", got)
	}
	if got := Meant("maxToken1", []string{"maxTokenA", "minTokens", "maxTokenB"}); got != "" {
		t.Errorf("one of several was chosen: %q", got)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"theme", "theme", 0}, {"theme", "teme", 1}, {"theme", "htheme", 1}, {"theme", "thmee", 1}, {"theme", "thumb", 2}, {"abc", "xyz", 3}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("%s, %s: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
