package tool

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/env"
)

func TestClean(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain\ttext\n", "plain\ttext\n"},
		{"\x1b[31mred\x1b[0m\r\nnext\a\n", "red\nnext\n"},
		{"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b", "alinkb"},
		{"\x1b(Bg\x1b[1;3Hh\x1b7\x1b=i", "ghi"},
		{"a\x7fb\u0085c\x01d\uFFF9e", "a\x7fb\u0085cde"},
		{"\u009b1mbold\u009d", "bold\u009d"},
		{"\x1b]unfinished\nnext", "\nnext"},
		{"\x1b[12\nnext", "\nnext"},
		{"\x1b\x1b[1mx\x1b", "x"},
		{"\x1bPdata\x1b[1mx", "x"},
		{"é\U0001F980\xff\xe2\x82", "é\U0001F980\uFFFD\uFFFD"},
	} {
		for size := 1; size <= len(c.in); size++ {
			var clean cleaner
			var got []byte
			for at := 0; at < len(c.in); at += size {
				got = clean.append(got, []byte(c.in[at:min(at+size, len(c.in))]))
			}
			if got = clean.rest(got); string(got) != c.want {
				t.Errorf("%q in pieces of %d: %q, want %q", c.in, size, got, c.want)
			}
		}
	}
}

func TestUserShell(t *testing.T) {
	t.Setenv("PI_SESSION_ID", "of another session")
	sh := UserShell{Env: &env.Local{Dir: t.TempDir(), Temp: t.TempDir()}, Prefix: "shopt -s expand_aliases"}
	var shown strings.Builder
	run := func(command string) UserOutcome {
		t.Helper()
		shown.Reset()
		r, err := sh.Run(t.Context(), command, func(text []byte) { shown.Write(text) })
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := run(`printf '\033[1mhi\033[0m\n'; echo "$PI_SESSION_ID"; exit 4`)
	if r.Output != "hi\n\n" || shown.String() != r.Output || *r.ExitCode != 4 || r.Truncated || r.Cancelled || r.FullOutputPath != "" {
		t.Errorf("%+v, shown %q", r, shown.String())
	}
	if r = run("kill -9 $$"); *r.ExitCode != 137 {
		t.Errorf("exit code %d", *r.ExitCode)
	}
	r = run(`i=0; while [ $i -lt 3000 ]; do i=$((i+1)); printf '\033[32m%s\033[0m\n' $i; done`)
	all, err := os.ReadFile(r.FullOutputPath)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Truncated || !strings.HasPrefix(r.Output, "1001\n") || !strings.HasSuffix(r.Output, "\n3000") || string(all) != shown.String() ||
		!strings.HasPrefix(string(all), "1\n2\n") {
		t.Errorf("%d bytes kept of %d, the file has %d", len(r.Output), shown.Len(), len(all))
	}
	ctx, cancel := context.WithCancel(t.Context())
	r, err = sh.Run(ctx, "echo begun; sleep 60", func([]byte) { cancel() })
	if err != nil || !r.Cancelled || r.ExitCode != nil || r.Output != "begun\n" {
		t.Errorf("%+v, %v", r, err)
	}
	gone := UserShell{Env: &env.Local{Dir: t.TempDir() + "/gone"}}
	if _, err := gone.Run(t.Context(), "true", nil); err == nil || !strings.Contains(err.Error(), "Working directory does not exist") {
		t.Errorf("a folder that is gone: %v", err)
	}
}
