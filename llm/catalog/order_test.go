package catalog

import (
	"slices"
	"testing"

	"github.com/pinch-agent/pinch/llm"
)

func TestOrder(t *testing.T) {
	sorted := []string{
		"", "a", "A", "a_b", "a-b", "a:b", "a.b", "a@b", "a/b", "a1", "a10", "a2", "aa", "Aa", "AA", "ab", "B", "c", "Cé", "é",
	}
	got := slices.Clone(sorted)
	slices.Reverse(got)
	slices.SortFunc(got, order)
	if !slices.Equal(got, sorted) {
		t.Errorf("%q", got)
	}
	// The newest of a family is the last of its names, whatever their case.
	list := []*llm.Model{{ID: "Maker/Big-3"}, {ID: "maker/big-2"}}
	if m := best(list); m.ID != "Maker/Big-3" {
		t.Errorf("best is %s", m.ID)
	}
}

func TestTokens(t *testing.T) {
	for n, want := range map[int]string{
		0: "0", 999: "999", 1000: "1K", 1024: "1.0K", 1150: "1.1K", 1250: "1.3K", 1750: "1.8K", 8192: "8.2K", 8250: "8.3K",
		131072: "131.1K", 200000: "200K", 999999: "1000.0K", 1000000: "1M", 1048576: "1.0M", 1250000: "1.3M", 1500000: "1.5M",
	} {
		if got := tokens(n); got != want {
			t.Errorf("tokens(%d) = %s, want %s", n, got, want)
		}
	}
}
