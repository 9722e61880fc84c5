//go:build unix

package cli

import (
	"path/filepath"
	"testing"
)

// Services start programs without HOME: the working folder must not become the
// home then, with keys and sessions in somebody's repository.
func TestHomeFolder(t *testing.T) {
	for _, c := range []struct{ set, want string }{
		{"/home/ann", "/home/ann"},
		{"ann", "/srv/proj/ann"},
	} {
		t.Setenv("HOME", c.set)
		if got := homeFolder("/srv/proj"); got != c.want {
			t.Errorf("HOME=%s: %s, want %s", c.set, got, c.want)
		}
	}
	t.Setenv("HOME", "")
	if got := homeFolder("/srv/proj"); got != "" && (!filepath.IsAbs(got) || got == "/srv/proj") {
		t.Errorf("without HOME: %s", got)
	}
}
