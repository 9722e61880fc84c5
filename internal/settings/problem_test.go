package settings

import (
	"strings"
	"testing"
)

func TestProblems(t *testing.T) {
	for _, c := range []struct{ text, want, root string }{
		{`{"theme": "dark"}`, "", `{"theme":"dark"}`},
		{`{"theme": null, "retry": null}`, "", `{"theme":null,"retry":null}`},
		{`{"theme": 3, "tuiMode": "regular"}`, "s:1:11: theme is 3 and has to be text; it does not count", `{"tuiMode":"regular"}`},
		{"{\n  // how often\n  \"retry\": {\"maxRetries\": \"many\", \"enabled\": false},\n}", `s:3:27: retry.maxRetries is "many" and has to be a number; it does not count`, `{"retry":{"enabled":false}}`},
		{`{"retry": "never"}`, `s:1:11: retry is "never" and has to be an object; it does not count`, `{}`},
		{`{"steeringMode": "some"}`, `s:1:18: steeringMode is "some" and has to be "all" or "one-at-a-time"; it does not count`, `{}`},
		{`{"autocompleteMaxVisible": 2}`, `s:1:28: autocompleteMaxVisible is 2 and has to be a number from 3 to 20; it does not count`, `{}`},
		{`{"httpIdleTimeoutMs": "never"}`, `s:1:23: httpIdleTimeoutMs is "never" and has to be a number from 0 on, or "disabled"; it does not count`, `{}`},
		{`{"skills": ["a", 1, "b"]}`, `s:1:18: skills[1] is 1 and has to be text; it does not count`, `{"skills":["a","b"]}`},
		{`{"skills": "a"}`, `s:1:12: skills is "a" and has to be a list of texts, or an object; it does not count`, `{}`},
		{`{"packages": ["npm:x", {"source": "y", "skills": 1}]}`, `s:1:50: packages[1].skills is 1 and has to be a list of texts; it does not count`, `{"packages":["npm:x",{"source":"y"}]}`},
		{`{"modelThinkingLevels": {"p/m": "huge", "p/n": "low"}}`, `s:1:33: modelThinkingLevels.p/m is "huge" and has to be "off", "minimal", "low", "medium", "high", "xhigh" or "max"; it does not count`, `{"modelThinkingLevels":{"p/n":"low"}}`},
		{`{"compaction": {"reserveTokens": -1, "enabled": false}}`, `s:1:34: compaction.reserveTokens is -1 and has to be a whole number from 0 on; correct it`, `{"compaction":{"enabled":false,"reserveTokens":-1}}`},
		{`{"httpProxy": ["hunter2"]}`, `s:1:15: httpProxy is something else and has to be text; it does not count`, `{}`},
		{`{"defaultModl": "x"}`, `s:1:2: defaultModl is no setting; did you mean defaultModel?`, `{"defaultModl":"x"}`},
		{`{"retry": {"maxretries": 1}}`, `s:1:12: retry.maxretries is no setting; did you mean retry.maxRetries?`, `{"retry":{"maxretries":1}}`},
		{`{"defaultModl": "x", "defaultModel": "y"}`, `s:1:2: defaultModl is no setting of this version; it is kept`, `{"defaultModl":"x","defaultModel":"y"}`},
		{`{"mine": {"a": [1]}}`, `s:1:2: mine is no setting of this version; it is kept`, `{"mine":{"a": [1]}}`},
		{`{"theme": "a", "theme": "b"}`, `s:1:16: theme stands here a second time; the last one counts`, `{"theme":"b"}`},
		{`{"theme": "a", "theme": 1}`, "s:1:16: theme stands here a second time; the last one counts\ns:1:25: theme is 1 and has to be text; it does not count", `{}`},
		{`{"queueMode": "all", "websockets": true, "apiKeys": {"a": "k"}}`, "", `{"apiKeys":{"a":"k"},"steeringMode":"all","transport":"websocket"}`},
		{`{"$schema": "https://example.com", "theme": "dark"}`, "", `{"$schema":"https://example.com","theme":"dark"}`},
		{"\uFEFF{\"theme\": 1}", "s:1:11: theme is 1 and has to be text; it does not count", `{}`},
		{`{"theme": "` + strings.Repeat("é", 30) + `", "quietStartup": "` + strings.Repeat("é", 30) + `"}`,
			`s:1:91: quietStartup is "` + strings.Repeat("é", 19) + `… and has to be true or false, or "header"; it does not count`,
			`{"theme":"` + strings.Repeat("é", 30) + `"}`},
	} {
		f := Parse("s", []byte(c.text))
		if f.Err != nil {
			t.Errorf("%s: %v", c.text, f.Err)
			continue
		}
		var got []string
		for _, p := range f.Problems {
			got = append(got, p.Error())
		}
		if text := strings.Join(got, "\n"); text != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.text, text, c.want)
		}
		if root := string(f.root.append(nil)); root != c.root {
			t.Errorf("%s counts as %s, want %s", c.text, root, c.root)
		}
	}
}

func TestProjectProblems(t *testing.T) {
	f := newFile("s", []byte(`{"httpProxy": "http://x", "sessionDir": "s"}`), true)
	if len(f.Problems) != 1 || f.Problems[0].Kind != Misplaced || f.Problems[0].Error() != "s:1:2: httpProxy counts in the user's own settings only" {
		t.Errorf("%v", f.Problems)
	}
}

func TestSplit(t *testing.T) {
	for name, want := range map[string]string{
		"theme":                                   "theme",
		"retry.provider.maxRetries":               "retry|provider|maxRetries",
		"modelThinkingLevels.openai/gpt-5.5":      "modelThinkingLevels|openai/gpt-5.5",
		"compaction.modelOverrides.a/b.1":         "compaction|modelOverrides|a/b.1",
		"compaction.modelOverrides.a/b.1.enabled": "compaction|modelOverrides|a/b.1|enabled",
		"thinkingBudgets.low":                     "thinkingBudgets|low",
		"mine.own":                                "mine|own",
		"themeOf.mine":                            "themeOf|mine",
	} {
		if got := strings.Join(split(name), "|"); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
