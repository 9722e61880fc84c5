package tool

import (
	"fmt"
	"slices"
	"strings"
)

// patchedLines are the lines of a file that a patch is applied to.
type patchedLines struct {
	src    *source
	starts []int // of the lines in the file
}

func patchLines(src *source) *patchedLines {
	p := &patchedLines{src: src}
	for at := 0; at < len(src.raw); {
		p.starts = append(p.starts, at)
		_, at = src.line(at)
	}
	return p
}

// line is line i as text, without its line end.
func (p *patchedLines) line(i int) string {
	end, _ := p.src.line(p.starts[i])
	return decoded(p.src.raw[p.starts[i]:end])
}

// start is where line i begins, the end of the file for the one behind the last.
func (p *patchedLines) start(i int) int {
	if i == len(p.starts) {
		return len(p.src.raw)
	}
	return p.starts[i]
}

// closeness are the ways in which lines may be the same, the strictest first.
var closeness = [...]func(string) string{
	func(s string) string { return s },
	func(s string) string { return strings.TrimRightFunc(s, isLineSpace) },
	func(s string) string { return strings.TrimFunc(s, isLineSpace) },
	func(s string) string { return strings.Map(foldRune, strings.TrimFunc(s, isLineSpace)) },
}

// seek finds lines from line number from on, -1 for not at all. A closer match
// wins over one further up. With atEnd the lines must be the last of the file.
func (p *patchedLines) seek(want []string, from int, atEnd bool) int {
	last := len(p.starts) - len(want)
	if atEnd {
		from = max(from, last)
	}
	keys := make([]string, len(want))
	for _, form := range closeness {
		for i, w := range want {
			keys[i] = form(w)
		}
	next:
		for i := from; i <= last; i++ {
			for j, k := range keys {
				if form(p.line(i+j)) != k {
					continue next
				}
			}
			return i
		}
	}
	return -1
}

// apply finds the places of hunks, one behind the other, and what becomes of the
// file. Lines that stay keep their bytes, also where they matched loosely. path
// is for errors.
func (p *patchedLines) apply(path string, hunks []patchHunk) ([]change, error) {
	var runs []lineRun
	at := 0
	for _, h := range hunks {
		from := at
		for _, c := range h.context {
			i := p.seek([]string{c}, from, false)
			if i < 0 {
				return nil, fmt.Errorf("Could not find the line %q in %s (line %d of the patch, searched from line %d of the file on). Nothing was changed. Read the file and write the line behind @@ as it stands there.", excerpt(c), path, h.line, from+1)
			}
			from = i + 1
		}
		old := h.old()
		var i int
		switch {
		case len(old) > 0:
			if i = p.seek(old, from, h.atEnd); i < 0 && from > at {
				i = p.seek(old, from-1, h.atEnd) // the line behind @@ may be the first of the place
			}
			if i < 0 {
				where := fmt.Sprintf("searched from line %d of the file on", from+1)
				if h.atEnd {
					where = "searched at the end of the file"
				}
				return nil, fmt.Errorf("Could not find these lines in %s (line %d of the patch, %s):\n%s\nNothing was changed. Read the file and copy the lines as they stand there; changes come in the order of the file.", path, h.line, where, quoted(old))
			}
		case len(h.context) > 0 && !h.atEnd:
			i = from
		default:
			i = len(p.starts) // lines without a place come last
		}
		for k := 0; k < len(h.lines); {
			if h.lines[k].sign == ' ' {
				i, k = i+1, k+1
				continue
			}
			if n := len(runs); n == 0 || runs[n-1].to != i {
				runs = append(runs, lineRun{from: i, to: i})
			}
			run := &runs[len(runs)-1]
			if h.lines[k].sign == '-' {
				i++
				run.to = i
			} else {
				run.lines = append(run.lines, h.lines[k].text)
			}
			k++
		}
		at = i
	}
	out := make([]change, len(runs))
	for i, r := range runs {
		out[i] = p.replace(r)
	}
	return out, nil
}

// lineRun are the lines [from, to) of a file and those that take their place.
type lineRun struct {
	from, to int
	lines    []string
}

// replace is the change that a run makes. A file without a line end at its end
// stays so.
func (p *patchedLines) replace(r lineRun) change {
	src := p.src
	c := change{start: p.start(r.from), end: p.start(r.to), text: strings.Join(r.lines, "\n")}
	open := src.raw != "" && c.end == len(src.raw) && !strings.HasSuffix(src.raw, "\n") && !strings.HasSuffix(src.raw, "\r")
	switch {
	case len(r.lines) == 0:
		if open && r.from > 0 {
			c.start, _ = src.line(p.start(r.from - 1))
		}
	case !open:
		c.text += "\n"
	case r.from == r.to:
		c.text = "\n" + c.text
	}
	c.raw = keepBytes(src.withLineEnd(c.text, p.start(r.from)), src.raw[c.start:c.end])
	return c
}

// quoted is the beginning of lines for an error. The model has all of them in
// its call; a whole file once more would only fill its window.
func quoted(lines []string) string {
	const most = 40
	if over := len(lines) - most; over > 0 {
		lines = append(slices.Clone(lines[:most]), fmt.Sprintf("[%d more lines]", over))
	}
	text := strings.Join(lines, "\n")
	if len(text) > MaxBytes {
		text = strings.ToValidUTF8(text[:MaxBytes], "") + "…"
	}
	return text
}
