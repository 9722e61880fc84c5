package cli

import (
	"slices"
	"strings"

	"github.com/pinch-agent/pinch/internal/cli/record"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// options lists every built-in option. Short names may have several letters. Those
// without a group belong to parts that are not here yet: help passes them over.
var options = [...]option{
	{long: "--mode", group: forOutput, arg: "text|json|rpc", about: "what to write; text prints the last answer", words: []string{"text", "json", "rpc"}, takes: value, set: setMode},
	{long: "--wire", group: forOutput, arg: "legacy", about: "JSON and RPC mode: updates as pi before 1.0 wrote them", words: []string{"current", "legacy"}, takes: value, set: setWire},
	{long: "--print", group: forOutput, about: "one shot; also when input or output is no terminal", short: "-p", takes: maybeSpeech, set: func(a *Args, v *string) {
		a.Print = true
		if v != nil {
			a.Messages = append(a.Messages, *v)
		}
	}},

	{long: "--continue", group: forSessions, about: "go on with the newest session of this folder", short: "-c", set: func(a *Args, _ *string) { a.Continue = true }},
	{long: "--resume", about: "choose a session, in the interactive terminal", short: "-r", set: func(a *Args, _ *string) { a.Resume = true }},
	{long: "--session", group: forSessions, arg: "PATH|ID", about: "open a session; the beginning of an id is enough", files: true, lists: listedSessions, takes: value, set: func(a *Args, v *string) { a.Session = v }},
	{long: "--session-id", group: forSessions, arg: "ID", about: "open the session of exactly this id, or create it", takes: value, set: func(a *Args, v *string) { a.SessionID = v }},
	{long: "--fork", group: forSessions, arg: "PATH|ID", about: "copy a session and go on with the copy", files: true, lists: listedSessions, takes: value, set: func(a *Args, v *string) { a.Fork = v }},
	{long: "--session-dir", group: forSessions, arg: "DIR", about: "where sessions are kept", files: true, takes: value, set: func(a *Args, v *string) { a.SessionDir = *v }},
	{long: "--no-session", group: forSessions, about: "keep nothing", set: func(a *Args, _ *string) { a.NoSession = true }},
	{long: "--branch", group: forSessions, arg: "ENTRY", about: "go on from an earlier entry, which pinch sessions tree shows", takes: value, set: func(a *Args, v *string) {
		if a.Branch = *v; a.Branch == "" {
			a.errorf("--branch requires the id of an entry")
		}
	}},
	{long: "--summarize", group: forSessions, about: "with --branch: sum up for the model what is left behind", set: func(a *Args, _ *string) { a.Summarize = true }},
	{long: "--name", group: forSessions, arg: "TEXT", about: "name the session", short: "-n", takes: value, set: setName},

	{long: "--provider", group: forModel, arg: "NAME", about: "the provider that --model belongs to", lists: listedProviders, takes: value, set: func(a *Args, v *string) { a.Provider = *v }},
	{long: "--model", group: forModel, arg: "PATTERN", about: "id, provider/id or part of a name, with :level behind", lists: listedModels, takes: value, set: func(a *Args, v *string) { a.Model = *v }},
	{long: "--models", group: forModel, arg: "LIST", about: "models to choose from, separated by commas; * and ? match", takes: value, set: func(a *Args, v *string) { a.Models = splitList(*v) }},
	{long: "--thinking", group: forModel, arg: "LEVEL", about: "off, minimal, low, medium, high, xhigh, max", words: strings.Split(levelNames(), ", "), takes: value, set: setThinking},
	{long: "--api-key", group: forModel, arg: "KEY", about: "key for this run; never stored", takes: value, set: func(a *Args, v *string) {
		a.APIKey = strings.Clone(*v) // the argument itself is forgotten
		a.keys = append(a.keys, a.APIKey)
	}},
	{long: "--record", group: forModel, arg: "FILE", about: "store what is said to the provider and back; --model replay/FILE plays it", files: true, takes: value, set: func(a *Args, v *string) {
		if a.Record = *v; a.Record == "" {
			a.errorf("--record requires the name of a file")
		}
	}},

	{long: "--tools", group: forTools, arg: "LIST", about: "these tools only, or changes: +name,-write", short: "-t", takes: value, set: setTools},
	{long: "--exclude-tools", group: forTools, arg: "LIST", about: "without these", short: "-xt", takes: value, set: func(a *Args, v *string) { a.ExcludeTools = splitList(*v) }},
	{long: "--no-tools", group: forTools, about: "none but those that --tools names", short: "-nt", set: func(a *Args, _ *string) { a.NoTools = true }},
	{long: "--no-builtin-tools", group: forTools, about: "none of the built-in ones but those", short: "-nbt", set: func(a *Args, _ *string) { a.NoBuiltinTools = true }},
	{long: "--no-mcp", about: "none of MCP servers", set: func(a *Args, _ *string) { a.NoMCP = true }},

	{long: "--extension", group: forResources, arg: "PATH", about: "a package, for this run; may be repeated", files: true, short: "-e", takes: value, set: func(a *Args, v *string) { a.Extensions = append(a.Extensions, *v) }},
	{long: "--no-extensions", about: "no extensions but those", short: "-ne", set: func(a *Args, _ *string) { a.NoExtensions = true }},
	{long: "--skill", group: forResources, arg: "PATH", about: "a skill, or a folder of them; may be repeated", files: true, takes: value, set: func(a *Args, v *string) { a.Skills = append(a.Skills, *v) }},
	{long: "--no-skills", group: forResources, about: "no skills but those", short: "-ns", set: func(a *Args, _ *string) { a.NoSkills = true }},
	{long: "--prompt-template", group: forResources, arg: "PATH", about: "a prompt template, or a folder of them; may be repeated", files: true, takes: value, set: func(a *Args, v *string) { a.PromptTemplates = append(a.PromptTemplates, *v) }},
	{long: "--no-prompt-templates", group: forResources, about: "no templates but those", short: "-np", set: func(a *Args, _ *string) { a.NoTemplates = true }},
	{long: "--theme", arg: "PATH", about: "a theme, for the interactive terminal", files: true, takes: value, set: func(a *Args, v *string) { a.Themes = append(a.Themes, *v) }},
	{long: "--no-themes", about: "no themes but those", set: func(a *Args, _ *string) { a.NoThemes = true }},
	{long: "--no-context-files", group: forPrompt, about: "no AGENTS.md and its like", short: "-nc", set: func(a *Args, _ *string) { a.NoContextFiles = true }},
	{long: "--use-theme", arg: "NAME", about: "the theme to begin with", takes: value, set: func(a *Args, v *string) { a.UseTheme = *v }},

	{long: "--system-prompt", group: forPrompt, arg: "TEXT|FILE", about: "in place of the built-in system prompt", files: true, takes: value, set: func(a *Args, v *string) { a.SystemPrompt = v }},
	{long: "--append-system-prompt", group: forPrompt, arg: "TEXT|FILE", about: "added to the system prompt; may be repeated", files: true, takes: value, set: func(a *Args, v *string) {
		a.AppendSystemPrompt = append(a.AppendSystemPrompt, *v)
	}},

	{long: "--tui-mode", arg: "regular|fullscreen", about: "how the interactive terminal is used", words: []string{"regular", "fullscreen"}, takes: value, set: setTUIMode},
	{long: "--verbose", group: forOutput, about: "say more at the start", set: func(a *Args, _ *string) { a.Verbose = true }},
	{long: "--approve", group: forOthers, about: "trust this project's own settings for this run", short: "-a", set: func(a *Args, _ *string) { a.Approve = new(true) }},
	{long: "--no-approve", group: forOthers, about: "do not", short: "-na", set: func(a *Args, _ *string) { a.Approve = new(false) }},
	{long: "--offline", group: forOthers, about: "no network but the model's", set: func(a *Args, _ *string) { a.Offline = true }},
	{long: "--export", group: forSessions, arg: "FILE [OUT]", about: "write a session file as one HTML page, and exit", files: true, takes: value, set: func(a *Args, v *string) { a.Export = *v }},
	{long: "--list-models", group: forModel, arg: "[SEARCH]", about: "models that are set up", takes: maybeValue, set: func(a *Args, v *string) {
		if v == nil {
			v = new("")
		}
		a.ListModels = v
	}},
	{long: "--help", group: forOthers, about: "this text; behind a command, how that is used", short: "-h", set: func(a *Args, _ *string) { a.Help = true }},
	{long: "--version", group: forOthers, about: "the version", short: "-v", set: func(a *Args, _ *string) { a.Version = true }},
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
