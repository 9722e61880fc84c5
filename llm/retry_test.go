package llm

import (
	"testing"
	"time"
)

func TestRetry(t *testing.T) {
	busy := &Assistant{StopReason: StopError, ErrorMessage: "overloaded"}
	for _, c := range []struct {
		name    string
		r       Retry
		m       *Assistant
		retries int
		want    bool
	}{
		{"first", Retry{}, busy, 0, true},
		{"third", Retry{}, busy, 2, true},
		{"fourth", Retry{}, busy, 3, false},
		{"fourth of five", Retry{MaxRetries: 5}, busy, 3, true},
		{"disabled", Retry{Disabled: true, MaxRetries: 5}, busy, 0, false},
		{"no answer", Retry{}, nil, 0, false},
		{"good answer", Retry{}, &Assistant{StopReason: StopStop}, 0, false},
		{"final", Retry{}, &Assistant{StopReason: StopError, ErrorMessage: "invalid key"}, 0, false},
		{"overflow that sounds passing", Retry{}, &Assistant{StopReason: StopError, ErrorMessage: "server error: prompt is too long"}, 0, false},
	} {
		if got := c.r.Repeats(c.m, 0, c.retries); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if got := (Retry{}).Delay(2); got != 4*time.Second {
		t.Errorf("second delay %v", got)
	}
	if got := (Retry{BaseDelay: time.Second, MaxDelay: 3 * time.Second}).Delay(3); got != 3*time.Second {
		t.Errorf("third delay %v", got)
	}
}
