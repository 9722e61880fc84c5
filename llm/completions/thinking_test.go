package completions

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

func TestThinkingFields(t *testing.T) {
	word := func(s string) *string { return &s }
	mapped := map[llm.ThinkingLevel]*string{llm.LevelHigh: word("HIGH"), llm.LevelOff: word("no")}
	never := map[llm.ThinkingLevel]*string{llm.LevelOff: nil, llm.LevelHigh: nil}
	template := jsontext.Value(`{"on":{"$var":"thinking.enabled"},"eff":{"$var":"thinking.effort"},"cap":{"$var":"thinking.budget"},` +
		`"gone":{"$var":"thinking.other"},"only":{"$var":"thinking.enabled","omitWhenOff":true},"x":{"a": 1.50}}`)
	for _, c := range []struct {
		format  ThinkingFormat
		level   llm.ThinkingLevel
		effort  bool
		mapping map[llm.ThinkingLevel]*string
		want    string
	}{
		{FormatOpenAI, "high", true, nil, `"reasoning_effort":"high"`},
		{FormatOpenAI, "high", true, mapped, `"reasoning_effort":"HIGH"`},
		{FormatOpenAI, "high", false, mapped, ``},
		{FormatOpenAI, "", true, nil, ``},
		{FormatOpenAI, "", true, mapped, `"reasoning_effort":"no"`},
		{FormatOpenAI, "", true, never, ``},
		{FormatOpenAI, "", false, mapped, ``},
		{"something-new", "high", true, nil, `"reasoning_effort":"high"`},

		{FormatOpenRouter, "high", false, mapped, `"reasoning":{"effort":"HIGH"}`},
		{FormatOpenRouter, "", false, nil, `"reasoning":{"effort":"none"}`},
		{FormatOpenRouter, "", false, mapped, `"reasoning":{"effort":"no"}`},
		{FormatOpenRouter, "", false, never, ``},

		{FormatDeepSeek, "high", true, nil, `"thinking":{"type":"enabled"},"reasoning_effort":"high"`},
		{FormatDeepSeek, "high", false, nil, `"thinking":{"type":"enabled"}`},
		{FormatDeepSeek, "", true, nil, `"thinking":{"type":"disabled"}`},
		{FormatDeepSeek, "", true, never, ``},

		{FormatZai, "high", true, mapped, `"thinking":{"type":"enabled","clear_thinking":false},"reasoning_effort":"HIGH"`},
		{FormatZai, "high", true, never, `"thinking":{"type":"enabled","clear_thinking":false}`},
		{FormatZai, "high", false, nil, `"thinking":{"type":"enabled","clear_thinking":false}`},
		{FormatZai, "", true, never, `"thinking":{"type":"disabled"}`},

		{FormatTogether, "high", true, nil, `"reasoning":{"enabled":true},"reasoning_effort":"high"`},
		{FormatTogether, "", true, mapped, `"reasoning":{"enabled":false}`},

		{FormatQwen, "high", true, nil, `"enable_thinking":true,"reasoning_effort":"high"`},
		{FormatQwen, "", true, mapped, `"enable_thinking":false`},
		{FormatQwenChatTemplate, "high", true, nil, `"chat_template_kwargs":{"enable_thinking":true,"preserve_thinking":true}`},
		{FormatQwenChatTemplate, "", true, nil, `"chat_template_kwargs":{"enable_thinking":false,"preserve_thinking":true}`},

		{FormatChatTemplate, "high", true, mapped, `"chat_template_kwargs":{"on":true,"eff":"HIGH","cap":77,"only":true,"x":{"a":1.5}}`},
		{FormatChatTemplate, "high", true, never, `"chat_template_kwargs":{"on":true,"cap":77,"only":true,"x":{"a":1.5}}`},
		{FormatChatTemplate, "", true, nil, `"chat_template_kwargs":{"on":false,"x":{"a":1.5}}`},
		{FormatChatTemplate, "", true, mapped, `"chat_template_kwargs":{"on":false,"eff":"no","x":{"a":1.5}}`},
		{FormatBaseten, "high", true, nil, `"chat_template_args":{"on":true,"eff":"high","cap":77,"only":true,"x":{"a":1.5}},"reasoning_effort":"high"`},
		{FormatBaseten, "", true, mapped, `"chat_template_args":{"on":false,"eff":"no","x":{"a":1.5}},"reasoning_effort":"no"`},

		{FormatString, "high", false, mapped, `"thinking":"HIGH"`},
		{FormatString, "", false, nil, `"thinking":"none"`},
		{FormatString, "", false, mapped, `"thinking":"no"`},
		{FormatString, "", false, never, ``},

		{FormatAntLing, "high", false, mapped, `"reasoning":{"effort":"HIGH"}`},
		{FormatAntLing, "high", true, nil, ``},
		{FormatAntLing, "high", true, never, ``},
		{FormatAntLing, "", true, mapped, `"reasoning_effort":"no"`},
		{FormatAntLing, "", false, mapped, ``},
	} {
		w := wire.BeginBody(nil, nil)
		th := thinking{level: c.level, mapping: c.mapping, budget: 77}
		th.append(w, &Compat{
			ThinkingFormat: c.format, SupportsReasoningEffort: c.effort, ChatTemplateKwargs: template, ChatTemplateArgs: template,
		})
		if got := string(w.End()); got != "{"+c.want+"}" {
			t.Errorf("%s %q effort=%t:\n got %s\nwant {%s}", c.format, c.level, c.effort, got, c.want)
		}
	}
	w := wire.BeginBody(nil, nil)
	(&thinking{level: "high"}).append(w, &Compat{ThinkingFormat: FormatChatTemplate})
	if got := string(w.End()); got != "{}" {
		t.Errorf("an empty template was sent: %s", got)
	}
}
