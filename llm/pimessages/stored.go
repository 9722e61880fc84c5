package pimessages

import (
	"bytes"
	"slices"
	"sync"

	"github.com/pinch-agent/pinch/llm"
)

// stored is the memory of one conversation: its messages in the form of session
// files, so that a turn encodes only what is new. It does not depend on the
// model, as nothing is changed for one.
type stored struct {
	mu       sync.Mutex
	messages []llm.Message
	json     [][]byte
}

// storedKey is the key of a conversation's stored in its Memo.
type storedKey struct{}

func storedOf(memo *llm.Memo) *stored {
	return memo.Load(storedKey{}, func() any { return new(stored) }).(*stored)
}

// append appends messages with commas between, and leaves room for more.
func (s *stored) append(dst []byte, messages []llm.Message, more int) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, m := range messages {
		switch {
		case i == len(s.messages):
			s.messages = append(s.messages, m)
			s.json = append(s.json, m.AppendJSON(nil))
		case s.messages[i] == m:
		case sameSystem(s.messages[i], m):
			s.messages[i] = m
		default:
			s.messages[i], s.json[i] = m, m.AppendJSON(nil)
		}
	}
	n := len(messages)
	clear(s.messages[n:])
	clear(s.json[n:])
	s.messages, s.json = s.messages[:n], s.json[:n]

	for _, json := range s.json {
		more += len(json) + 1
	}
	dst = slices.Grow(dst, more)
	for i, json := range s.json {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, json...)
	}
	return dst
}

// sameSystem reports whether two messages are system messages that say the
// same: the leading one is made anew for each request. All others keep their
// place in memory.
func sameSystem(a, b llm.Message) bool {
	x, ok := a.(*llm.System)
	if !ok {
		return false
	}
	y, ok := b.(*llm.System)
	return ok && x.Timestamp == y.Timestamp && x.Content.Blocks == nil && y.Content.Blocks == nil &&
		x.Content.Text == y.Content.Text && slices.Equal(x.Sections, y.Sections) &&
		slices.Equal(x.ToolsRemoved, y.ToolsRemoved) && slices.EqualFunc(x.ToolsAdded, y.ToolsAdded, sameTool) &&
		slices.EqualFunc(x.Extra, y.Extra, sameMember)
}

func sameTool(a, b llm.Tool) bool {
	return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Parameters, b.Parameters) &&
		bytes.Equal(a.ConstrainedSampling, b.ConstrainedSampling) && slices.EqualFunc(a.Extra, b.Extra, sameMember)
}

func sameMember(a, b llm.Member) bool { return a.Name == b.Name && bytes.Equal(a.Value, b.Value) }
