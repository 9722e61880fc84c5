package tool

import "strings"

// lazyLines gives the lines of a text by number, each with its line feed. It
// splits only as far as it is asked: most of a long file is never looked at.
type lazyLines struct {
	text string
	n    int   // number of lines
	ends []int // end offsets of the lines split so far
}

// newLines counts the lines of text; the last one may lack its line feed.
func newLines(text string) *lazyLines {
	n := strings.Count(text, "\n")
	if text != "" && text[len(text)-1] != '\n' {
		n++
	}
	return &lazyLines{text: text, n: n}
}

// at is line i, counted from 0.
func (l *lazyLines) at(i int) string {
	for len(l.ends) <= i {
		start := 0
		if k := len(l.ends); k > 0 {
			start = l.ends[k-1]
		}
		end := len(l.text)
		if j := strings.IndexByte(l.text[start:], '\n'); j >= 0 {
			end = start + j + 1
		}
		l.ends = append(l.ends, end)
	}
	start := 0
	if i > 0 {
		start = l.ends[i-1]
	}
	return l.text[start:l.ends[i]]
}

// last gives the last k lines without splitting what stands before them.
func (l *lazyLines) last(k int) []string {
	k = min(k, l.n)
	out := make([]string, k)
	end := len(l.text)
	for i := k - 1; i >= 0; i-- {
		start := strings.LastIndexByte(strings.TrimSuffix(l.text[:end], "\n"), '\n') + 1
		out[i] = l.text[start:end]
		end = start
	}
	return out
}
