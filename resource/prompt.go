package resource

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
)

// PromptOptions are what a system prompt is made of. Only Cwd is needed.
type PromptOptions struct {
	Cwd         string
	AgentFolder string // named to the model as the place of the user's files; "" for ~/.pinch/agent

	// Preamble replaces the built-in introduction, and with it the sections
	// about tools, rules and documentation; "" keeps them.
	Preamble string
	Addendum string // text added by the user; "" for none

	Tools  []*agent.Tool // the active tools, in the order of the selection
	Hidden []string      // names of active tools that the prompt does not mention
	Rules  []string      // further guidelines

	ContextFiles []ContextFile
	Skills       []Skill

	// Sections are added at the end, or replace one of the same name. Empty
	// ones are ignored.
	Sections []llm.Section

	// Forced is a prompt that takes the place of all the above, "" for none.
	Forced string
}

// SystemMessage makes the system message of a prompt: its sections, or nothing
// but the text of a forced prompt. Tools and time are the caller's.
func SystemMessage(o PromptOptions) (*llm.System, error) {
	if o.Forced != "" {
		return &llm.System{Content: llm.Plain(o.Forced)}, nil
	}
	sections, err := Prompt(o)
	if err != nil {
		return nil, err
	}
	return &llm.System{Sections: sections}, nil
}

// SectionNameError says that a section's name is not allowed: names are lower
// case letters, digits, _ and -, begin with a letter, and are not preamble.
type SectionNameError struct{ Name string }

func (e *SectionNameError) Error() string { return fmt.Sprintf("invalid section name %q", e.Name) }

// Names of the sections, in their order.
const (
	sectionPreamble = "preamble"
	sectionTools    = "tools"
	sectionRules    = "rules"
	sectionDocs     = "docs"
	sectionAddendum = "addendum"
	sectionContext  = "project_context"
	sectionSkills   = "skills"
	sectionCwd      = "cwd"
)

// Prompt makes the sections of the system prompt, in order, each but the
// preamble wrapped in tags of its name. The same options give the same bytes:
// providers cache prompts by their prefix.
func Prompt(o PromptOptions) ([]llm.Section, error) {
	for _, s := range o.Sections {
		if !validSectionName(s.Name) {
			return nil, &SectionNameError{Name: s.Name}
		}
	}
	var sections []llm.Section
	add := func(name, body string) {
		sections = append(sections, llm.Section{Name: name, Text: wrap(name, body)})
	}
	shown := slices.DeleteFunc(slices.Clone(o.Tools), func(t *agent.Tool) bool {
		return slices.Contains(o.Hidden, t.Name)
	})
	if o.Preamble != "" {
		sections = append(sections, llm.Section{Name: sectionPreamble, Text: o.Preamble})
	} else {
		sections = append(sections, llm.Section{Name: sectionPreamble, Text: text("preamble")})
		add(sectionTools, toolList(shown))
		add(sectionRules, ruleList(shown, o.Rules))
		folder := o.AgentFolder
		if folder == "" {
			folder = "~/.pinch/agent"
		}
		add(sectionDocs, strings.ReplaceAll(text("docs"), "{{agent}}", filepath.ToSlash(folder)))
	}
	if o.Addendum != "" {
		add(sectionAddendum, o.Addendum)
	}
	if len(o.ContextFiles) > 0 {
		add(sectionContext, contextBlock(o.ContextFiles))
	}
	if hasTool(o.Tools, "read") || hasTool(o.Tools, "bash") {
		reader := ""
		for _, name := range []string{"bash", "read"} {
			if hasTool(shown, name) {
				reader = name
			}
		}
		if block := SkillBlock(o.Skills, reader); block != "" {
			add(sectionSkills, block)
		}
	}
	add(sectionCwd, strings.ReplaceAll(o.Cwd, `\`, "/"))
	for _, s := range o.Sections {
		if s.Text == "" {
			continue
		}
		s.Text = wrap(s.Name, s.Text)
		if i := indexSection(sections, s.Name); i >= 0 {
			sections[i] = s
		} else {
			sections = append(sections, s)
		}
	}
	return sections, nil
}

// RenderPrompt is the text of sections as a model reads it.
func RenderPrompt(sections []llm.Section) string {
	var parts []string
	for _, s := range sections {
		if !s.Removed && s.Text != "" {
			parts = append(parts, s.Text)
		}
	}
	return strings.Join(parts, "\n\n")
}

func indexSection(list []llm.Section, name string) int {
	return slices.IndexFunc(list, func(s llm.Section) bool { return s.Name == name })
}

func wrap(name, body string) string { return "<" + name + ">\n" + body + "\n</" + name + ">" }

func validSectionName(name string) bool {
	if name == "" || name == sectionPreamble || name[0] < 'a' || name[0] > 'z' {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

func hasTool(tools []*agent.Tool, name string) bool {
	return slices.ContainsFunc(tools, func(t *agent.Tool) bool { return t.Name == name })
}

func toolList(tools []*agent.Tool) string {
	var b strings.Builder
	for _, t := range tools {
		if snippet := strings.Join(strings.Fields(t.Snippet), " "); snippet != "" {
			fmt.Fprintf(&b, "- %s: %s\n", t.Name, snippet)
		}
	}
	if b.Len() == 0 {
		b.WriteString("(none)\n")
	}
	return b.String() + "\n" + text("tools_note")
}

func ruleList(tools []*agent.Tool, extra []string) string {
	var rules []string
	add := func(rule string) {
		if rule = strings.TrimSpace(rule); rule != "" && !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
	}
	shell := hasTool(tools, "bash") || hasTool(tools, "powershell")
	if shell && !hasTool(tools, "grep") && !hasTool(tools, "find") && !hasTool(tools, "ls") {
		add(text("rule_shell"))
	}
	for _, t := range tools {
		for _, rule := range t.Guidelines {
			add(rule)
		}
	}
	for _, rule := range extra {
		add(rule)
	}
	add(text("rule_brief"))
	add(text("rule_paths"))
	return "- " + strings.Join(rules, "\n- ")
}

func contextBlock(files []ContextFile) string {
	parts := []string{text("project_context")}
	for _, f := range files {
		parts = append(parts, fmt.Sprintf("<project_instructions path=\"%s\">\n%s\n</project_instructions>", f.Path, f.Content))
	}
	return strings.Join(parts, "\n\n")
}
