package tool

import "strings"

// lazyLines gives the lines of a range of a file by number, decoded and each with
// its line feed. It splits only as far as it is asked: most of a long file is
// never looked at.
type lazyLines struct {
	src        *source
	start, end int   // the range
	n          int   // number of lines
	ends       []int // end offsets of the lines split so far
}

// newLines counts the lines of a text with LF line ends; the last one may lack its line feed.
func newLines(text string) *lazyLines { return linesOf(&source{raw: text}, 0, len(text)) }

// linesOf counts the lines of a range of whole lines.
func linesOf(src *source, start, end int) *lazyLines {
	raw := src.raw[start:end]
	l := &lazyLines{src: src, start: start, end: end, n: strings.Count(raw, "\n")}
	if src.crs {
		for at := 0; ; {
			i := strings.IndexByte(raw[at:], '\r')
			if i < 0 {
				break
			}
			if at += i + 1; !strings.HasPrefix(raw[at:], "\n") {
				l.n++
			}
		}
	}
	if l.open() {
		l.n++
	}
	return l
}

// open reports whether the last line lacks its line end.
func (l *lazyLines) open() bool {
	return l.end > l.start && l.src.raw[l.end-1] != '\n' && l.src.raw[l.end-1] != '\r'
}

// at is line i, counted from 0.
func (l *lazyLines) at(i int) string {
	for len(l.ends) <= i {
		start := l.start
		if k := len(l.ends); k > 0 {
			start = l.ends[k-1]
		}
		_, next := l.src.line(start)
		l.ends = append(l.ends, min(next, l.end))
	}
	start := l.start
	if i > 0 {
		start = l.ends[i-1]
	}
	return l.src.text(start, l.ends[i])
}

// last gives the last k lines without splitting what stands before them.
func (l *lazyLines) last(k int) []string {
	k = min(k, l.n)
	out := make([]string, k)
	end := l.end
	start := 0
	for i := k - 1; i >= 0; i-- {
		if i == k-1 && l.open() {
			start = l.src.start(end)
		} else {
			start = l.src.before(end)
		}
		out[i] = l.src.text(start, end)
		end = start
	}
	return out
}
