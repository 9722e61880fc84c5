package transcript

import "testing"

func TestWordID(t *testing.T) {
	for id, want := range map[string]string{
		"toolu_1-A": "toolu_1-A", "call|fc": "call_fc", "a.b:c": "a_b_c", "ü": "_", "🙈": "__", "": "",
		"0123456789012345678901234567890123456789012345678901234567890123456": "0123456789012345678901234567890123456789012345678901234567890123",
	} {
		if got := WordID(id, nil); got != want || IsWordID(id) != (id == want) {
			t.Errorf("%q: got %q, want %q", id, got, want)
		}
	}
}
