package catalog

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestRemarksOnSlips(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"providers": {"x": {"base_url": "http://h", "apiKey": "k"}}}`, `1: /providers/x/base_url is unknown; did you mean baseUrl?`},
		{"{\n \"providers\": {\n  \"a/b\": {\n   \"apiKey\": \"k\",\n   \"model\": []}}}", `5: /providers/a~1b/model is unknown; did you mean models?`},
		{`{"providers": {"anthropic": {"modelOverrides": {"m": {"contextwindow": 5, "max_token": 7}}}}}`,
			"1: /providers/anthropic/modelOverrides/m/contextwindow is unknown; did you mean contextWindow?\n" +
				"1: /providers/anthropic/modelOverrides/m/max_token is unknown; did you mean maxTokens?"},
		{`{"providers": {"anthropic": {"compat": {"supportStore": true, "sendSessionAffinityHeader": true, "supportsSomethingNew": true}}}}`,
			"1: /providers/anthropic/compat/supportStore is unknown; did you mean supportsStore?\n" +
				"1: /providers/anthropic/compat/sendSessionAffinityHeader is unknown; did you mean sendSessionAffinityHeaders?"},
		{`{"providers": {"x": {"baseUrl": "http://h", "api": "a", "models": [{"id": "m", "thinkingLevelMap": {"Hihg": "h", "mine": "m"}, "cost": {"input": 1, "output": 1, "cacheRead": 0, "cache_write": 1, "cacheWrite": 0, "tier": []}}]}}}`,
			"1: /providers/x/models/0/thinkingLevelMap/Hihg is unknown; did you mean high?\n" +
				"1: /providers/x/models/0/cost/tier is unknown; did you mean tiers?"},
		// Members of people's own, and a known member under both names.
		{`{"$schema": "s", "providers": {"x": {"apiKey": "k", "apikey": "old", "note": "mine", "_baseUrl": 1, "baseUrl": "http://h"}}}`, ""},
		// A slip is why the file is wrong.
		{`{"provider": {}}`, "1: /provider is unknown; did you mean providers?"},
	} {
		file := filepath.Join(t.TempDir(), "models.json")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		catalog := New(Options{ModelsFile: file})
		var got []string
		for _, r := range catalog.Remarks() {
			got = append(got, strings.TrimPrefix(r.String(), file+":"))
		}
		if text := strings.Join(got, "\n"); text != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.text, text, c.want)
		}
		if err := catalog.Problem(); (err != nil) != strings.HasPrefix(c.text, `{"provider"`) {
			t.Errorf("%s: %v", c.text, err)
		}
	}
}

func TestSlipsAreBounded(t *testing.T) {
	text := []byte(`{"providers": {"x": {"apiKey": "k"`)
	for i := range 5 * maxLooked {
		text = fmt.Appendf(text, `, "baseur%d": 1`, i)
	}
	if _, remarks, err := readOverlay("m", append(text, "}}}"...)); err != nil || len(remarks) > maxProblems {
		t.Errorf("%d remarks, %v", len(remarks), err)
	}
}

// Every flag that a wire format looks at is one that is known here.
func TestFlagsOfWireFormatsAreKnown(t *testing.T) {
	files, err := filepath.Glob("../*/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	flag := regexp.MustCompile(`"((?:supports|requires|send)[A-Z]\w*)"`)
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, filepath.Join("..", "catalog")) {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range flag.FindAllSubmatch(text, -1) {
			found++
			if !slices.Contains(flags(), string(m[1])) {
				t.Errorf("%s: %s is missing in flags", file, m[1])
			}
		}
	}
	if found < len(flags())/2 {
		t.Errorf("only %d flags were found", found)
	}
}
