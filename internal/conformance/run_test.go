package conformance

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"
)

// The tests of this package run recorded vectors through public packages. They
// read testdata/, or the folder named in PINCH_VECTORS, which may hold other
// cases of the same kinds. One line a group is printed at the end; a failure
// that is neither a named deviation nor pending fails the test.

var verbose = flag.Bool("conformance.v", false, "print every deviation and pending case")

// Deviation is a named field of a named case that differs on purpose; docs/deviations.md gives the reasons.
type deviation struct {
	Group string // vector group, such as ai/anthropic-messages
	Case  string // case name; a trailing * matches any suffix
	Field string // what may differ
}

// vectorRoot is the folder that holds the groups.
func vectorRoot() string {
	if dir := os.Getenv("PINCH_VECTORS"); dir != "" {
		return dir
	}
	return "testdata"
}

// vectorFiles lists the JSON files of a group, sorted.
func vectorFiles(t *testing.T, group string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(vectorRoot(), filepath.FromSlash(group), "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	sort.Strings(files)
	return files
}

func readVector(t *testing.T, file string, into any) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// group collects the results of one vector group.
type group struct {
	name string

	mu      sync.Mutex
	run     int
	passed  int
	failed  int
	devs    int
	pending int
}

var (
	groupsMu sync.Mutex
	groups   = map[string]*group{}
)

func newGroup(name string) *group {
	groupsMu.Lock()
	defer groupsMu.Unlock()
	g := groups[name]
	if g == nil {
		g = &group{name: name}
		groups[name] = g
	}
	return g
}

// outcome is the result of one case: problems by field. A field names where the
// case differs; the empty map is a pass.
type outcome map[string]string

func (o outcome) add(field, format string, args ...any) {
	if _, ok := o[field]; !ok {
		o[field] = fmt.Sprintf(format, args...)
	}
}

// report books the outcome of one case. Fields that deviations name are
// counted as deviations; a pending case that fails is counted as pending, and
// one that passes fails the test, because the list is then out of date.
func (g *group) report(t *testing.T, name string, o outcome, allowed []deviation) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.run++
	deviates := false
	var bad []string
	for field, msg := range o {
		ok := false
		for _, d := range allowed {
			if d.Group == g.name && matchCase(d.Case, name) && d.Field == field {
				ok = true
			}
		}
		if ok {
			deviates = true
			if *verbose {
				t.Logf("deviation %s/%s %s: %s", g.name, name, field, msg)
			}
			continue
		}
		bad = append(bad, field+": "+msg)
	}
	sort.Strings(bad)
	missing, isPending := pendingFor(t, g.name+"/"+name)
	switch {
	case isPending && len(bad) > 0:
		g.pending++
		if *verbose {
			t.Logf("pending %s/%s (waits for %s): %s", g.name, name, missing, strings.Join(bad, "; "))
		}
	case isPending:
		g.failed++
		t.Errorf("%s/%s passes but pending.txt lists it", g.name, name)
	case len(bad) > 0:
		g.failed++
		t.Errorf("%s/%s\n\t%s", g.name, name, strings.Join(bad, "\n\t"))
	case deviates:
		g.devs++
	default:
		g.passed++
	}
}

func matchCase(pattern, name string) bool {
	if p, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, p)
	}
	return pattern == name
}

var pendingOnce = sync.OnceValues(func() (map[string]string, error) {
	b, err := os.ReadFile("pending.txt")
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, missing, _ := strings.Cut(line, " ")
		if out[name] = strings.TrimSpace(missing); out[name] == "" {
			return nil, fmt.Errorf("pending.txt does not say what %s waits for", name)
		}
	}
	return out, nil
})

// pendingFor is what a case waits for. A listed name that ends in * stands for
// all cases that begin with it.
func pendingFor(t *testing.T, name string) (missing string, ok bool) {
	t.Helper()
	p, err := pendingOnce()
	if err != nil {
		t.Fatal(err)
	}
	if missing, ok = p[name]; ok {
		return missing, true
	}
	for pattern, missing := range p {
		if matchCase(pattern, name) {
			return missing, true
		}
	}
	return "", false
}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	names := make([]string, 0, len(groups))
	for name := range groups {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		g := groups[name]
		fmt.Printf("vectors %s: run=%d passed=%d failed=%d deviations=%d pending=%d\n", name, g.run, g.passed, g.failed, g.devs, g.pending)
	}
	removeProgram()
	os.Exit(code)
}
