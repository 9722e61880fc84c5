package session

import (
	_ "embed"
	"strconv"
	"strings"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
)

// What models read in front of a summary.
var (
	//go:embed branch_summary.md
	branchLeadIn string
	//go:embed compaction_summary.md
	compactionLeadIn string
)

// ToLLM turns a transcript into messages that a model knows: messages of llm
// stay as they are, those of this package become user messages, the rest is
// dropped. It is an agent.Config.ToLLM. The same message gives the same pointer
// every time.
func ToLLM(messages []agent.Message) []llm.Message {
	out := make([]llm.Message, 0, len(messages))
	for _, m := range messages {
		if c := Convert(m); c != nil {
			out = append(out, c)
		}
	}
	return out
}

// Convert is ToLLM for one message; nil when models do not see it.
func Convert(m agent.Message) llm.Message {
	switch m := m.(type) {
	case llm.Message:
		return m
	case *BashExecution:
		if m.ExcludeFromContext {
			return nil
		}
		return m.user.get(func() *llm.User { return llm.UserText(m.Text(), m.Timestamp) })
	case *Custom:
		return m.user.get(func() *llm.User {
			content := m.Content
			if content.Blocks == nil {
				content = llm.Blocks(&llm.Text{Text: content.Text})
				if m.content != contentSet {
					content = llm.Blocks()
				}
			}
			return &llm.User{Content: content, Timestamp: m.Timestamp}
		})
	case *BranchSummary:
		return m.user.get(func() *llm.User {
			return llm.UserText(BranchLeadIn()+"<summary>\n"+m.Summary+"</summary>", m.Timestamp)
		})
	case *CompactionSummary:
		return m.user.get(func() *llm.User {
			return llm.UserText(CompactionLeadIn()+"<summary>\n"+m.Summary+"\n</summary>", m.Timestamp)
		})
	}
	return nil
}

// BranchLeadIn is the text that models read in front of the <summary> of a branch.
func BranchLeadIn() string { return strings.TrimSpace(branchLeadIn) + "\n\n" }

// CompactionLeadIn is the text that models read in front of the <summary> of a compaction.
func CompactionLeadIn() string { return strings.TrimSpace(compactionLeadIn) + "\n\n" }

// Text is the command and its output as models read them.
func (m *BashExecution) Text() string {
	var b strings.Builder
	b.WriteString("Ran `" + m.Command + "`\n")
	if m.Output != "" {
		b.WriteString("```\n" + m.Output + "\n```")
	} else {
		b.WriteString("(no output)")
	}
	switch {
	case m.Cancelled:
		b.WriteString("\n\n(command cancelled)")
	case m.ExitCode != nil && *m.ExitCode != 0:
		b.WriteString("\n\nCommand exited with code " + strconv.FormatInt(*m.ExitCode, 10))
	}
	if m.Truncated && m.FullOutputPath != "" {
		b.WriteString("\n\n[Output truncated. Full output: " + m.FullOutputPath + "]")
	}
	return b.String()
}

func (c *cached) get(build func() *llm.User) *llm.User {
	if u := c.p.Load(); u != nil {
		return u
	}
	c.p.CompareAndSwap(nil, build())
	return c.p.Load()
}
