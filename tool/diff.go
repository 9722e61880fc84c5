package tool

import (
	"strconv"
	"strings"
)

// textPart is a part of a changed text: the same in both versions, or replaced.
// Parts consist of whole lines, except at the end of the text.
type textPart struct {
	old, new *lazyLines // one object when the part is the same in both
}

func samePart(src *source, start, end int) textPart {
	l := linesOf(src, start, end)
	return textPart{old: l, new: l}
}

func changedPart(old, new string) textPart {
	return textPart{old: newLines(old), new: newLines(new)}
}

// side is one version of the text, as numbered lines.
type side struct {
	parts  []*lazyLines
	starts []int // number of the first line of each part
	n      int
	at     int // part of the last access
}

func newSide(parts []textPart, pick func(textPart) *lazyLines) *side {
	s := &side{}
	for _, p := range parts {
		l := pick(p)
		s.parts, s.starts = append(s.parts, l), append(s.starts, s.n)
		s.n += l.n
	}
	return s
}

// part is the number of the part that holds line i.
func (s *side) part(i int) int {
	for s.starts[s.at] > i {
		s.at--
	}
	for s.starts[s.at]+s.parts[s.at].n <= i {
		s.at++
	}
	return s.at
}

func (s *side) line(i int) string {
	p := s.part(i)
	return s.parts[p].at(i - s.starts[p])
}

// hunk is a changed place: lines removed from the old text and lines added in
// the new one, numbered from 0.
type hunk struct {
	oldStart, oldLines int
	newStart, newLines int
}

// maxEdits bounds the search for the shortest script. Texts that differ by more
// lines are shown as one replaced block, which is what they are to a reader.
const maxEdits = 8000

// comparison finds how two versions of a text differ, by Myers' greedy method:
// for a growing number of edited lines, the farthest point that each diagonal
// reaches. Of the two ways to a diagonal the one that has come further in the
// old text is taken, on a tie the one that removes. This choice decides which of
// several shortest scripts comes out, so it follows the library that peers use,
// down to what is forgotten and what is not.
//
// The text is given as parts, so that a path that follows an unchanged part
// jumps over it instead of comparing it line by line. The result is that of the
// whole texts.
type comparison struct {
	parts    []textPart
	old, new *side
}

func compare(parts []textPart) *comparison {
	return &comparison{
		parts: parts,
		old:   newSide(parts, func(p textPart) *lazyLines { return p.old }),
		new:   newSide(parts, func(p textPart) *lazyLines { return p.new }),
	}
}

// step is a run of removed or added lines on a path, behind a run of equal ones.
type step struct {
	before  *step
	equal   int // equal lines before the run
	n       int
	removed bool
}

// path is the farthest point on one diagonal: the numbers of the last lines
// passed in both texts differ by the diagonal.
type path struct {
	old   int // last line passed in the old text; -1 for none
	last  step
	equal int // equal lines since the last step
	alive bool
}

// diagonals holds the path of each diagonal.
type diagonals struct {
	paths []path
	zero  int // index of diagonal 0
}

// grow makes room for the diagonals from -d to d.
func (g *diagonals) grow(d int) {
	if d <= g.zero {
		return
	}
	zero := max(2*g.zero, d, 16)
	paths := make([]path, 2*zero+1)
	copy(paths[zero-g.zero:], g.paths)
	g.paths, g.zero = paths, zero
}

func (g *diagonals) at(d int) *path { return &g.paths[g.zero+d] }

func (p path) add(removed bool) path {
	if p.equal == 0 && p.last.n > 0 && p.last.removed == removed {
		p.last.n++
	} else {
		next := step{equal: p.equal, n: 1, removed: removed}
		if p.last.n > 0 {
			before := p.last
			next.before = &before
		}
		p.last = next
	}
	p.equal = 0
	if removed {
		p.old++
	}
	return p
}

// follow moves a path along equal lines. diagonal is old minus new.
func (c *comparison) follow(p *path, diagonal int) {
	for p.old+1 < c.old.n && p.old+1-diagonal < c.new.n {
		i, j := p.old+1, p.old+1-diagonal
		a, b := c.old.part(i), c.new.part(j)
		if a == b && c.parts[a].old == c.parts[a].new && c.new.starts[a]-c.old.starts[a] == j-i {
			rest := c.old.starts[a] + c.old.parts[a].n - i
			p.old += rest
			p.equal += rest
			continue
		}
		if c.old.line(i) != c.new.line(j) {
			return
		}
		p.old++
		p.equal++
	}
}

// hunks are the differences in order.
func (c *comparison) hunks() []hunk {
	n, m := c.old.n, c.new.n
	if n == 0 && m == 0 {
		return nil
	}
	limit := min(n+m, maxEdits)
	var best diagonals
	start := path{old: -1, alive: true}
	c.follow(&start, 0)
	if start.old+1 >= n && start.old+1 >= m {
		return nil
	}
	best.grow(1)
	*best.at(0) = start
	lowest, highest := -limit, limit
	for edits := 1; edits <= limit; edits++ {
		best.grow(edits + 1)
		for d := max(lowest, -edits); d <= min(highest, edits); d += 2 {
			remove, add := best.at(d-1), best.at(d+1)
			from := *remove
			remove.alive = false // nobody else comes this way
			canAdd := add.alive && add.old-d >= 0 && add.old-d < m
			canRemove := from.alive && from.old+1 < n
			if !canAdd && !canRemove {
				best.at(d).alive = false
				continue
			}
			var p path
			if !canRemove || canAdd && from.old < add.old {
				p = add.add(false)
			} else {
				p = from.add(true)
			}
			c.follow(&p, d)
			*best.at(d) = p
			oldDone, newDone := p.old+1 >= n, p.old-d+1 >= m
			if oldDone && newDone {
				return p.hunks()
			}
			if oldDone {
				highest = min(highest, d-1)
			}
			if newDone {
				lowest = max(lowest, d+1)
			}
		}
	}
	return c.block()
}

// hunks reads a finished path. Runs that meet are one hunk.
func (p path) hunks() []hunk {
	var steps []*step
	if p.last.n > 0 {
		for s := &p.last; s != nil; s = s.before {
			steps = append(steps, s)
		}
	}
	var out []hunk
	old, new := 0, 0
	for i := len(steps) - 1; i >= 0; i-- {
		s := steps[i]
		old, new = old+s.equal, new+s.equal
		if len(out) == 0 || s.equal > 0 {
			out = append(out, hunk{oldStart: old, newStart: new})
		}
		h := &out[len(out)-1]
		if s.removed {
			h.oldLines += s.n
			old += s.n
		} else {
			h.newLines += s.n
			new += s.n
		}
	}
	return out
}

// block is everything between the first and the last changed part as one hunk.
func (c *comparison) block() []hunk {
	first, last := -1, -1
	for i, p := range c.parts {
		if p.old != p.new {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	h := hunk{
		oldStart: c.old.starts[first], newStart: c.new.starts[first],
	}
	h.oldLines = c.old.starts[last] + c.old.parts[last].n - h.oldStart
	h.newLines = c.new.starts[last] + c.new.parts[last].n - h.newStart
	return []hunk{h}
}

// contextLines is how many unchanged lines stand around a change.
const contextLines = 4

// context lists the unchanged old lines [from, to).
func (c *comparison) context(from, to int) []string {
	out := make([]string, 0, max(0, to-from))
	for i := from; i < to; {
		p := c.old.part(i)
		l, start := c.old.parts[p], c.old.starts[p]
		k := min(to, start+l.n) - i
		if rest := start + l.n - i; rest == k && i > start {
			out = append(out, l.last(k)...)
		} else {
			for j := range k {
				out = append(out, l.at(i-start+j))
			}
		}
		i += k
	}
	return out
}

// display shows the changes with line numbers, for people and models: a sign, a
// number padded to the widest one, a blank and the line.
func (c *comparison) display(hunks []hunk) string {
	// A text has a line more than line feeds, here even an empty one.
	width := len(strconv.Itoa(max(c.old.lineFeeds(), c.new.lineFeeds()) + 1))
	var b strings.Builder
	line := func(sign byte, n int, text string) {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		num := strconv.Itoa(n + 1)
		b.WriteByte(sign)
		b.WriteString(strings.Repeat(" ", max(0, width-len(num))))
		b.WriteString(num)
		b.WriteByte(' ')
		b.WriteString(strings.TrimSuffix(text, "\n"))
	}
	gap := func() {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(strings.Repeat(" ", width+1) + " ...")
	}
	context := func(from, to int) {
		for i, text := range c.context(from, to) {
			line(' ', from+i, text)
		}
	}
	behind := 0 // old line behind the last hunk
	for i, h := range hunks {
		if from := max(behind, h.oldStart-contextLines); i == 0 {
			if from > 0 {
				gap()
			}
			context(from, h.oldStart)
		} else if h.oldStart-behind <= 2*contextLines {
			context(behind, h.oldStart)
		} else {
			context(behind, behind+contextLines)
			gap()
			context(from, h.oldStart)
		}
		for j := range h.oldLines {
			line('-', h.oldStart+j, c.old.line(h.oldStart+j))
		}
		for j := range h.newLines {
			line('+', h.newStart+j, c.new.line(h.newStart+j))
		}
		behind = h.oldStart + h.oldLines
	}
	if end := min(c.old.n, behind+contextLines); len(hunks) > 0 {
		context(behind, end)
		if end < c.old.n {
			gap()
		}
	}
	return b.String()
}

func (s *side) lineFeeds() int {
	if s.n == 0 {
		return 0
	}
	for i := len(s.parts) - 1; i >= 0; i-- {
		if s.parts[i].n > 0 {
			if s.parts[i].open() {
				return s.n - 1
			}
			break
		}
	}
	return s.n
}

// patch shows the changes as a unified diff of the file called name.
func (c *comparison) patch(name string, hunks []hunk) string {
	var b strings.Builder
	b.WriteString("--- " + name + "\n+++ " + name + "\n")
	for len(hunks) > 0 {
		// Changes with little between them share a hunk.
		k := 1
		for k < len(hunks) && hunks[k].oldStart-hunks[k-1].oldStart-hunks[k-1].oldLines <= 2*contextLines {
			k++
		}
		c.patchHunk(&b, hunks[:k])
		hunks = hunks[k:]
	}
	return b.String()
}

func (c *comparison) patchHunk(b *strings.Builder, hunks []hunk) {
	first, last := hunks[0], hunks[len(hunks)-1]
	from := max(0, first.oldStart-contextLines)
	to := min(c.old.n, last.oldStart+last.oldLines+contextLines)
	newFrom := first.newStart - (first.oldStart - from)
	newTo := last.newStart + last.newLines + (to - last.oldStart - last.oldLines)
	b.WriteString("@@ -" + lineRange(from, to) + " +" + lineRange(newFrom, newTo) + " @@\n")
	line := func(sign byte, text string) {
		b.WriteByte(sign)
		b.WriteString(text)
		if !strings.HasSuffix(text, "\n") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
	for _, h := range hunks {
		for _, text := range c.context(from, h.oldStart) {
			line(' ', text)
		}
		for j := range h.oldLines {
			line('-', c.old.line(h.oldStart+j))
		}
		for j := range h.newLines {
			line('+', c.new.line(h.newStart+j))
		}
		from = h.oldStart + h.oldLines
	}
	for _, text := range c.context(from, to) {
		line(' ', text)
	}
}

// lineRange names the lines [from, to) as unified diffs do: by the first line
// and a count; an empty range by the line before it.
func lineRange(from, to int) string {
	first := from + 1
	if from == to {
		first = from
	}
	return strconv.Itoa(first) + "," + strconv.Itoa(to-from)
}
