package cli

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

// writeTree writes an entry of s a line: its id, who speaks, how it begins. What
// follows a place where the session branches stands further to the right, and
// the end that the next prompt goes on from is marked. Entries that say nothing,
// such as the choice of a model, are left out.
//
// Branches of branches move right up to a bound: a line stays readable, and the
// output no larger than the session calls for.
func writeTree(out io.Writer, s *session.Session) error {
	const deepest = 32
	w := bufio.NewWriter(out)
	type branch struct {
		from   *session.Node
		indent int
	}
	var todo []branch
	push := func(nodes []*session.Node, indent int) {
		for i := len(nodes) - 1; i >= 0; i-- {
			todo = append(todo, branch{nodes[i], indent})
		}
	}
	push(s.Tree(), 0)
	for len(todo) > 0 {
		b := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		n := b.from
		who, text := says(n.Entry)
		end := n.Entry.ID == s.LeafID()
		if who == "" && end {
			who = string(n.Entry.Type)
		}
		if who != "" || n.Label != "" {
			if n.Label != "" {
				text = "[" + n.Label + "] " + text
			}
			if end {
				text += "  <- goes on here"
			}
			line := fmt.Sprintf("%-8s  %s%-9s  %s", n.Entry.ID, strings.Repeat("  ", min(b.indent, deepest)), who, text)
			fmt.Fprintln(w, visible(strings.TrimRight(line, " ")))
		}
		if len(n.Children) > 1 {
			b.indent++
		}
		push(n.Children, b.indent)
	}
	return w.Flush()
}

// says is who speaks in an entry and how it begins, "" for one that says nothing.
func says(e *session.Entry) (who, text string) {
	switch d := e.Data().(type) {
	case *session.MessageEntry:
		switch m := d.Message.(type) {
		case *llm.User:
			return "user", beginning(m.Text())
		case *llm.Assistant:
			text := m.Text()
			for _, b := range m.Content {
				if call, ok := b.(*llm.ToolCall); ok {
					text += " " + call.Name + string(call.Arguments)
				}
			}
			return "assistant", beginning(text)
		case *llm.ToolResult:
			return "tool", beginning(m.ToolName + ": " + m.Text())
		case *session.BashExecution:
			return "shell", beginning(m.Command)
		}
	case *session.CompactionEntry:
		return "compacted", beginning(d.Summary)
	case *session.BranchSummaryEntry:
		text := d.Summary
		if _, behind, ok := strings.Cut(text, "\n\n"); ok { // the words to the model
			text = behind
		}
		return "left", beginning(text)
	}
	return "", ""
}

// beginning is the first characters of a text, on one line.
func beginning(text string) string {
	const most = 80
	words := strings.Fields(jsonwire.ToValidUTF8(text[:min(len(text), 8*most)]))
	short := []rune(strings.Join(words, " "))
	if len(short) > most {
		return string(short[:most-1]) + "…"
	}
	return string(short)
}
