package compact

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

// minResult is the size in tokens below which a result is not cut.
const minResult = maxResult / 4

// ShortenResults says which results of tools the context at the end of a path
// should show cut, so that it takes excess tokens less: the longest, all to the
// same length and none to less than 500 tokens. It is for a context that no
// compaction makes short enough, because a cut never stands between a call and
// its result. The edits change nothing yet; the results stay whole in the
// session.
func ShortenResults(path []*session.Entry, excess int64) (edits []*session.ContextEditEntry) {
	if excess <= 0 {
		return nil
	}
	type shown struct {
		id     string
		blocks []llm.Block
		tokens int64
	}
	var results []shown
	room := -excess
	for _, p := range session.Project(path) {
		for _, m := range p.Messages {
			if r, ok := m.(*llm.ToolResult); ok {
				n := session.Tokens(r)
				room += n
				results = append(results, shown{p.Entry.ID, r.Content, n})
			}
		}
	}
	slices.SortStableFunc(results, func(a, b shown) int { return int(a.tokens - b.tokens) })
	for i, r := range results {
		most := max(room/int64(len(results)-i), minResult)
		if r.tokens <= most {
			room -= r.tokens
			continue
		}
		if blocks, ok := shortenBlocks(r.blocks, most); ok {
			room -= most
			edits = append(edits, &session.ContextEditEntry{TargetID: r.id, Replacement: &llm.Content{Blocks: blocks}})
		}
	}
	return edits
}

// shortenBlocks cuts the texts among the blocks of a result to so many tokens
// together: beginning and end stay.
func shortenBlocks(blocks []llm.Block, tokens int64) (out []llm.Block, ok bool) {
	text := llm.TextOf(blocks, "\n")
	units := int(tokens) * 4
	n := jsonwire.UTF16Len(text)
	if n <= units {
		return nil, false // pictures make it long
	}
	units = max(0, units-len(shortenedText))
	head, tail := len(jsonwire.UTF16Prefix(text, units/2)), len(jsonwire.UTF16Prefix(text, n-units/2))
	note := strings.ReplaceAll(strings.TrimSpace(shortenedText), "{n}", strconv.Itoa(jsonwire.UTF16Len(text[head:tail])))
	out = []llm.Block{&llm.Text{Text: text[:head] + "\n\n" + note + "\n\n" + text[tail:]}}
	for _, b := range blocks {
		if _, ok := b.(*llm.Text); !ok {
			out = append(out, b)
		}
	}
	return out, true
}
