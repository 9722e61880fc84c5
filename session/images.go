package session

import (
	_ "embed"
	"strings"
	"sync"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
)

//go:embed image_blocked.md
var imageBlocked string

// ImageBlocker converts as ToLLM does, and leaves images out of user messages
// and tool results: a note stands in the place of each run of images. The same
// message gives the same pointer as long as it is in every transcript that the
// blocker sees. The zero ImageBlocker is ready and safe for concurrent use.
type ImageBlocker struct {
	mu   sync.Mutex
	made map[llm.Message]llm.Message
}

// ToLLM is an agent.Config.ToLLM.
func (b *ImageBlocker) ToLLM(messages []agent.Message) []llm.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := ToLLM(messages)
	used := make(map[llm.Message]llm.Message, len(b.made))
	for i, m := range out {
		c := b.made[m]
		if c == nil {
			c = withoutImages(m)
		}
		if c != m {
			used[m], out[i] = c, c
		}
	}
	b.made = used
	return out
}

// withoutImages is m itself when it has no images.
func withoutImages(m llm.Message) llm.Message {
	switch m := m.(type) {
	case *llm.User:
		if blocks, changed := noted(m.Content.Blocks); changed {
			c := *m
			c.Content.Blocks = blocks
			return &c
		}
	case *llm.ToolResult:
		if blocks, changed := noted(m.Content); changed {
			c := *m
			c.Content = blocks
			return &c
		}
	}
	return m
}

// noted replaces each run of images by one note.
func noted(blocks []llm.Block) (out []llm.Block, changed bool) {
	inRun := false
	for i, b := range blocks {
		if _, ok := b.(*llm.Image); !ok {
			inRun = false
			if changed {
				out = append(out, b)
			}
			continue
		}
		if !changed {
			out, changed = append(make([]llm.Block, 0, len(blocks)), blocks[:i]...), true
		}
		if !inRun {
			out = append(out, &llm.Text{Text: strings.TrimSpace(imageBlocked)})
		}
		inRun = true
	}
	return out, changed
}
