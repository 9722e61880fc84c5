package tool

import (
	"fmt"
	"sort"
)

// replacement is one entry of an edit call, its texts with LF line ends.
type replacement struct{ old, new string }

// match is where a replacement applies.
type match struct {
	edit int // number of the replacement, as given
	span
	text string
}

// matches finds the places of all replacements in a file, in the order of
// places. They are looked up in the text as it is or, when one of them is not
// there, all in its folded form; the space that is returned is the one that was
// searched. The error texts name path as the model wrote it.
func matches(src *source, path string, edits []replacement) (*space, []match, error) {
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
			return nil, nil, fmt.Errorf("%s must not be empty in %s.", subject, path)
		}
	}
	sp := exactSpace(src, edits)
	foldedSpace := &space{src: src, kind: asFolded}
	places := make([]span, len(edits))
	for i, e := range edits {
		at, ok := sp.find(e.old)
		if !ok {
			sp = foldedSpace
			break
		}
		places[i] = at
	}
	var found []match
	for i, e := range edits {
		old, at, ok := e.old, places[i], true
		key := fold(old)
		if sp == foldedSpace {
			if at, ok = sp.find(old); !ok && key != "" {
				old = key
				at, ok = sp.find(old)
			}
		}
		if !ok {
			if n := name(i); n != "" {
				return nil, nil, fmt.Errorf("Could not find %s in %s. The oldText must match exactly including all whitespace and newlines.", n, path)
			}
			return nil, nil, fmt.Errorf("Could not find the exact text in %s. The old text must match exactly including all whitespace and newlines.", path)
		}
		// What is the same when folded would be a lottery even where one place
		// matches exactly. Blanks alone fold to nothing and count as they are.
		n := 0
		if key == "" {
			n = sp.count(old)
		} else {
			n = foldedSpace.count(key)
		}
		if n > 1 {
			if s := name(i); s != "" {
				return nil, nil, fmt.Errorf("Found %d occurrences of %s in %s. Each oldText must be unique. Please provide more context to make it unique.", n, s, path)
			}
			return nil, nil, fmt.Errorf("Found %d occurrences of the text in %s. The text must be unique. Please provide more context to make it unique.", n, path)
		}
		found = append(found, match{edit: i, span: at, text: e.new})
	}
	sort.SliceStable(found, func(a, b int) bool { return found[a].start.less(found[b].start) })
	for i := 1; i < len(found); i++ {
		if a, b := found[i-1], found[i]; b.start.less(a.end) {
			return nil, nil, fmt.Errorf("edits[%d] and edits[%d] overlap in %s. Merge them into one edit or target disjoint regions.", a.edit, b.edit, path)
		}
	}
	return sp, found, nil
}
