package llm

import (
	"math"
	"testing"
)

func TestContext(t *testing.T) {
	for _, c := range []struct {
		u    Usage
		want int64
	}{
		{Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4}, 10},
		{Usage{Input: 1, TotalTokens: 7}, 7},
		{Usage{Input: 5, Output: -2}, 3},
		{Usage{Input: 9e18, Output: 9e18}, math.MaxInt64},
		{Usage{Input: math.MaxInt64, CacheRead: math.MaxInt64, CacheWrite: 1}, math.MaxInt64},
	} {
		if got := c.u.Context(); got != c.want {
			t.Errorf("%+v: %d, want %d", c.u, got, c.want)
		}
	}
}
