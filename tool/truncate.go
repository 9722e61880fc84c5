package tool

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// The bounds of what a tool shows to a model at once, whichever comes first.
const (
	MaxLines = 2000
	MaxBytes = 50 << 10
)

// truncation says what of a text is shown. Its JSON form is details.truncation.
type truncation struct {
	content     string // what is shown
	truncated   bool
	by          string // lines or bytes; "" when not truncated
	totalLines  int
	totalBytes  int64
	lines       int // shown
	bytes       int // shown
	lastPartial bool
	firstTooBig bool // the first line alone is over the limit, so nothing is shown
	maxLines    int
}

func (t *truncation) appendJSON(dst []byte) []byte {
	dst = append(dst, `{"content":`...)
	dst = jsonwire.AppendString(dst, t.content)
	dst = append(dst, `,"truncated":`...)
	dst = strconv.AppendBool(dst, t.truncated)
	if t.by == "" {
		dst = append(dst, `,"truncatedBy":null`...)
	} else {
		dst = append(append(append(dst, `,"truncatedBy":"`...), t.by...), '"')
	}
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"totalLines", int64(t.totalLines)}, {"totalBytes", t.totalBytes},
		{"outputLines", int64(t.lines)}, {"outputBytes", int64(t.bytes)},
	} {
		dst = append(append(append(dst, `,"`...), n.name...), `":`...)
		dst = strconv.AppendInt(dst, n.value, 10)
	}
	dst = append(dst, `,"lastLinePartial":`...)
	dst = strconv.AppendBool(dst, t.lastPartial)
	dst = append(dst, `,"firstLineExceedsLimit":`...)
	dst = strconv.AppendBool(dst, t.firstTooBig)
	dst = append(dst, `,"maxLines":`...)
	dst = strconv.AppendInt(dst, int64(t.maxLines), 10)
	dst = append(dst, `,"maxBytes":`...)
	dst = strconv.AppendInt(dst, MaxBytes, 10)
	return append(dst, '}')
}

// extent is the size of a whole text of which perhaps only a part is at hand.
type extent struct {
	bytes    int64
	newlines int
	endsLine bool // the last byte is a line feed, or there is none
}

// lines counts lines; a final line feed opens none.
func (e extent) lines() int {
	if e.endsLine {
		return e.newlines
	}
	return e.newlines + 1
}

var lf = []byte{'\n'}

// truncateHead keeps the first whole lines of a text. text is its start: all of
// it, or at least more than MaxBytes or MaxLines of it.
func truncateHead(text []byte, whole extent) truncation { return truncateHeadTo(text, whole, MaxLines) }

// anyLines stands for no bound of lines. It is the largest integer that
// JavaScript keeps apart from its neighbours.
const anyLines = 1<<53 - 1

func truncateHeadTo(text []byte, whole extent, maxLines int) truncation {
	t := truncation{totalLines: whole.lines(), totalBytes: whole.bytes, maxLines: maxLines}
	if t.totalLines <= maxLines && t.totalBytes <= MaxBytes {
		t.content = string(text)
		t.lines, t.bytes = t.totalLines, len(text)
		return t
	}
	t.truncated, t.by = true, "lines"
	end := 0 // of the kept part, without its last line feed
	for pos := 0; t.lines < maxLines && pos < len(text); t.lines++ {
		n := bytes.IndexByte(text[pos:], '\n')
		stop := pos + n
		if n < 0 {
			stop = len(text)
		}
		if stop > MaxBytes {
			break
		}
		end, pos = stop, stop+1
	}
	if t.lines < min(maxLines, t.totalLines) {
		t.by = "bytes" // also where the start that is at hand ends with a line
	}
	if t.lines == 0 {
		t.firstTooBig = true
		return t
	}
	t.content, t.bytes = string(text[:end]), end
	return t
}

// truncateTail keeps the last whole lines of a text, or the end of the last one
// when that alone is too long. text is its end: all of it, or at least more than
// MaxBytes of it.
func truncateTail(text []byte, whole extent) truncation {
	t := truncation{totalLines: whole.lines(), totalBytes: whole.bytes, maxLines: MaxLines}
	if t.totalLines <= MaxLines && t.totalBytes <= MaxBytes {
		t.content = string(text)
		t.lines, t.bytes = t.totalLines, len(text)
		return t
	}
	t.truncated, t.by = true, "lines"
	text = bytes.TrimSuffix(text, lf)
	begin := len(text)
	for stop := len(text); t.lines < MaxLines && stop >= 0; t.lines++ {
		start := bytes.LastIndexByte(text[:stop], '\n') + 1
		if len(text)-start > MaxBytes {
			t.by = "bytes"
			break
		}
		begin, stop = start, start-1
	}
	if t.lines == 0 {
		begin = len(text) - MaxBytes
		for begin < len(text) && !utf8.RuneStart(text[begin]) {
			begin++
		}
		t.lines, t.lastPartial = 1, true
	}
	t.content, t.bytes = string(text[begin:]), len(text)-begin
	return t
}

// sizeText prints a number of bytes for people, halves rounded up.
func sizeText(n int64) string {
	switch {
	case n < 1<<10:
		return strconv.FormatInt(n, 10) + "B"
	case n < 1<<20:
		return tenths((n*10+1<<9)>>10) + "KB"
	}
	return tenths((n*10+1<<19)>>20) + "MB"
}

func tenths(n int64) string {
	return strconv.FormatInt(n/10, 10) + "." + strconv.FormatInt(n%10, 10)
}
