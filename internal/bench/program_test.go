package bench

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Budgets of the program. They are a little above what it takes; to raise one
// is a decision.
const (
	maxProgram      = 18 << 20 // bytes, stripped
	maxPackages     = 195      // linked, internal ones aside
	maxStartAllocs  = 1_100    // before main
	maxStartBytes   = 184 << 10
	maxOneFormat    = 8_000_000 // bytes of a program with one wire format, stripped
	maxEmbedded     = 105       // packages of a program with harness and one wire format
	module          = "github.com/pinch-agent/pinch/"
	programImport   = module + "cmd/pinch"
	harnessImport   = module + "harness"
	anthropicImport = module + "llm/anthropic"
)

// program builds pinch as it is released.
func program(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "pinch.exe")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, programImport)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

func packages(tb testing.TB, imports ...string) []string {
	tb.Helper()
	cmd := exec.Command("go", append([]string{"list", "-deps"}, imports...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("go list: %v", err)
	}
	return strings.Fields(string(out))
}

func TestProgramBudget(t *testing.T) {
	path := program(t)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > maxProgram {
		t.Errorf("the program has %d bytes, the budget is %d", info.Size(), maxProgram)
	}

	cmd := exec.Command(path, "--version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var out, trace bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &trace
	if err := cmd.Run(); err != nil || strings.TrimSpace(out.String()) == "" {
		t.Fatalf("--version: %v, %q", err, out.String())
	}
	inits := regexp.MustCompile(`(?m)^init (\S+) @.* clock, (\d+) bytes, (\d+) allocs$`).FindAllStringSubmatch(trace.String(), -1)
	if len(inits) == 0 {
		t.Fatalf("no trace of the start in %q", trace.String())
	}
	size, allocs := 0, 0
	var heaviest []string
	for _, m := range inits {
		b, _ := strconv.Atoi(m[2])
		n, _ := strconv.Atoi(m[3])
		size, allocs = size+b, allocs+n
		if b >= 4096 {
			heaviest = append(heaviest, m[1]+" "+m[2]+" bytes")
		}
		if ours := strings.HasPrefix(m[1], module); ours && (n > 64 || b > 8192) {
			t.Errorf("%s makes %d allocations, %d bytes, before main: build tables and patterns when they are asked for", m[1], n, b)
		}
	}
	if allocs > maxStartAllocs || size > maxStartBytes {
		t.Errorf("packages make %d allocations, %d bytes, before main; the budget is %d and %d: %s",
			allocs, size, maxStartAllocs, maxStartBytes, strings.Join(heaviest, ", "))
	}
}

// oneFormat is a program that asks one model, in one wire format.
const oneFormat = `package main

import (
	"context"
	"fmt"
	"os"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/anthropic"
)

func main() {
	model := &llm.Model{ID: "m", Provider: "anthropic", API: anthropic.ID, BaseURL: "https://api.anthropic.com", MaxTokens: 100}
	stream, err := anthropic.New(anthropic.Config{}).Stream(context.Background(), model, &llm.Request{
		Messages: []llm.Message{&llm.User{Content: llm.Plain("hi")}},
		Options:  llm.Options{APIKey: os.Getenv("ANTHROPIC_API_KEY")},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(stream.Result().StopReason)
}
`

// TestOneFormat: whoever embeds one wire format pays for no other.
func TestOneFormat(t *testing.T) {
	dir := t.TempDir()
	source, path := filepath.Join(dir, "main.go"), filepath.Join(dir, "program.exe")
	if err := os.WriteFile(source, []byte(oneFormat), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.2f MB", float64(info.Size())/1e6)
	if info.Size() > maxOneFormat {
		t.Errorf("the program has %d bytes, the budget is %d", info.Size(), maxOneFormat)
	}
	for _, p := range packages(t, source) {
		for _, vendor := range []string{"github.com/aws/", "golang.org/x/oauth2", "github.com/klauspost/", "cloud.google.com/", "google.golang.org/",
			module + "llm/completions", module + "llm/responses", module + "llm/google", module + "llm/bedrock", module + "llm/mistral", module + "llm/pimessages", module + "auth"} {
			if strings.HasPrefix(p, vendor) {
				t.Errorf("%s is linked", p)
			}
		}
	}
}

func TestLinkedPackages(t *testing.T) {
	t.Run("program", func(t *testing.T) {
		linked := packages(t, programImport)
		if n := public(linked); n > maxPackages {
			t.Errorf("the program links %d packages, the budget is %d", n, maxPackages)
		}
		refuse(t, linked, "testing", "net/http/httptest", "net/http/pprof", "expvar", "html/template", "text/template", "encoding/gob", "llm/faux")
	})
	t.Run("embedded", func(t *testing.T) {
		linked := packages(t, harnessImport, anthropicImport)
		if n := public(linked); n > maxEmbedded {
			t.Errorf("a program with harness and one wire format links %d packages, the budget is %d", n, maxEmbedded)
		}
		refuse(t, linked, "testing", "net/http/httptest", "net/http/pprof", "expvar", "html/template", "text/template", "encoding/gob", "encoding/json", "image",
			"os/exec", "llm/completions", "llm/catalog", "llm/faux", "auth", "env", "tool", "resource", "session/jsonl",
			"internal/demo", "internal/settings", "internal/cli")
	})
}

// public counts the packages that a program can import: how many others these
// take differs between platforms and releases of Go.
func public(linked []string) (n int) {
	for _, p := range linked {
		if !strings.HasPrefix(p, "vendor/") && !slices.Contains(strings.Split(p, "/"), "internal") {
			n++
		}
	}
	return n
}

// refuse reports packages that must not be linked.
func refuse(t *testing.T, linked []string, names ...string) {
	t.Helper()
	for _, name := range names {
		if slices.Contains(linked, name) || slices.Contains(linked, module+name) {
			t.Errorf("%s is linked", name)
		}
	}
}

func BenchmarkVersion(b *testing.B) {
	path := program(b)
	b.ResetTimer()
	for b.Loop() {
		if err := exec.Command(path, "--version").Run(); err != nil {
			b.Fatal(err)
		}
	}
}
