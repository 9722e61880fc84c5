package tool

import (
	"fmt"
	"sort"
)

// replacement is one entry of an edit call, its texts with LF line ends.
type replacement struct{ old, new string }

// match is where a replacement applies.
type match struct {
	edit       int // number of the replacement, as given
	start, end int // byte range in the matched text
	text       string
}

// matches finds the places of all replacements in a text with LF line ends, in
// the order of places. They are looked up in the text as it is or, when one of
// them is not there, all in its folded form; space is the text that was matched.
// The error texts name path as the model wrote it.
func matches(text, path string, edits []replacement) (space string, found []match, err error) {
	name := func(i int) string {
		if len(edits) == 1 {
			return ""
		}
		return fmt.Sprintf("edits[%d]", i)
	}
	for i, e := range edits {
		if e.old == "" {
			subject := "oldText"
			if n := name(i); n != "" {
				subject = n + ".oldText"
			}
			return "", nil, fmt.Errorf("%s must not be empty in %s.", subject, path)
		}
	}
	space = text
	folded := fold(text)
	exact := make([]int, len(edits))
	allExact := true
	for i, e := range edits {
		if exact[i] = find(text, e.old); exact[i] < 0 {
			space, allExact = folded, false
		}
	}
	for i, e := range edits {
		old, start := e.old, exact[i]
		key := fold(old)
		if !allExact {
			if start = find(space, old); start < 0 && key != "" {
				old = key
				start = find(space, old)
			}
		}
		if start < 0 {
			if n := name(i); n != "" {
				return "", nil, fmt.Errorf("Could not find %s in %s. The oldText must match exactly including all whitespace and newlines.", n, path)
			}
			return "", nil, fmt.Errorf("Could not find the exact text in %s. The old text must match exactly including all whitespace and newlines.", path)
		}
		// What is the same when folded would be a lottery even where one place
		// matches exactly. Blanks alone fold to nothing and count as they are.
		n := 0
		switch {
		case key == "":
			n = 1 + count(space[start+len(old):], old)
		case key == old && space == folded:
			n = 1 + count(folded[start+len(old):], key)
		default:
			n = count(folded, key)
		}
		if n > 1 {
			if s := name(i); s != "" {
				return "", nil, fmt.Errorf("Found %d occurrences of %s in %s. Each oldText must be unique. Please provide more context to make it unique.", n, s, path)
			}
			return "", nil, fmt.Errorf("Found %d occurrences of the text in %s. The text must be unique. Please provide more context to make it unique.", n, path)
		}
		found = append(found, match{edit: i, start: start, end: start + len(old), text: e.new})
	}
	sort.SliceStable(found, func(a, b int) bool { return found[a].start < found[b].start })
	for i := 1; i < len(found); i++ {
		if a, b := found[i-1], found[i]; a.end > b.start {
			return "", nil, fmt.Errorf("edits[%d] and edits[%d] overlap in %s. Merge them into one edit or target disjoint regions.", a.edit, b.edit, path)
		}
	}
	return space, found, nil
}
