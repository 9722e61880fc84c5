package resource

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// hidden is a stretch of a line that cannot be seen.
type hidden struct {
	start, end int // bytes
	kind       Kind
	severity   Severity
}

func (h hidden) message(line string) string {
	r, size := utf8.DecodeRuneInString(line[h.start:])
	what := fmt.Sprintf("U+%04X", r)
	if n := utf8.RuneCountInString(line[h.start+size : h.end]); n > 0 {
		what += fmt.Sprintf(" and %d more", n)
	}
	switch h.kind {
	case TagCharacters:
		if said := spellTags(line[h.start:h.end]); said != "" {
			return fmt.Sprintf("invisible tag characters (%s) that say %q", what, said)
		}
		return "invisible tag characters (" + what + ")"
	case VariationSelectors:
		return "variation selectors (" + what + ") that can hold hidden data"
	case BidiControl:
		return "a character (" + what + ") that changes the order in which text shows"
	case EscapeSequence:
		return "a character (" + what + ") that controls the terminal"
	case ControlCharacter:
		return "a control character (" + what + ")"
	}
	return "invisible characters (" + what + ")"
}

func (h hidden) advice() string {
	if h.severity == Dangerous {
		return hideAdvice
	}
	return lookAdvice
}

// spellTags is the ASCII text that tag characters stand for, cut to a length.
func spellTags(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r >= 0xE0020 && r <= 0xE007E {
			b.WriteRune(r - 0xE0000)
		}
		if b.Len() == 60 {
			return b.String() + "..."
		}
	}
	return b.String()
}

// Visible is a text without the characters that the audit calls dangerous:
// what is left reads as it shows.
func Visible(text string) string {
	if !strings.ContainsFunc(text, invisible) {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		body := strings.TrimRight(line, "\r\n")
		end := line[len(body):]
		clean, cut := withoutHidden(body)
		if cut && dangerousIn(clean) {
			// What stands side by side now hides something again.
			clean = strings.Map(func(r rune) rune {
				if invisible(r) {
					return -1
				}
				return r
			}, clean)
		}
		b.WriteString(clean)
		b.WriteString(end)
	}
	return b.String()
}

func withoutHidden(line string) (clean string, cut bool) {
	var b strings.Builder
	at := 0
	for _, h := range hiddenIn(line) {
		if h.severity == Dangerous {
			b.WriteString(line[at:h.start])
			at = h.end
		}
	}
	if at == 0 {
		return line, false
	}
	return b.String() + line[at:], true
}

func dangerousIn(line string) bool {
	for _, h := range hiddenIn(line) {
		if h.severity == Dangerous {
			return true
		}
	}
	return false
}

// Bounds between a slip and hidden data.
const (
	hiddenRun     = 4 // characters without a width, one after the other
	hiddenPerLine = 8 // such characters that nothing in the line needs
	looseVariants = 4 // variation selectors in a line, behind characters without variants
)

// hiddenIn finds what cannot be seen in a line, in its order.
func hiddenIn(line string) []hidden {
	if !strings.ContainsFunc(line, invisible) {
		return nil
	}
	s := newLineScan(line)
	for i := 0; i < len(s.runes); {
		i = s.step(i)
	}
	s.escalate()
	return s.found
}

type lineScan struct {
	runes  []rune
	at     []int // bytes, one more than runes
	rtl    bool  // the line has letters that run from right to left
	found  []hidden
	widths int // invisible characters that nothing needs
	loose  int // variation selectors likewise
}

func newLineScan(line string) *lineScan {
	s := &lineScan{}
	for i, r := range line {
		s.runes = append(s.runes, r)
		s.at = append(s.at, i)
		s.rtl = s.rtl || rightToLeft(r)
	}
	s.at = append(s.at, len(line))
	return s
}

// rune is the character at i, 0 beyond the line.
func (s *lineScan) rune(i int) rune {
	if i < 0 || i >= len(s.runes) {
		return 0
	}
	return s.runes[i]
}

func (s *lineScan) add(from, to int, kind Kind, severity Severity) {
	s.found = append(s.found, hidden{s.at[from], s.at[to], kind, severity})
}

// run is the end of the stretch from i on whose characters are of a class.
func (s *lineScan) run(i int, class func(rune) bool) int {
	for i < len(s.runes) && class(s.runes[i]) {
		i++
	}
	return i
}

// step looks at the character at i, and tells where to go on.
func (s *lineScan) step(i int) int {
	r := s.runes[i]
	switch {
	case isPlain(r):
	case r == 0x1B || r == 0x9B || r == '\b':
		s.add(i, i+1, EscapeSequence, Dangerous)
	case r < 0x20 || r >= 0x7F && r < 0xA0:
		s.add(i, i+1, ControlCharacter, Dangerous)
	case isTag(r):
		if end := s.flag(i); end > 0 {
			return end
		}
		end := s.run(i, isTag)
		s.add(i, end, TagCharacters, Dangerous)
		return end
	case isSelector(r):
		return s.selectors(i)
	case isBidi(r):
		if severity, ok := s.bidi(r); ok {
			s.add(i, i+1, BidiControl, severity)
		}
	case isWidthless(r):
		return s.widthless(i)
	}
	return i + 1
}

// flag is the end of the tag characters from i on when they name the flag of a
// region behind a black flag, 0 when they do not.
func (s *lineScan) flag(i int) int {
	end := s.run(i, func(r rune) bool {
		return r >= 0xE0030 && r <= 0xE0039 || r >= 0xE0061 && r <= 0xE007A
	})
	if n := end - i; s.rune(i-1) == 0x1F3F4 && n >= 3 && n <= 6 && s.rune(end) == 0xE007F {
		return end + 1
	}
	return 0
}

func (s *lineScan) selectors(i int) int {
	end := s.run(i, isSelector)
	base, r := s.rune(i-1), s.runes[i]
	switch {
	case end-i == 1 && r >= 0xE0100:
		// Only ideographs have variants of these.
		if !unicode.Is(unicode.Han, base) {
			s.add(i, end, VariationSelectors, Dangerous)
		}
	case end-i == 1 && (r == 0xFE0E || r == 0xFE0F) && (base >= '0' && base <= '9' || base == '#' || base == '*'):
	case end-i == 1 && base >= 0xA0 && !unicode.Is(unicode.Latin, base):
	case end-i <= 2 && r < 0xE0100 && s.rune(end-1) < 0xE0100:
		s.loose += end - i
		s.add(i, end, VariationSelectors, Suspicious)
	default:
		s.add(i, end, VariationSelectors, Dangerous)
	}
	return end
}

// bidi judges a control of direction; ok is false when the line needs it.
func (s *lineScan) bidi(r rune) (severity Severity, ok bool) {
	switch {
	case r == 0x202D || r == 0x202E: // overrides
		return Dangerous, true
	case s.rtl:
		return 0, false
	case r == 0x202B || r == 0x2067: // turn text that runs from left to right
		return Dangerous, true
	}
	return Suspicious, true
}

func (s *lineScan) widthless(i int) int {
	end := s.run(i, isWidthless)
	switch {
	case end-i >= hiddenRun:
		s.add(i, end, ZeroWidth, Dangerous)
	case s.runes[i] == 0xAD:
		s.add(i, end, ZeroWidth, Note) // a soft hyphen, of a text that was copied
		s.widths += end - i
	case !s.joins(i, end):
		s.add(i, end, ZeroWidth, Suspicious)
		s.widths += end - i
	}
	return end
}

// joins reports whether the characters beside a stretch may need it: emoji that
// are joined, or letters of a script with joiners or without spaces.
func (s *lineScan) joins(from, to int) bool {
	before := from - 1
	for before > 0 && (isSelector(s.runes[before]) || s.runes[before] >= 0x1F3FB && s.runes[before] <= 0x1F3FF) {
		before-- // an emoji's variant, a tone of skin
	}
	b, a := s.rune(before), s.rune(to)
	if to-from == 1 && s.runes[from] == 0x200D && isEmoji(b) && isEmoji(a) {
		return true
	}
	return beyondAlphabets(b) || beyondAlphabets(a)
}

// escalate calls many small findings in a line what they are: data.
func (s *lineScan) escalate() {
	for i := range s.found {
		switch f := &s.found[i]; {
		case f.kind == ZeroWidth && s.widths >= hiddenPerLine, f.kind == VariationSelectors && s.loose >= looseVariants:
			f.severity = Dangerous
		}
	}
}

func isTag(r rune) bool { return r >= 0xE0000 && r <= 0xE007F }

// isSelector: of variants of characters.
func isSelector(r rune) bool {
	return r >= 0xFE00 && r <= 0xFE0F || r >= 0xE0100 && r <= 0xE01EF || r >= 0x180B && r <= 0x180D || r == 0x180F
}

func isBidi(r rune) bool {
	return r == 0x200E || r == 0x200F || r == 0x061C || r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069
}

// isWidthless: shows as nothing, or as a blank that is a letter.
func isWidthless(r rune) bool {
	switch r {
	case 0xAD, 0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180E, 0x200B, 0x200C, 0x200D, 0x3164, 0xFEFF, 0xFFA0:
		return true
	}
	return r >= 0x2060 && r <= 0x2065 || r >= 0x206A && r <= 0x206F || r >= 0xFFF9 && r <= 0xFFFB ||
		r >= 0x1BCA0 && r <= 0x1BCA3 || r >= 0x1D173 && r <= 0x1D17A
}

func invisible(r rune) bool {
	if isPlain(r) {
		return false
	}
	return isTag(r) || isSelector(r) || isBidi(r) || isWidthless(r) ||
		r < 0x20 || r >= 0x7F && r < 0xA0
}

// isPlain: printable ASCII, and the controls of ordinary text.
func isPlain(r rune) bool {
	return r >= 0x20 && r < 0x7F || r == '\t' || r == '\f' || r == '\r' || r == 0x85
}

func isEmoji(r rune) bool {
	return r >= 0x1F000 && r <= 0x1FAFF || r >= 0x2190 && r <= 0x2BFF || r == 0x3030 || r == 0x303D
}

// beyondAlphabets: letters and marks of scripts whose text may need characters
// without a width, which those of Latin, Greek and Cyrillic do not.
func beyondAlphabets(r rune) bool {
	return r >= 0x0590 && (unicode.IsLetter(r) || unicode.IsMark(r)) && !isWidthless(r) && !isSelector(r) &&
		!unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic)
}

func rightToLeft(r rune) bool {
	return r >= 0x0590 && unicode.IsLetter(r) &&
		(r <= 0x08FF || r >= 0xFB1D && r <= 0xFDFF || r >= 0xFE70 && r <= 0xFEFC || r >= 0x10800 && r <= 0x10FFF || r >= 0x1E800 && r <= 0x1EFFF)
}
