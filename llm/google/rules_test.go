package google

import (
	"context"
	"testing"

	"github.com/pinch-agent/pinch/internal/wire/wiretest"
	"github.com/pinch-agent/pinch/llm"
)

func TestRules(t *testing.T) {
	const level, ids, images = 8, 4, 1 // 2 is strict tools
	for id, want := range map[string]int{
		"gemini-2.5-pro": 0, "gemini-2.0-flash": 0, "gemini-1.5-pro": 0,
		"gemini-3-pro": 15, "gemini-3.1-flash-lite": 15, "Gemini-3-Flash-Preview": 15,
		"gemini-3-nano": 7, "gemini-3": 7, "gemini-3.1": 7, "gemini-live-3-flash": 7,
		"gemini-4-argon": 15, "gemini-4.5-pro": 15, "gemini-10": 15, "gemini-99-x": 15, "gemini-100-x": 7, "gemini-04": 7,
		"gemini-flash-latest": level | images, "gemini-flash-lite-latest": level | images, "gemini-pro-latest": images, "x/gemini-flash-latest": images,
		"gemma-4-9b": level | images, "gemma4": level | images, "gemma-3": images,
		"claude-sonnet": ids | images, "gpt-oss-120b": ids | images, "my-claude-x": images,
		"proxy/gemini-3-pro": level | images, "gemini-x-gemini-3-pro": level | images, "gemini-": images, "other": images, "": images,
	} {
		r, got := RulesOf(id), 0
		for i, on := range []bool{r.ResultImages, r.StrictTools, r.CallIDs, r.ThinkingLevel} {
			if on {
				got |= 1 << i
			}
		}
		if got != want {
			t.Errorf("%s: got %04b, want %04b", id, got, want)
		}
	}
}

func TestThinking(t *testing.T) {
	words := func(pairs ...string) map[llm.ThinkingLevel]*string {
		m := map[llm.ThinkingLevel]*string{}
		for i := 0; i < len(pairs); i += 2 {
			m[llm.ThinkingLevel(pairs[i])] = nil
			if pairs[i+1] != "null" {
				m[llm.ThinkingLevel(pairs[i])] = &pairs[i+1]
			}
		}
		return m
	}
	const pro, flash, lite, next = "gemini-2.5-pro", "gemini-2.5-flash", "gemini-2.5-flash-lite", "gemini-3-pro"
	for _, c := range []struct {
		id      string
		vertex  bool
		mapping map[llm.ThinkingLevel]*string
		level   llm.ThinkingLevel
		budgets map[llm.ThinkingLevel]int
		want    string
	}{
		{pro, false, nil, "", nil, `{"thinkingBudget":0}`},
		{pro, false, nil, llm.LevelOff, nil, `{"thinkingBudget":0}`},
		{pro, false, words("off", "null"), "", nil, `{"thinkingBudget":0}`},
		{pro, false, nil, llm.LevelMinimal, nil, `{"includeThoughts":true,"thinkingBudget":128}`},
		{pro, false, nil, llm.LevelLow, nil, `{"includeThoughts":true,"thinkingBudget":2048}`},
		{pro, false, nil, llm.LevelMedium, nil, `{"includeThoughts":true,"thinkingBudget":8192}`},
		{pro, false, nil, llm.LevelHigh, nil, `{"includeThoughts":true,"thinkingBudget":32768}`},
		{pro, false, nil, llm.LevelMax, nil, `{"includeThoughts":true,"thinkingBudget":32768}`},
		{pro, false, words("xhigh", "high"), llm.LevelXHigh, map[llm.ThinkingLevel]int{llm.LevelHigh: 7}, `{"includeThoughts":true,"thinkingBudget":7}`},
		{pro, false, words("high", "LOW"), llm.LevelHigh, map[llm.ThinkingLevel]int{llm.LevelHigh: 7}, `{"includeThoughts":true,"thinkingBudget":2048}`},
		{pro, false, words("max", "ultra"), llm.LevelMax, nil, `{"includeThoughts":true,"thinkingBudget":32768}`},
		{flash, false, nil, llm.LevelMinimal, nil, `{"includeThoughts":true,"thinkingBudget":128}`},
		{flash, false, nil, llm.LevelHigh, nil, `{"includeThoughts":true,"thinkingBudget":24576}`},
		{lite, false, nil, llm.LevelMinimal, nil, `{"includeThoughts":true,"thinkingBudget":512}`},
		{lite, true, nil, llm.LevelMinimal, nil, `{"includeThoughts":true,"thinkingBudget":128}`},
		{"other", false, nil, llm.LevelLow, nil, `{"includeThoughts":true,"thinkingBudget":-1}`},
		{"other", false, nil, llm.LevelLow, map[llm.ThinkingLevel]int{llm.LevelLow: 5}, `{"includeThoughts":true,"thinkingBudget":5}`},
		{next, false, nil, "", nil, `{"thinkingBudget":0}`},
		{next, false, nil, llm.LevelMinimal, nil, `{"includeThoughts":true,"thinkingLevel":"MINIMAL"}`},
		{next, false, nil, llm.LevelMedium, map[llm.ThinkingLevel]int{llm.LevelMedium: 5}, `{"includeThoughts":true,"thinkingLevel":"MEDIUM"}`},
		{next, false, nil, llm.LevelMax, nil, `{"includeThoughts":true,"thinkingLevel":"HIGH"}`},
		{next, false, words("max", "HIGH", "high", "MEDIUM"), llm.LevelHigh, nil, `{"includeThoughts":true,"thinkingLevel":"MEDIUM"}`},
		{next, false, words("medium", "null", "high", "high"), llm.LevelMedium, nil, `{"includeThoughts":true,"thinkingLevel":"HIGH"}`},
		{next, false, words("off", "null", "minimal", "null", "low", "LOW"), "", nil, `{"thinkingLevel":"LOW"}`},
		{next, false, words("low", "ultra"), llm.LevelLow, nil, `the thinking level "ultra", which thinkingLevelMap has for the level low, is unknown to model gemini-3-pro: use MINIMAL, LOW, MEDIUM or HIGH`},
	} {
		m := testModel(c.id)
		m.ThinkingLevelMap = c.mapping
		got := ""
		cfg, err := askThinking(m, c.vertex, c.level, c.budgets)
		if err != nil {
			got = err.Error()
		} else {
			got = string(cfg.append(nil))
		}
		if got != c.want {
			t.Errorf("%s %s: got %s, want %s", c.id, c.level, got, c.want)
		}
		m.Reasoning = false
		if cfg, err := askThinking(m, c.vertex, c.level, c.budgets); cfg != nil || err != nil {
			t.Errorf("%s %s without reasoning: got %v, %v", c.id, c.level, cfg, err)
		}
	}
}

func TestOwnThinking(t *testing.T) {
	for _, c := range []struct {
		id   string
		in   *Thinking
		want string
	}{
		{"gemini-2.5-pro", nil, ``},
		{"gemini-2.5-pro", &Thinking{}, `{"thinkingBudget":0}`},
		{"gemini-2.5-pro", &Thinking{Enabled: true}, `{"includeThoughts":true}`},
		{"gemini-2.5-pro", &Thinking{Enabled: true, Budget: new(-1)}, `{"includeThoughts":true,"thinkingBudget":-1}`},
		{"gemini-3-pro", &Thinking{Enabled: true, Budget: new(9), Level: "low"}, `{"includeThoughts":true,"thinkingLevel":"LOW"}`},
	} {
		req := keyed(llm.UserText("u", 1))
		req.Reasoning = llm.LevelHigh // has no say
		got := requestOf(t, New, func(a *API) (*llm.Stream, error) {
			return a.StreamWith(context.Background(), testModel(c.id), req, Options{Thinking: c.in}), nil
		})
		if cfg := member(got.Body, "generationConfig", "thinkingConfig"); cfg != c.want {
			t.Errorf("%+v: got %s, want %s", c.in, cfg, c.want)
		}
	}
	a := New(Config{Client: wiretest.Answers(), Getenv: wiretest.NoEnv})
	m := a.StreamWith(context.Background(), testModel("gemini-3-pro"), keyed(llm.UserText("u", 1)), Options{Thinking: &Thinking{Enabled: true, Level: "much"}}).Result()
	if want := `the thinking level "much" is unknown to model gemini-3-pro: use MINIMAL, LOW, MEDIUM or HIGH`; m.ErrorMessage != want {
		t.Errorf("got %q", m.ErrorMessage)
	}
}
