package rpc

import (
	"os"
	"strings"
	"testing"
)

// The manual names every command.
func TestManual(t *testing.T) {
	b, err := os.ReadFile("../../../docs/rpc.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(b), "\n## Commands")
	table, _, _ = strings.Cut(table, "\n## ")
	for name := range commands() {
		if !strings.Contains(table, "`"+name+"`") {
			t.Errorf("docs/rpc.md does not name %s", name)
		}
	}
}
