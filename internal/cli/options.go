package cli

import (
	"slices"
	"strings"

	"github.com/pinch-agent/pinch/internal/cli/record"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// options lists every built-in option. Short names may have several letters.
var options = [...]option{
	{long: "--mode", takes: value, set: setMode},
	{long: "--wire", takes: value, set: setWire},
	{long: "--print", short: "-p", takes: maybeSpeech, set: func(a *Args, v *string) {
		a.Print = true
		if v != nil {
			a.Messages = append(a.Messages, *v)
		}
	}},

	{long: "--continue", short: "-c", set: func(a *Args, _ *string) { a.Continue = true }},
	{long: "--resume", short: "-r", set: func(a *Args, _ *string) { a.Resume = true }},
	{long: "--session", takes: value, set: func(a *Args, v *string) { a.Session = v }},
	{long: "--session-id", takes: value, set: func(a *Args, v *string) { a.SessionID = v }},
	{long: "--fork", takes: value, set: func(a *Args, v *string) { a.Fork = v }},
	{long: "--session-dir", takes: value, set: func(a *Args, v *string) { a.SessionDir = *v }},
	{long: "--no-session", set: func(a *Args, _ *string) { a.NoSession = true }},
	{long: "--name", short: "-n", takes: value, set: setName},

	{long: "--provider", takes: value, set: func(a *Args, v *string) { a.Provider = *v }},
	{long: "--model", takes: value, set: func(a *Args, v *string) { a.Model = *v }},
	{long: "--models", takes: value, set: func(a *Args, v *string) { a.Models = splitList(*v) }},
	{long: "--thinking", takes: value, set: setThinking},
	{long: "--api-key", takes: value, set: func(a *Args, v *string) { a.APIKey = *v }},
	{long: "--record", takes: value, set: func(a *Args, v *string) {
		if a.Record = *v; a.Record == "" {
			a.errorf("--record requires the name of a file")
		}
	}},

	{long: "--tools", short: "-t", takes: value, set: setTools},
	{long: "--exclude-tools", short: "-xt", takes: value, set: func(a *Args, v *string) { a.ExcludeTools = splitList(*v) }},
	{long: "--no-tools", short: "-nt", set: func(a *Args, _ *string) { a.NoTools = true }},
	{long: "--no-builtin-tools", short: "-nbt", set: func(a *Args, _ *string) { a.NoBuiltinTools = true }},
	{long: "--no-mcp", set: func(a *Args, _ *string) { a.NoMCP = true }},

	{long: "--extension", short: "-e", takes: value, set: func(a *Args, v *string) { a.Extensions = append(a.Extensions, *v) }},
	{long: "--no-extensions", short: "-ne", set: func(a *Args, _ *string) { a.NoExtensions = true }},
	{long: "--skill", takes: value, set: func(a *Args, v *string) { a.Skills = append(a.Skills, *v) }},
	{long: "--no-skills", short: "-ns", set: func(a *Args, _ *string) { a.NoSkills = true }},
	{long: "--prompt-template", takes: value, set: func(a *Args, v *string) { a.PromptTemplates = append(a.PromptTemplates, *v) }},
	{long: "--no-prompt-templates", short: "-np", set: func(a *Args, _ *string) { a.NoTemplates = true }},
	{long: "--theme", takes: value, set: func(a *Args, v *string) { a.Themes = append(a.Themes, *v) }},
	{long: "--no-themes", set: func(a *Args, _ *string) { a.NoThemes = true }},
	{long: "--no-context-files", short: "-nc", set: func(a *Args, _ *string) { a.NoContextFiles = true }},
	{long: "--use-theme", takes: value, set: func(a *Args, v *string) { a.UseTheme = *v }},

	{long: "--system-prompt", takes: value, set: func(a *Args, v *string) { a.SystemPrompt = v }},
	{long: "--append-system-prompt", takes: value, set: func(a *Args, v *string) {
		a.AppendSystemPrompt = append(a.AppendSystemPrompt, *v)
	}},

	{long: "--tui-mode", takes: value, set: setTUIMode},
	{long: "--verbose", set: func(a *Args, _ *string) { a.Verbose = true }},
	{long: "--approve", short: "-a", set: func(a *Args, _ *string) { a.Approve = new(true) }},
	{long: "--no-approve", short: "-na", set: func(a *Args, _ *string) { a.Approve = new(false) }},
	{long: "--offline", set: func(a *Args, _ *string) { a.Offline = true }},
	{long: "--export", takes: value, set: func(a *Args, v *string) { a.Export = *v }},
	{long: "--list-models", takes: maybeValue, set: func(a *Args, v *string) {
		if v == nil {
			v = new("")
		}
		a.ListModels = v
	}},
	{long: "--help", short: "-h", set: func(a *Args, _ *string) { a.Help = true }},
	{long: "--version", short: "-v", set: func(a *Args, _ *string) { a.Version = true }},
}

func setMode(a *Args, v *string) {
	switch m := Mode(*v); m {
	case ModeText, ModeJSON, ModeRPC:
		a.Mode = m
	default:
		a.errorf("Invalid mode \"%s\". Valid values: text, json, rpc", *v)
	}
}

func setWire(a *Args, v *string) {
	switch *v {
	case "current":
		a.Wire = record.Current
	case "legacy":
		a.Wire = record.Legacy
	default:
		a.errorf("Invalid form of records \"%s\". Valid values: current, legacy", *v)
	}
}

func setName(a *Args, v *string) {
	a.Name = jsonwire.Trim(*v)
	if a.Name == "" {
		a.errorf("--name requires a non-empty value")
	}
}

func setThinking(a *Args, v *string) {
	if level := llm.ThinkingLevel(*v); slices.Contains(llm.ThinkingLevels(), level) {
		a.Thinking = level
		return
	}
	a.warnf("Invalid thinking level \"%s\". Valid values: %s", *v, levelNames())
}

func levelNames() string {
	var names []string
	for _, l := range llm.ThinkingLevels() {
		names = append(names, string(l))
	}
	return strings.Join(names, ", ")
}

func setTools(a *Args, v *string) {
	a.Tools = splitList(*v)
	if a.Tools == nil {
		a.Tools = []string{}
	}
}

func setTUIMode(a *Args, v *string) {
	switch *v {
	case "regular", "fullscreen":
		a.TUIMode = *v
	default:
		a.errorf("Invalid TUI mode \"%s\". Valid values: regular, fullscreen", *v)
	}
}

// splitList is the parts of a comma list, trimmed, empty ones left out.
func splitList(s string) []string {
	var out []string
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}
