package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/pinch-agent/pinch/auth"
)

func TestParseLife(t *testing.T) {
	for _, c := range []struct {
		text string
		want time.Duration // 0 for an error
	}{
		{"90s", 90 * time.Second}, {"30m", 30 * time.Minute}, {"1h30m", 90 * time.Minute}, {"2d", 48 * time.Hour},
		{"", 0}, {"d", 0}, {"0s", 0}, {"-5m", 0}, {"30", 0}, {"soon", 0}, {"1e9d", 0}, {"200000d", 0}, {"1hd", 0},
	} {
		got, err := parseLife(c.text)
		if got != c.want || (err != nil) != (c.want == 0) {
			t.Errorf("%q: %v, %v; want %v", c.text, got, err, c.want)
		}
	}
}

func TestKeyValue(t *testing.T) {
	for _, c := range []struct{ typed, want string }{
		{" sk-plain \t", "sk-plain"}, {"!sk", "$!sk"}, {"a$b$$c", "a$$b$$$$c"}, {"${X}", "$${X}"}, {"!$", "$!$$"}, {"a!b", "a!b"},
		{"", ""}, {"  ", ""}, {"a b", ""}, {"a\x00b", ""},
	} {
		got, err := keyValue(c.typed)
		if got.Reveal() != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%q: %q, %v", c.typed, got.Reveal(), err)
			continue
		}
		if c.want == "" {
			continue
		}
		// What is stored means what was typed.
		back, err := auth.Resolve(t.Context(), got.Reveal(), auth.Env{}, func(context.Context, string) (string, error) {
			t.Errorf("%q runs a command", c.typed)
			return "", nil
		})
		if want := strings.TrimSpace(c.typed); back != want || err != nil {
			t.Errorf("%q came back as %q, %v", c.typed, back, err)
		}
	}
}

func TestLineEditor(t *testing.T) {
	for _, c := range []struct {
		name   string
		chunks []string
		want   string
		end    lineEnd
	}{
		{"plain", []string{"abc\r"}, "abc", lineDone},
		{"in pieces", []string{"a", "b", "c\n"}, "abc", lineDone},
		{"not yet", []string{"abc"}, "", lineOpen},
		{"backspace", []string{"abX\x7fc\r"}, "abc", lineDone},
		{"backspace at the start", []string{"\x7f\x08a\r"}, "a", lineDone},
		{"backspace of a wide character", []string{"aé\x7fb\r"}, "ab", lineDone},
		{"cleared", []string{"wrong\x15right\r"}, "right", lineDone},
		{"pasted with brackets", []string{"\x1b[200", "~abc\x1b[201~\r"}, "abc", lineDone},
		{"arrow keys", []string{"a\x1b[D\x1bOCb\r"}, "ab", lineDone},
		{"interrupted", []string{"abc\x03def\r"}, "", lineInterrupted},
		{"closed", []string{"\x04"}, "", lineClosed},
		{"Ctrl-D behind text", []string{"a\x04b\r"}, "ab", lineDone},
		{"other controls", []string{"a\x00\x01b\r"}, "ab", lineDone},
		{"long", []string{strings.Repeat("x", 100_000) + "\r"}, strings.Repeat("x", 100_000), lineDone},
	} {
		var e lineEditor
		var text string
		end := lineOpen
		for _, chunk := range c.chunks {
			if text, end = e.feed([]byte(chunk)); end != lineOpen {
				break
			}
		}
		if text != c.want || end != c.end {
			t.Errorf("%s: %q, %v", c.name, text, end)
		}
	}
}

func TestExpiryColumn(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	in := func(d time.Duration, renews bool) providerState {
		return providerState{kind: typeOAuth, expires: now.Add(d), renews: renews}
	}
	for _, c := range []struct {
		state providerState
		want  string
	}{
		{in(90*time.Minute, false), "in 1 hour"},
		{in(50*time.Hour, true), "in 2 days, is renewed by itself"},
		{in(30*time.Second, false), "in less than a minute"},
		{in(200*365*24*time.Hour, false), "in more than 100 years"},
		{in(-time.Second, true), "expired, is renewed when it is used"},
		{in(-time.Second, false), "expired"},
		{providerState{kind: typeOAuth, permanent: true}, "never"},
		{providerState{kind: typeKey}, ""},
		{providerState{kind: typeKey, problem: "wrong"}, "wrong"},
	} {
		if got := c.state.expiry(now); got != c.want {
			t.Errorf("%+v: %q, want %q", c.state, got, c.want)
		}
	}
	// What a file holds cannot move the cursor.
	if got := cell("a\x1b[2Jb\nc"); strings.ContainsAny(got, "\x1b\n") {
		t.Errorf("%q", got)
	}
}
