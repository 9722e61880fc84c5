package wire

import (
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	const high, low = "\xED\xA0\xBD", "\xED\xB9\x88" // halves of 🙈
	for _, c := range []struct {
		name   string
		pieces []string
		deltas []string
		want   string
	}{
		{"plain", []string{"ab", "", "cd"}, []string{"ab", "", "cd"}, "abcd"},
		{"joined", []string{"see " + high, low + " x"}, []string{"see ", "🙈 x"}, "see 🙈 x"},
		{"joined over an empty piece", []string{high, "", low}, []string{"", "", "🙈"}, "🙈"},
		{"half alone", []string{high, "x"}, []string{"", high + "x"}, high + "x"},
		{"two first halves", []string{high, high, low}, []string{"", high, "🙈"}, high + "🙈"},
		{"half at the end", []string{"a" + high}, []string{"a"}, "a" + high},
		{"second half alone", []string{low, "x"}, []string{low, "x"}, low + "x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var text Text
			for i, p := range c.pieces {
				if got := text.Append([]byte(p)); got != c.deltas[i] {
					t.Errorf("piece %d: delta %q, want %q", i, got, c.deltas[i])
				}
			}
			text.Flush()
			if got := text.String(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestTextViewsStay(t *testing.T) {
	var text Text
	var deltas []string
	for range 5000 {
		deltas = append(deltas, text.Append([]byte("abc")))
	}
	if got := strings.Join(deltas, ""); got != strings.Repeat("abc", 5000) || got != text.String() {
		t.Error("a view changed when the text grew")
	}
}
