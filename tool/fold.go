package tool

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Folding makes texts comparable that differ only in ways that models do not
// see or cannot type: compatibility forms of characters, white space at the end
// of lines, typographic quotes, dashes and spaces. It works line by line, so a
// folded text has the lines of the text.

// fold is the folded form of a text with LF line ends. It returns text itself
// when folding changes nothing, which for plain code is found out at the speed
// of a scan.
func fold(text string) string {
	if isFolded(text) {
		return text
	}
	out := make([]byte, 0, len(text))
	for line := range strings.Lines(text) {
		body, hasEnd := strings.CutSuffix(line, "\n")
		out = appendFolded(out, body)
		if hasEnd {
			out = append(out, '\n')
		}
	}
	return string(out)
}

// isFolded reports whether a text, of any line ends, is plain ASCII without white
// space at the end of a line. Other texts may be folded too.
func isFolded(text string) bool {
	if !isASCII(text) || text != "" && isASCIISpace(text[len(text)-1]) {
		return false
	}
	for _, end := range [...]byte{'\n', '\r'} {
		for at := 0; ; at++ {
			i := strings.IndexByte(text[at:], end)
			if i < 0 {
				break
			}
			if at += i; at > 0 && isASCIISpace(text[at-1]) {
				return false
			}
		}
	}
	return true
}

func isASCII(s string) bool {
	for ; len(s) >= 8; s = s[8:] {
		if (s[0]|s[1]|s[2]|s[3]|s[4]|s[5]|s[6]|s[7])&0x80 != 0 {
			return false
		}
	}
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// isASCIISpace is for the white space within a line.
func isASCIISpace(c byte) bool { return c == ' ' || c == '\t' || c == '\v' || c == '\f' }

// appendFolded folds a line without its line feed.
func appendFolded(dst []byte, line string) []byte {
	if isASCII(line) {
		n := len(line)
		for n > 0 && isASCIISpace(line[n-1]) {
			n--
		}
		return append(dst, line[:n]...)
	}
	if norm.NFKC.QuickSpanString(line) < len(line) {
		line = norm.NFKC.String(line)
	}
	line = strings.TrimRightFunc(line, isLineSpace)
	for at := 0; at < len(line); {
		n := 0
		for at+n < len(line) && line[at+n] < utf8.RuneSelf {
			n++
		}
		dst = append(dst, line[at:at+n]...)
		if at += n; at < len(line) {
			r, n := utf8.DecodeRuneInString(line[at:])
			dst = utf8.AppendRune(dst, foldRune(r))
			at += n
		}
	}
	return dst
}

// isLineSpace is the white space of JavaScript.
func isLineSpace(r rune) bool {
	switch r {
	case '\t', '\v', '\f', '\r', ' ', 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xFEFF:
		return true
	}
	return r >= 0x2000 && r <= 0x200A
}

// foldRune maps typographic characters to those on a keyboard.
func foldRune(r rune) rune {
	switch {
	case r < 0xA0:
		return r
	case r >= 0x2018 && r <= 0x201B:
		return '\''
	case r >= 0x201C && r <= 0x201F:
		return '"'
	case r >= 0x2010 && r <= 0x2015, r == 0x2212:
		return '-'
	case r == 0xA0, r >= 0x2002 && r <= 0x200A, r == 0x202F, r == 0x205F, r == 0x3000:
		return ' '
	}
	return r
}
