package catalog

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pinch-agent/pinch/llm"
)

// Search keeps the models that a query fits: each of its words must occur in
// provider and id, with other characters between allowed. An empty query fits
// all.
func Search(models []*llm.Model, query string) []*llm.Model {
	words := strings.FieldsFunc(strings.ToLower(query), func(r rune) bool { return r == ' ' || r == '\t' || r == '/' })
	var out []*llm.Model
	for _, m := range models {
		text := strings.ToLower(m.Provider + " " + m.ID)
		if !slices.ContainsFunc(words, func(w string) bool { return !subsequence(w, text) }) {
			out = append(out, m)
		}
	}
	return out
}

func subsequence(word, text string) bool {
	for _, r := range word {
		i := strings.IndexRune(text, r)
		if i < 0 {
			return false
		}
		text = text[i+utf8.RuneLen(r):]
	}
	return true
}

// Table is the list of models as --list-models prints it, with its line ends,
// sorted by provider and id.
func Table(models []*llm.Model) string {
	models = slices.Clone(models)
	slices.SortStableFunc(models, func(a, b *llm.Model) int {
		return cmp.Or(order(a.Provider, b.Provider), order(a.ID, b.ID))
	})
	rows := [][]string{{"provider", "model", "context", "max-out", "thinking", "images"}}
	yes := map[bool]string{true: "yes", false: "no"}
	for _, m := range models {
		rows = append(rows, []string{
			shown(m.Provider), shown(m.ID), tokens(m.ContextWindow), tokens(m.MaxTokens), yes[m.Reasoning], yes[m.AcceptsImages()],
		})
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				b.WriteString("  ")
			}
			b.WriteString(cell)
			b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// shown is a name that does nothing to a terminal but being shown.
func shown(name string) string {
	return strings.Map(func(r rune) rune {
		if unshowable(r) {
			return utf8.RuneError
		}
		return r
	}, name)
}

// unshowable reports whether a character moves the cursor, breaks the line or
// turns the direction of writing.
func unshowable(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// tokens is a count in thousands or millions, such as 200K, 1M or 1.5M.
func tokens(n int) string {
	scale := func(unit int, suffix string) string {
		if n%unit == 0 {
			return strconv.Itoa(n/unit) + suffix
		}
		if n%unit%(unit/2) == unit/4 {
			n += unit / 100 // what lies in the middle is rounded up, not to even
		}
		return strconv.FormatFloat(float64(n)/float64(unit), 'f', 1, 64) + suffix
	}
	switch {
	case n >= 1_000_000:
		return scale(1_000_000, "M")
	case n >= 1000:
		return scale(1000, "K")
	}
	return strconv.Itoa(n)
}
