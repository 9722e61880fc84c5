// Package narrate tells a run to a person as plain text while it happens: what
// the model says, what its tools do, what it cost.
package narrate

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// shownLines is how much of a tool's output is shown.
const shownLines = 8

// Narrator tells one run.
type Narrator struct {
	out io.Writer

	inLine   bool // the cursor stands behind text
	requests int
	usage    llm.Usage
}

// New makes a Narrator that writes to out.
func New(out io.Writer) *Narrator { return &Narrator{out: out} }

// Event is a listener of the harness.
func (n *Narrator) Event(_ context.Context, ev harness.Event) error {
	switch ev.Type {
	case agent.MessageUpdate:
		return n.update(ev.Update)
	case agent.MessageEnd:
		if m, ok := ev.Message.(*llm.Assistant); ok {
			n.requests++
			n.add(&m.Usage)
			if m.StopReason == llm.StopError {
				return n.line("! " + m.ErrorMessage)
			}
		}
	case agent.ToolExecutionStart:
		return n.line("  " + call(ev.ToolName, ev.Args))
	case agent.ToolExecutionEnd:
		return n.result(ev.Result)
	case harness.CompactionStart:
		return n.line("  summing up the beginning of the conversation, to make room")
	case harness.CompactionEnd:
		if ev.ErrorMessage != "" {
			return n.line("! " + ev.ErrorMessage)
		}
	case harness.AutoRetryStart:
		return n.line(fmt.Sprintf("  trying again in %d ms: %s", ev.DelayMs, ev.ErrorMessage))
	}
	return nil
}

func (n *Narrator) add(u *llm.Usage) {
	n.usage.Input += u.Input
	n.usage.Output += u.Output
	n.usage.CacheRead += u.CacheRead
	n.usage.CacheWrite += u.CacheWrite
	n.usage.Cost.Total += u.Cost.Total
}

func (n *Narrator) update(u *llm.Event) error {
	switch u.Type {
	case llm.EventTextDelta:
		return n.write(u.Delta)
	case llm.EventThinkingStart:
		return n.write("(")
	case llm.EventThinkingDelta:
		return n.write(u.Delta)
	case llm.EventThinkingEnd:
		return n.write(")\n")
	case llm.EventTextEnd:
		return n.end()
	}
	return nil
}

func (n *Narrator) write(text string) error {
	if text == "" {
		return nil
	}
	n.inLine = !strings.HasSuffix(text, "\n")
	_, err := io.WriteString(n.out, jsonwire.ToValidUTF8(text))
	return err
}

// end ends a line that is begun.
func (n *Narrator) end() error {
	if n.inLine {
		return n.write("\n")
	}
	return nil
}

func (n *Narrator) line(text string) error {
	if err := n.end(); err != nil {
		return err
	}
	return n.write(text + "\n")
}

// call is a tool call in short: a command, or the file that it is about.
func call(name string, args jsontext.Value) string {
	for _, key := range []string{"command", "path", "pattern"} {
		if v, ok := jsonwire.StringValue(jsonwire.Get(args, key)); ok {
			if key == "command" {
				return "$ " + v
			}
			return name + " " + v
		}
	}
	return name + " " + string(args)
}

func (n *Narrator) result(r *agent.Result) error {
	if r == nil {
		return nil
	}
	text := strings.TrimRight(llm.TextOf(r.Content, "\n"), "\n")
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	more := len(lines) - shownLines
	if more > 1 {
		lines = lines[:shownLines]
	}
	for _, l := range lines {
		if err := n.line("  | " + l); err != nil {
			return err
		}
	}
	if more > 1 {
		return n.line(fmt.Sprintf("  | … %d more lines", more))
	}
	return nil
}

// Summary tells what the run cost and where its session is.
func (n *Narrator) Summary(sessionFile string) error {
	u := &n.usage
	cached := ""
	if u.CacheRead > 0 {
		cached = " (" + count(u.CacheRead) + " more from the cache)"
	}
	if err := n.line(fmt.Sprintf("\nCost: %d requests, %s tokens in%s, %s out, $%.4f at the nominal prices of the scripted model",
		n.requests, count(u.Input+u.CacheWrite), cached, count(u.Output), u.Cost.Total)); err != nil {
		return err
	}
	if sessionFile == "" {
		return nil
	}
	return n.line("Session: " + sessionFile)
}

// count groups a number by thousands.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
