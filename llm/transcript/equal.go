package transcript

import (
	"bytes"
	"slices"

	"github.com/pinch-agent/pinch/llm"
)

// equal reports whether two messages are sent alike. Times, usage and other
// things that no model sees count only where an estimate reads them.
func equal(a, b llm.Message) bool {
	if a.Time() != b.Time() {
		return false
	}
	switch a := a.(type) {
	case *llm.System:
		b, ok := b.(*llm.System)
		return ok && equalContent(a.Content, b.Content) && slices.Equal(a.Sections, b.Sections) &&
			slices.Equal(a.ToolsRemoved, b.ToolsRemoved) &&
			slices.EqualFunc(a.ToolsAdded, b.ToolsAdded, equalTool)
	case *llm.User:
		b, ok := b.(*llm.User)
		return ok && equalContent(a.Content, b.Content)
	case *llm.Assistant:
		b, ok := b.(*llm.Assistant)
		return ok && a.API == b.API && a.Provider == b.Provider && a.Model == b.Model &&
			a.StopReason == b.StopReason && a.Usage.Context() == b.Usage.Context() &&
			a.ResponseID == b.ResponseID && a.ProviderThinkingLevel == b.ProviderThinkingLevel &&
			slices.EqualFunc(a.Content, b.Content, equalBlock)
	case *llm.ToolResult:
		b, ok := b.(*llm.ToolResult)
		return ok && a.ToolCallID == b.ToolCallID && a.ToolName == b.ToolName && a.IsError == b.IsError &&
			slices.EqualFunc(a.Content, b.Content, equalBlock)
	}
	return false
}

func equalContent(a, b llm.Content) bool {
	return a.Text == b.Text && (a.Blocks == nil) == (b.Blocks == nil) &&
		slices.EqualFunc(a.Blocks, b.Blocks, equalBlock)
}

func equalTool(a, b llm.Tool) bool {
	return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Parameters, b.Parameters) &&
		bytes.Equal(a.ConstrainedSampling, b.ConstrainedSampling)
}

func equalBlock(a, b llm.Block) bool {
	if a == b {
		return true
	}
	switch a := a.(type) {
	case *llm.Text:
		b, ok := b.(*llm.Text)
		return ok && a.Text == b.Text && equalSignature(a.Signature, b.Signature)
	case *llm.Thinking:
		b, ok := b.(*llm.Thinking)
		return ok && a.Thinking == b.Thinking && a.Redacted == b.Redacted && equalSignature(a.Signature, b.Signature)
	case *llm.Image:
		b, ok := b.(*llm.Image)
		return ok && a.MimeType == b.MimeType && a.Data == b.Data
	case *llm.ToolCall:
		b, ok := b.(*llm.ToolCall)
		return ok && a.ID == b.ID && a.Name == b.Name && bytes.Equal(a.Arguments, b.Arguments) &&
			a.Namespace == b.Namespace && a.ArgumentsError == b.ArgumentsError &&
			equalSignature(a.ThoughtSignature, b.ThoughtSignature)
	case *llm.UnknownBlock:
		b, ok := b.(*llm.UnknownBlock)
		return ok && bytes.Equal(a.Raw, b.Raw)
	}
	return false
}

func equalSignature(a, b *string) bool {
	return a == b || a != nil && b != nil && *a == *b
}
