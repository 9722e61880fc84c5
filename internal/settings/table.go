package settings

import (
	"slices"
	"strings"
	"sync"
)

// key is one setting of the table.
type key struct {
	name     string // with dots into objects
	kind     kind
	standard string // JSON text of the value without the setting; "" for none
	means    string // for the user's page
	note     string // of the page, in place of the standard
	user     bool   // counts only in the user's file: see overlay
	strict   bool   // a bad value is an error where it is used
	later    bool   // not of use in print and JSON mode
	old      bool   // a name of former times, see migrate
	adds     bool   // a list of which those of both files count
}

// keys is the table of all settings. A project cannot set those of the user: it
// must not be able to trust itself or to redirect what leaves the machine.
var keys = sync.OnceValue(func() []key {
	levels := oneOf{"off", "minimal", "low", "medium", "high", "xhigh", "max"}
	tokens := number{whole: true}
	amount := number{any: true}
	texts := list{text{}}
	return []key{
		{name: "defaultProvider", kind: text{}, means: "provider of the model that a new session starts with"},
		{name: "defaultModel", kind: text{}, means: "the model that a new session starts with"},
		{name: "defaultThinkingLevel", kind: levels, standard: `"medium"`, means: "thinking level of a new session"},
		{name: "modelThinkingLevels", kind: table{"provider/model", levels}, means: "thinking level of single models, in place of the default"},
		{name: "thinkingBudgets", kind: record{"minimal": amount, "low": amount, "medium": amount, "high": amount},
			note: "the wire format's", means: "thinking tokens by level, for models that count them"},
		{name: "enabledModels", kind: texts, note: "all", means: "models to choose from, written as for `--models`"},
		{name: "defaultTools", kind: texts, note: "`read`, `bash`, `edit`, `write`", means: "tools of a session; a list of only `+name` and `-name` changes the selection that it would have without"},
		{name: "steeringMode", kind: oneOf{"all", "one-at-a-time"}, standard: `"one-at-a-time"`, means: "how many of the messages that steer a run are delivered before a request"},
		{name: "followUpMode", kind: oneOf{"all", "one-at-a-time"}, standard: `"one-at-a-time"`, means: "how many of the messages that wait for the end of a run are delivered then"},
		{name: "sessionDir", kind: text{}, note: "`sessions` in the agent folder, by working folder", means: "folder for sessions, relative to the working folder; counts in a project that is not trusted too"},
		{name: "defaultProjectTrust", kind: oneOf{"ask", "always", "never"}, standard: `"ask"`, user: true, means: "whether the files of a project count that nobody decided about; no mode of this version asks, so `ask` is no"},

		{name: "compaction.enabled", kind: boolean{}, standard: `true`, means: "whether a conversation that runs out of room is summarised by itself"},
		{name: "compaction.reserveTokens", kind: tokens, standard: `16384`, strict: true, means: "room in the context window that is kept free for the answer"},
		{name: "compaction.keepRecentTokens", kind: tokens, standard: `20000`, strict: true, means: "how much of the end of a conversation stays as it is"},
		{name: "compaction.modelOverrides", kind: table{"provider/model", record{"enabled": boolean{}, "reserveTokens": tokens, "keepRecentTokens": tokens}},
			strict: true, means: "`enabled`, `reserveTokens` and `keepRecentTokens` of single models"},
		{name: "branchSummary.reserveTokens", kind: tokens, standard: `16384`, strict: true, means: "room that the summary of a left branch leaves free"},
		{name: "branchSummary.skipPrompt", kind: boolean{}, standard: `false`, later: true, means: "leave branches without asking whether to summarise them"},

		{name: "retry.enabled", kind: boolean{}, standard: `true`, means: "whether a request whose answer failed is repeated"},
		{name: "retry.maxRetries", kind: amount, standard: `3`, means: "how often"},
		{name: "retry.baseDelayMs", kind: amount, standard: `2000`, means: "wait before the first repetition; it doubles with each"},
		{name: "retry.maxAgentDelayMs", kind: amount, standard: `60000`, means: "longest of these waits"},
		{name: "retry.provider.timeoutMs", kind: amount, note: "`httpIdleTimeoutMs`", means: "wait for a response to begin"},
		{name: "retry.provider.maxRetries", kind: amount, standard: `0`, means: "repetitions of the HTTP request below that"},
		{name: "retry.provider.maxRetryDelayMs", kind: amount, standard: `60000`, means: "longest wait that a service may ask for; 0 for no bound"},
		{name: "httpIdleTimeoutMs", kind: either{number{}, oneOf{"disabled"}}, standard: `300000`, means: "how long a response may be silent; 0 as `disabled`"},
		{name: "httpProxy", kind: text{hidden: true}, note: "the system's variables", user: true, means: "address of a proxy for requests to models and issuers"},
		{name: "transport", kind: oneOf{"auto", "sse", "websocket", "websocket-cached"}, standard: `"auto"`, later: true, means: "how answers of the Codex service travel; this version has server-sent events only"},
		{name: "websocketConnectTimeoutMs", kind: either{number{}, oneOf{"disabled"}}, standard: `15000`, later: true, means: "wait for a WebSocket to open"},
		{name: "cacheWarming", kind: oneOf{"off", "streaming", "idle"}, standard: `"idle"`, user: true, later: true, means: "when a prompt cache is kept from ending while nobody writes"},

		{name: "images.autoResize", kind: boolean{}, standard: `true`, means: "scale large pictures down before a model sees them"},
		{name: "images.blockImages", kind: boolean{}, standard: `false`, means: "keep pictures from models; a note stands in their place"},
		{name: "shellPath", kind: text{}, note: "`bash`, else `sh`", means: "shell that runs commands"},
		{name: "shellCommandPrefix", kind: text{}, means: "text that is put before each command"},

		{name: "skills", kind: texts, adds: true, standard: `[]`, means: "more files and folders with skills; `!glob`, `+path` and `-path` filter what is found by itself. Those of user and project add up"},
		{name: "prompts", kind: texts, adds: true, standard: `[]`, means: "the same for prompt templates"},
		{name: "extensions", kind: texts, adds: true, standard: `[]`, later: true, means: "the same for extensions; `-builtin:name` switches a built-in one off"},
		{name: "themes", kind: texts, adds: true, standard: `[]`, later: true, means: "the same for themes"},
		{name: "packages", kind: list{either{text{}, record{"source": text{}, "autoload": boolean{}, "extensions": texts, "skills": texts, "prompts": texts, "themes": texts}}},
			adds: true, standard: `[]`, means: "installed packages: a source, or an object with `source`, `autoload` and filters by kind of resource. Those of user and project add up"},
		{name: "npmCommand", kind: texts, standard: `["npm"]`, later: true, means: "kept for pi, which installs packages with this command; pinch fetches them itself"},
		{name: "enableSkillCommands", kind: boolean{}, standard: `true`, later: true, means: "whether skills are suggested as commands"},
		{name: "codemode.mode", kind: oneOf{"on", "only"}, standard: `"on"`, later: true, means: "whether the tools that scripts call can be called directly too"},
		{name: "codemode.inlineBudget", kind: number{}, standard: `3000`, later: true, means: "room for the descriptions of those tools"},

		{name: "theme", kind: text{}, standard: `"system"`, later: true, means: "name of the theme, or two as `light/dark`"},
		{name: "quietStartup", kind: either{boolean{}, oneOf{"header"}}, standard: `false`, later: true, means: "say less at the start; `header` leaves the first lines"},
		{name: "tuiMode", kind: oneOf{"regular", "fullscreen"}, standard: `"fullscreen"`, later: true, means: "how the terminal is used"},
		{name: "fullscreenExitOutput", kind: oneOf{"transcript", "resume-hint"}, standard: `"transcript"`, later: true, means: "what is left in the terminal afterwards"},
		{name: "fullscreenScrollbar", kind: oneOf{"auto", "always", "hidden"}, standard: `"auto"`, later: true, means: "when the scroll bar is seen"},
		{name: "fullscreenCopyOnSelect", kind: boolean{}, standard: `true`, later: true, means: "whether selected text is copied at once"},
		{name: "fullscreenWheelScrollLines", kind: either{oneOf{"auto"}, number{from: 1, to: 100}}, standard: `"auto"`, later: true, means: "lines for each step of the wheel"},
		{name: "editorPaddingX", kind: number{to: 3}, standard: `0`, later: true, means: "columns beside the editor"},
		{name: "outputPad", kind: number{to: 1, whole: true}, standard: `1`, later: true, means: "columns beside the output"},
		{name: "autocompleteMaxVisible", kind: number{from: 3, to: 20}, standard: `5`, later: true, means: "suggestions seen at a time"},
		{name: "showHardwareCursor", kind: boolean{}, standard: `false`, later: true, means: "whether the terminal's own cursor is seen"},
		{name: "hideThinkingBlock", kind: boolean{}, standard: `false`, later: true, means: "fold thinking away"},
		{name: "showCacheMissNotices", kind: boolean{}, standard: `false`, later: true, means: "tell when a prompt cache was missed"},
		{name: "externalEditor", kind: text{}, note: "`VISUAL`, `EDITOR`, `nano` or `notepad`", later: true, means: "command of the editor for long prompts"},
		{name: "doubleEscapeAction", kind: oneOf{"tree", "fork", "none"}, standard: `"tree"`, later: true, means: "what Escape pressed twice opens"},
		{name: "treeFilterMode", kind: oneOf{"default", "no-tools", "user-only", "labeled-only", "all"}, standard: `"default"`, later: true, means: "what the tree of a session shows at first"},
		{name: "terminal.showImages", kind: boolean{}, standard: `true`, later: true, means: "whether pictures are shown"},
		{name: "terminal.imageWidthCells", kind: amount, standard: `60`, later: true, means: "their width in columns"},
		{name: "terminal.images", kind: either{oneOf{"kitty", "iterm2", "auto"}, boolean{}}, standard: `"auto"`, later: true, means: "the protocol for pictures; `false` for none"},
		{name: "terminal.hyperlinks", kind: either{boolean{}, oneOf{"auto"}}, standard: `"auto"`, later: true, means: "whether links can be clicked"},
		{name: "terminal.trueColor", kind: either{boolean{}, oneOf{"auto"}}, standard: `"auto"`, later: true, means: "whether all colours are used"},
		{name: "terminal.clearOnShrink", kind: boolean{}, standard: `false`, later: true, means: "clear lines that are not needed any more"},
		{name: "terminal.showTerminalProgress", kind: boolean{}, standard: `false`, later: true, means: "tell the terminal's title bar that work goes on"},
		{name: "markdown.codeBlockIndent", kind: text{}, standard: `"  "`, later: true, means: "what stands before lines of code"},
		{name: "markdown.mermaid", kind: oneOf{"off", "final", "streaming"}, standard: `"streaming"`, later: true, means: "when diagrams are drawn"},
		{name: "collapseChangelog", kind: boolean{}, standard: `false`, later: true, means: "show what is new in short"},
		{name: "warnings.anthropicExtraUsage", kind: boolean{}, standard: `true`, later: true, means: "warn when a Claude subscription is charged beyond its plan"},
		{name: "sessionShareDestination", kind: oneOf{"auto", "gist", "radius"}, standard: `"auto"`, later: true, means: "where shared sessions go"},
		{name: "selfUpdateCommand", kind: texts, user: true, later: true, means: "command that updates the program, in words, with `{packageName}`, `{version}` and `{installSpec}`"},
		{name: "enableInstallTelemetry", kind: boolean{}, standard: `true`, later: true, means: "kept for pi; pinch sends nothing"},
		{name: "enableAnalytics", kind: boolean{}, standard: `false`, later: true, means: "kept for pi; pinch sends nothing"},
		{name: "lastChangelogVersion", kind: text{}, user: true, later: true, means: "written by the program"},
		{name: "extensionChangelogVersions", kind: anything{}, user: true, later: true, means: "written by the program"},
		{name: "trackingId", kind: text{}, user: true, later: true, means: "written by pi"},
		{name: "deviceId", kind: text{}, user: true, later: true, means: "written by pi"},

		{name: "queueMode", kind: oneOf{"all", "one-at-a-time"}, old: true, means: "`steeringMode`"},
		{name: "websockets", kind: boolean{}, old: true, means: "`transport`: `websocket` or `sse`"},
		{name: "retry.maxDelayMs", kind: amount, old: true, means: "`retry.provider.maxRetryDelayMs`"},
		{name: "apiKeys", kind: table{"provider", text{hidden: true}}, old: true, user: true, means: "`auth.json`"},
	}
})

// oldSkills is what skills was before it was a list.
func oldSkills() record {
	return record{"enableSkillCommands": boolean{}, "customDirectories": list{text{}}}
}

// schema is the table as one kind: objects with the settings in them.
var schema = sync.OnceValue(func() kind {
	root := record{"$schema": text{}}
	for _, k := range keys() {
		names := strings.Split(k.name, ".")
		at := root
		for _, name := range names[:len(names)-1] {
			if at[name] == nil {
				at[name] = record{}
			}
			at = at[name].(record)
		}
		at[names[len(names)-1]] = k.kind
	}
	root["skills"] = either{root["skills"], oldSkills()}
	return root
})

// lookUp finds the setting that a name, or a part of its value, belongs to; nil
// for none.
func lookUp(name string) *key {
	all := keys()
	i := slices.IndexFunc(all, func(k key) bool {
		rest, ok := strings.CutPrefix(name, k.name)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
	if i < 0 {
		return nil
	}
	return &all[i]
}

// split is the path of a name with dots. Names of members that a person chooses,
// such as those of models, may have dots in them.
func split(name string) []string {
	k := lookUp(name)
	if k == nil {
		return strings.Split(name, ".")
	}
	path := strings.Split(k.name, ".")
	rest := strings.TrimPrefix(name[len(k.name):], ".")
	chosen, isTable := k.kind.(table)
	switch {
	case rest == "":
		return path
	case !isTable:
		return append(path, strings.Split(rest, ".")...)
	}
	if fixed, ok := chosen.of.(record); ok {
		if i := strings.LastIndexByte(rest, '.'); i >= 0 && fixed[rest[i+1:]] != nil {
			return append(path, rest[:i], rest[i+1:])
		}
	}
	return append(path, rest)
}
