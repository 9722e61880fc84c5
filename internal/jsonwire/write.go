package jsonwire

import (
	"bytes"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string by the rules of JSON.stringify: no
// HTML escaping, control characters as short or \u00xx escapes, half of a
// surrogate pair as \udxxx. Other invalid UTF-8 becomes U+FFFD.
func AppendString[S ~string | ~[]byte](dst []byte, s S) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= 0x20 && c != '"' && c != '\\' {
				i += plainASCII(s, i)
				continue
			}
			dst = append(dst, s[start:i]...)
			switch c {
			case '"', '\\':
				dst = append(dst, '\\', c)
			case '\n':
				dst = append(dst, '\\', 'n')
			case '\t':
				dst = append(dst, '\\', 't')
			case '\r':
				dst = append(dst, '\\', 'r')
			case '\b':
				dst = append(dst, '\\', 'b')
			case '\f':
				dst = append(dst, '\\', 'f')
			default:
				dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
			i++
			start = i
			continue
		}
		n := runeLen(s, i)
		if n > 0 {
			i += n
			continue
		}
		dst = append(dst, s[start:i]...)
		if u := SurrogateAt(s, i); u != 0 {
			dst = append(dst, '\\', 'u', hexDigits[u>>12], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
			i += 3
		} else {
			dst = append(dst, "\uFFFD"...)
			i++
		}
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// plainASCII is how many bytes from i on, at least 1, are ASCII that stands for
// itself in a string, of which the caller has seen the first.
func plainASCII[S ~string | ~[]byte](s S, i int) int {
	const highs = 0x8080808080808080
	n := i + 1
	for ; n+8 <= len(s); n += 8 {
		x := uint64(s[n]) | uint64(s[n+1])<<8 | uint64(s[n+2])<<16 | uint64(s[n+3])<<24 |
			uint64(s[n+4])<<32 | uint64(s[n+5])<<40 | uint64(s[n+6])<<48 | uint64(s[n+7])<<56
		if found := stops(x) | x&highs; found != 0 {
			return n + bits.TrailingZeros64(found)/8 - i
		}
	}
	return n - i
}

// runeLen is the length of the valid UTF-8 sequence at i, 0 when there is none.
func runeLen[S ~string | ~[]byte](s S, i int) int {
	c := s[i]
	rest := len(s) - i
	cont := func(k int) bool { return s[i+k]&0xC0 == 0x80 }
	switch {
	case c < 0xC2:
		return 0
	case c < 0xE0:
		if rest >= 2 && cont(1) {
			return 2
		}
	case c < 0xF0:
		if rest >= 3 && cont(1) && cont(2) {
			switch {
			case c == 0xE0 && s[i+1] < 0xA0, c == 0xED && s[i+1] >= 0xA0:
				return 0
			}
			return 3
		}
	case c < 0xF5:
		if rest >= 4 && cont(1) && cont(2) && cont(3) {
			switch {
			case c == 0xF0 && s[i+1] < 0x90, c == 0xF4 && s[i+1] >= 0x90:
				return 0
			}
			return 4
		}
	}
	return 0
}

// SurrogateAt is the surrogate whose three-byte form stands at i, else 0.
func SurrogateAt[S ~string | ~[]byte](s S, i int) rune {
	if i+2 < len(s) && s[i] == 0xED && s[i+1] >= 0xA0 && s[i+1] <= 0xBF && s[i+2]&0xC0 == 0x80 {
		return 0xD000 | rune(s[i+1]&0x3F)<<6 | rune(s[i+2]&0x3F)
	}
	return 0
}

// HasSurrogate reports whether s holds half of a surrogate pair.
func HasSurrogate(s string) bool {
	for i := 0; ; i++ {
		n := strings.IndexByte(s[i:], 0xED)
		if n < 0 {
			return false
		}
		if i += n; SurrogateAt(s, i) != 0 {
			return true
		}
	}
}

// DropSurrogates is s without unpaired halves of surrogate pairs: two halves
// that met become their character, the others vanish. It returns s itself when
// there are none.
func DropSurrogates(s string) string {
	if !HasSurrogate(s) {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		u := SurrogateAt(s, i)
		if u == 0 {
			out = append(out, s[i])
			i++
			continue
		}
		i += 3
		if u < 0xDC00 {
			if lo := SurrogateAt(s, i); lo >= 0xDC00 {
				out = utf8.AppendRune(out, 0x10000+(u-0xD800)<<10+(lo-0xDC00))
				i += 3
			}
		}
	}
	return string(out)
}

// appendRune appends u as UTF-8, a surrogate as its three-byte form. A low half
// joins a high half at the end of dst.
func appendRune(dst []byte, u rune) []byte {
	if u < 0xD800 || u > 0xDFFF {
		return utf8.AppendRune(dst, u)
	}
	if n := len(dst); u >= 0xDC00 && n >= 3 {
		if hi := SurrogateAt(dst, n-3); hi != 0 && hi < 0xDC00 {
			return utf8.AppendRune(dst[:n-3], 0x10000+(hi-0xD800)<<10+(u-0xDC00))
		}
	}
	return append(dst, 0xE0|byte(u>>12), 0x80|byte(u>>6)&0xBF, 0x80|byte(u)&0xBF)
}

// appendValid appends s with invalid UTF-8 replaced, one U+FFFD for each
// longest cut-off sequence as the WHATWG decoder does.
func appendValid(dst, s []byte) []byte {
	if utf8.Valid(s) {
		return append(dst, s...)
	}
	return AppendUTF8(dst, s)
}

// AppendUTF8 appends s with invalid UTF-8 replaced by the WHATWG rule: one
// U+FFFD for each longest prefix of a valid sequence, where Go's own
// conversion gives one for each byte.
func AppendUTF8[S ~string | ~[]byte](dst []byte, s S) []byte {
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			dst = append(dst, c)
			i++
			continue
		}
		if n := runeLen(s, i); n > 0 {
			dst = append(dst, s[i:i+n]...)
			i += n
			continue
		}
		dst = append(dst, "\uFFFD"...)
		i += cutOff(s, i)
	}
	return dst
}

// cutOff is the length of the longest prefix of a valid sequence at i, at least 1.
func cutOff[S ~string | ~[]byte](s S, i int) int {
	c := s[i]
	need, lo, hi := 0, byte(0x80), byte(0xBF)
	switch {
	case c >= 0xC2 && c < 0xE0:
		need = 1
	case c >= 0xE0 && c < 0xF0:
		need = 2
		if c == 0xE0 {
			lo = 0xA0
		} else if c == 0xED {
			hi = 0x9F
		}
	case c >= 0xF0 && c < 0xF5:
		need = 3
		if c == 0xF0 {
			lo = 0x90
		} else if c == 0xF4 {
			hi = 0x8F
		}
	}
	n := 1
	for ; n <= need && i+n < len(s); n++ {
		b := s[i+n]
		if b < lo || b > hi {
			break
		}
		lo, hi = 0x80, 0xBF
	}
	return n
}

// SplitUTF8 splits off the start of a UTF-8 sequence at the end of b that more
// bytes could complete, so that a stream can be decoded chunk by chunk.
func SplitUTF8(b []byte) (whole, cut []byte) {
	for i := len(b) - 1; i >= 0 && i >= len(b)-utf8.UTFMax+1; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return b[:i], b[i:]
			}
			break
		}
	}
	return b, nil
}

// ToValidUTF8 is s with WTF-8 halves and other invalid bytes replaced by
// U+FFFD, for places that want plain UTF-8: files, terminals.
func ToValidUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		if SurrogateAt(s, i) != 0 {
			out = append(out, "\uFFFD"...)
			i += 3
			continue
		}
		n := 1
		if s[i] >= utf8.RuneSelf {
			if n = runeLen(s, i); n == 0 {
				out = append(out, "\uFFFD"...)
				i += cutOff(s, i)
				continue
			}
		}
		out = append(out, s[i:i+n]...)
		i += n
	}
	return string(out)
}

// UTF16Len is the length of s in UTF-16 code units, the peers' "characters".
func UTF16Len[S ~string | ~[]byte](s S) int {
	n := 0
	for i := 0; i < len(s); i++ {
		// One unit for each sequence, a second one for four-byte sequences.
		switch c := s[i]; {
		case c < 0x80 || c >= 0xC0 && c < 0xF0:
			n++
		case c >= 0xF0:
			n += 2
		}
	}
	return n
}

// UTF16Prefix is the longest beginning of s that has at most so many UTF-16 code
// units and ends between two characters.
func UTF16Prefix(s string, units int) string {
	i := 0
	for i < len(s) {
		size, n := 3, 1 // half of a pair
		if SurrogateAt(s, i) == 0 {
			var r rune
			if r, size = utf8.DecodeRuneInString(s[i:]); r > 0xFFFF {
				n = 2
			}
		}
		if units -= n; units < 0 {
			break
		}
		i += size
	}
	return s[:i]
}

// AppendFloat appends f in the shortest form that JavaScript prints: exponents
// from 1e21 and below 1e-6, -0 as 0, NaN and infinities as null.
func AppendFloat(dst []byte, f float64) []byte {
	switch {
	case f == 0:
		return append(dst, '0')
	case math.IsNaN(f) || math.IsInf(f, 0):
		return append(dst, "null"...)
	}
	if a := math.Abs(f); a >= 1e-6 && a < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	// Go pads the exponent to two digits, JavaScript does not.
	if e := bytes.IndexByte(dst[start:], 'e'); e >= 0 && dst[start+e+2] == '0' {
		dst = append(dst[:start+e+2], dst[start+e+3:]...)
	}
	return dst
}

// AppendCompact appends the JSON value raw as JSON.stringify would print it
// after parsing: no white space, strings in their shortest form, numbers in
// theirs, the last of members with one name in the place of the first. Whole
// numbers keep their digits whatever their size. The order of members stays.
func AppendCompact(dst, raw []byte) ([]byte, error) {
	var r Reader
	r.Reset(raw)
	n := len(dst)
	dst = r.compact(dst, "", 0)
	if err := r.End(); err != nil {
		return dst[:n], err
	}
	return dst, nil
}

// AppendIndent is AppendCompact with line breaks, each level indented by one
// more indent; empty containers stay on one line.
func AppendIndent(dst, raw []byte, indent string) ([]byte, error) {
	var r Reader
	r.Reset(raw)
	n := len(dst)
	dst = r.compact(dst, indent, 0)
	if err := r.End(); err != nil {
		return dst[:n], err
	}
	return dst, nil
}

type span struct{ name, from, to int } // of one member in dst: its start, its value

func (r *Reader) compact(dst []byte, indent string, level int) []byte {
	newline := func(level int) {
		if indent == "" {
			return
		}
		dst = append(dst, '\n')
		for range level {
			dst = append(dst, indent...)
		}
	}
	switch r.Kind() {
	case '{':
		dst = append(dst, '{')
		var few [8]span
		spans := few[:0]
		for r.Object(); r.More(); {
			if len(spans) > 0 {
				dst = append(dst, ',')
			}
			newline(level + 1)
			s := span{name: len(dst)}
			dst = AppendString(dst, r.Key())
			dst = append(dst, ':')
			if indent != "" {
				dst = append(dst, ' ')
			}
			s.from = len(dst)
			dst = r.compact(dst, indent, level+1)
			s.to = len(dst)
			spans = append(spans, s)
		}
		if r.err != nil {
			return dst
		}
		if len(spans) > 1 {
			dst = dropDuplicates(dst, spans)
		}
		if len(spans) > 0 {
			newline(level)
		}
		return append(dst, '}')
	case '[':
		dst = append(dst, '[')
		n := 0
		for r.Array(); r.More(); n++ {
			if n > 0 {
				dst = append(dst, ',')
			}
			newline(level + 1)
			dst = r.compact(dst, indent, level+1)
		}
		if n > 0 {
			newline(level)
		}
		return append(dst, ']')
	case '"':
		if s := r.shortest(); s != nil {
			return append(dst, s...)
		}
		return AppendString(dst, r.String())
	case '0':
		return appendNumber(dst, r.Raw())
	default:
		return append(dst, r.Raw()...)
	}
}

// shortest reads a string that stands as AppendString would write it, with its
// quotes. It reads nothing of another one, and is nil.
func (r *Reader) shortest() []byte {
	b := r.b
	for i := r.i + 1; ; i += 2 {
		n, ascii := Plain(b[i:])
		if !ascii && !utf8.Valid(b[i:i+n]) {
			return nil
		}
		switch i += n; {
		case i < len(b) && b[i] == '"':
			s := b[r.i : i+1]
			r.i = i + 1
			return s
		case i+1 >= len(b) || b[i] != '\\' || strings.IndexByte(`"\nrtbf`, b[i+1]) < 0:
			return nil
		}
	}
}

func appendNumber(dst, raw []byte) []byte {
	if raw == nil || !bytes.ContainsAny(raw, ".eE") && string(raw) != "-0" {
		return append(dst, raw...)
	}
	f, err := strconv.ParseFloat(view(raw), 64)
	if err != nil {
		return append(dst, raw...) // out of range: better the digits than null
	}
	return AppendFloat(dst, f)
}

// dropDuplicates rewrites the members in dst so that of several with one name
// the last value stands in the place of the first.
func dropDuplicates(dst []byte, spans []span) []byte {
	if len(spans) <= 16 && distinct(dst, spans) {
		return dst
	}
	last := make(map[string]int, len(spans))
	for i, s := range spans {
		last[string(dst[s.name:s.from])] = i
	}
	if len(last) == len(spans) {
		return dst
	}
	from := spans[0].name
	old := append([]byte(nil), dst[from:]...)
	// Separators (comma, line break, indentation) are those before the second member.
	sep := old[spans[0].to-from : spans[1].name-from]
	dst = dst[:from]
	seen := make(map[string]bool, len(last))
	for _, s := range spans {
		name := old[s.name-from : s.from-from]
		if seen[string(name)] {
			continue
		}
		if len(seen) > 0 {
			dst = append(dst, sep...)
		}
		seen[string(name)] = true
		l := spans[last[string(name)]]
		dst = append(dst, name...)
		dst = append(dst, old[l.from-from:l.to-from]...)
	}
	return dst
}

// distinct reports whether no two members have one name.
func distinct(dst []byte, spans []span) bool {
	for i, a := range spans {
		for _, b := range spans[:i] {
			if bytes.Equal(dst[a.name:a.from], dst[b.name:b.from]) {
				return false
			}
		}
	}
	return true
}

// Blank reports whether s is empty or holds only white space as JavaScript
// sees it: Unicode space separators, line ends and the byte order mark. Peers
// and services drop such texts.
func Blank(s string) bool { return Trim(s) == "" }

// Trim is s without the white space, as Blank knows it, at its ends.
func Trim(s string) string { return strings.TrimFunc(s, IsSpace) }

// IsSpace reports whether r is white space, as Blank knows it.
func IsSpace(r rune) bool {
	switch {
	case r == ' ' || r >= '\t' && r <= '\r' || r == 0xA0 || r == 0x1680 || r == 0xFEFF:
		return true
	case r >= 0x2000 && r <= 0x200A || r == 0x2028 || r == 0x2029 || r == 0x202F || r == 0x205F || r == 0x3000:
		return true
	}
	return false
}
