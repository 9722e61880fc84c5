package cli

import (
	_ "embed"
	"strings"
)

//go:embed help_head.txt
var helpHead string

//go:embed help_foot.txt
var helpFoot string

// help is what pinch --help prints: the commands and options as the tables have
// them.
func help() string {
	var b strings.Builder
	b.WriteString(helpHead)
	b.WriteString("\nCommands\n")
	for _, c := range commands() {
		if c.about != "" {
			b.WriteString(column("pinch "+c.name+" "+argument(c.usage), c.about))
		}
	}
	b.WriteString("pinch COMMAND --help says more.\n")
	for _, g := range groups() {
		b.WriteString("\n" + string(g) + "\n")
		for i := range options {
			if o := &options[i]; o.group == g {
				b.WriteString(column(optionNames(o.short, o.long, o.arg), o.about))
			}
		}
	}
	b.WriteString("\n" + helpFoot)
	return b.String()
}

func groups() []group {
	return []group{forOutput, forSessions, forModel, forPrompt, forTools, forResources, forOthers}
}

// argument is the first word of a usage, where it is no option.
func argument(usage string) string {
	first, _, _ := strings.Cut(usage, " ")
	if strings.Contains(first, "-") || strings.HasPrefix(first, "[") || strings.Contains(first, "|") {
		return ""
	}
	return first
}
