package tool

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/env"
)

// goTree is the source tree of Go, which is what searches are measured on.
func goTree(b *testing.B) string {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Skip("needs the go command:", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "src")
}

func benchmarkTool(b *testing.B, t *agent.Tool, args string) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := t.Execute(context.Background(), agent.Call{Args: jsontext.Value(args)}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGrep(b *testing.B) {
	grep := Grep(GrepOptions{Env: &env.Local{Dir: goTree(b), Home: b.TempDir()}})
	for _, c := range []struct{ name, args string }{
		{"literal-rare", `{"pattern":"runtime_pollUnblock","limit":100000}`},
		{"literal-common", `{"pattern":"context","limit":1000000}`},
		{"literal-first100", `{"pattern":"func"}`},
		{"ignore-case", `{"pattern":"deadlineexceeded","ignoreCase":true,"limit":100000}`},
		{"regex-literal", `{"pattern":"func \\(\\w+ \\*?Regexp\\) \\w+","limit":100000}`},
		{"regex-alternation", `{"pattern":"ErrShortBuffer|io\\.EOF|ENOTDIR","limit":100000}`},
		{"regex-no-literal", `{"pattern":"\\d{3}-\\d{2}-\\d{4}","limit":100000}`},
		{"regex-words", `{"pattern":"\\b[A-Z]\\w+Unmarshal\\w*\\b","limit":100000}`},
		{"regex-common", `{"pattern":"^func \\w+\\(","limit":1000000}`},
	} {
		b.Run(c.name, func(b *testing.B) { benchmarkTool(b, grep, c.args) })
	}
}

func BenchmarkFind(b *testing.B) {
	find := Find(FindOptions{Env: &env.Local{Dir: goTree(b), Home: b.TempDir()}})
	for _, c := range []struct{ name, args string }{
		{"extension", `{"pattern":"*_test.go","limit":100000}`},
		{"name", `{"pattern":"doc.go","limit":100000}`},
		{"path", `{"pattern":"cmd/**/ssa/*.go","limit":100000}`},
	} {
		b.Run(c.name, func(b *testing.B) { benchmarkTool(b, find, c.args) })
	}
}
