package conformance

import (
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/pimessages"
)

func newPiMessages() formatEntries {
	return formatEntries{api: pimessages.New(pimessages.Config{Version: "test", Getenv: noEnv})}
}

// appendBlockMembers appends what a backend of pi-messages says about a block
// in the event itself. The recording kept it there; an event of package llm
// shows it in the block.
func appendBlockMembers(dst []byte, ev *llm.Event) []byte {
	member := func(name, value string) {
		dst = append(dst, `,"`+name+`":`...)
		dst = jsonwire.AppendString(dst, value)
	}
	switch ev.Type {
	case llm.EventToolCallStart:
		member("id", ev.ToolCall().ID)
		member("toolName", ev.ToolCall().Name)
	case llm.EventTextEnd:
		if t, ok := ev.Partial.Content[ev.Index].(*llm.Text); ok && t.Signature != nil {
			member("contentSignature", *t.Signature)
		}
	case llm.EventThinkingEnd:
		t, ok := ev.Partial.Content[ev.Index].(*llm.Thinking)
		if ok && t.Signature != nil {
			member("contentSignature", *t.Signature)
		}
		if ok && t.Redacted {
			dst = append(dst, `,"redacted":true`...)
		}
	}
	return dst
}
