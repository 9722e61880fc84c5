package jsonedit

import (
	"bytes"
	"slices"
)

// Plain is text as readers of JSON take it: comments, commas before closing
// brackets and a byte order mark are blanked, so that every other byte stays at
// its place. Text that is JSON already is returned as it is, in a copy.
func Plain(text []byte) []byte {
	out := slices.Clone(text)
	if bytes.HasPrefix(out, []byte("\xEF\xBB\xBF")) {
		copy(out, "   ")
	}
	var before byte // what stands before the place, blanks and comments aside
	comma := -1     // a comma with only blanks behind it so far
	for i := 0; i < len(out); i++ {
		c := out[i]
		switch {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			continue
		case c == '/':
			end := i + comment(out[i:])
			if end == i {
				return out // the reader reports the slash
			}
			for ; i < end; i++ {
				if out[i] != '\n' {
					out[i] = ' '
				}
			}
			i--
			continue
		case c == '"':
			for i++; i < len(out) && out[i] != '"'; i++ {
				if out[i] == '\\' {
					i++
				}
			}
		case (c == '}' || c == ']') && comma >= 0:
			out[comma] = ' '
		}
		comma = -1
		if c == ',' && before != 0 && bytes.IndexByte([]byte("{[,:"), before) < 0 {
			comma = i
		}
		before = c
	}
	return out
}

// Blank reports whether a text holds nothing but white space, comments and a byte
// order mark: a file that was made and not written yet, or was emptied.
func Blank(text []byte) bool { return len(bytes.Trim(Plain(text), " \t\r\n")) == 0 }

// Begin puts an empty object behind a blank text, so that it can be changed; other
// texts stay as they are.
func Begin(text []byte) []byte {
	if !Blank(text) {
		return text
	}
	text = slices.Clip(text)
	if len(text) > 0 && text[len(text)-1] != '\n' { // a comment may end here
		text = append(text, '\n')
	}
	return append(text, "{}"...)
}

// comment is the length of the comment that b begins with, 0 for none. That of a
// line ends before the line end.
func comment(b []byte) int {
	switch {
	case bytes.HasPrefix(b, []byte("//")):
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			return len(b)
		}
		if b[end-1] == '\r' {
			end--
		}
		return end
	case bytes.HasPrefix(b, []byte("/*")):
		if end := bytes.Index(b[2:], []byte("*/")); end >= 0 {
			return 2 + end + 2
		}
	}
	return 0
}
