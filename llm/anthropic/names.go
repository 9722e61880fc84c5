package anthropic

import "strings"

// claudeCodeName is the spelling that Claude Code has for a tool of this name,
// in any case; other names stay.
func claudeCodeName(name string) string {
	for _, n := range [...]string{
		"Read", "Write", "Edit", "Bash", "Grep", "Glob", "AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "KillShell",
		"NotebookEdit", "Skill", "Task", "TaskOutput", "TodoWrite", "WebFetch", "WebSearch",
	} {
		if strings.EqualFold(n, name) {
			return n
		}
	}
	return name
}

// toolName is the name that a tool is sent under.
func (c *Compat) toolName(name string) string {
	if c.ClaudeCodeToolNames {
		return claudeCodeName(name)
	}
	return name
}

// declaredName is the name of the declared tool that a call means.
func (x *exchange) declaredName(name string) string {
	if x.compat.ClaudeCodeToolNames {
		for _, n := range x.toolNames {
			if strings.EqualFold(n, name) {
				return n
			}
		}
	}
	return name
}
