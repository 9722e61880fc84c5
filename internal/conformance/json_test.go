package conformance

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var jsonDeviations = []deviation{}

type jsonCase struct {
	worldSetup
	Argv   []string `json:"argv"`
	Extra  []string `json:"extra"`
	Stdin  *string  `json:"stdin"`
	Expect struct {
		Exit          int              `json:"exit"`
		Lines         []map[string]any `json:"lines"`
		ModelRequests int              `json:"modelRequests"`
		Sessions      []any            `json:"sessions"`
		ChangedFiles  []string         `json:"changedFiles"`
	} `json:"expect"`
}

func TestJSONMode(t *testing.T) {
	g := newGroup("json")
	for _, file := range vectorFiles(t, "json") {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c jsonCase
			readVector(t, file, &c)
			g.report(t, name, c.play(t), jsonDeviations)
		})
	}
}

func (c *jsonCase) play(t *testing.T) outcome {
	w := newWorld(t, c.worldSetup)
	before := w.snapshot(t)
	got := w.run(t, slices.Concat([]string{"--mode", "json"}, c.Extra, c.Argv), c.Stdin, c.Env)
	o := outcome{}
	if got.exit != c.Expect.Exit {
		o.add("exit", "%d, want %d; stderr: %s", got.exit, c.Expect.Exit, got.stderr)
	}
	records, err := parseRecords(got.stdout)
	if err != nil {
		o.add("lines", "%v", err)
		return o
	}
	i := 0
	for line := range strings.Lines(got.stdout) {
		withSectionNames(line, records[i])
		i++
	}
	w.b.compareRecords(o, c.Expect.Lines, records)
	if n := len(w.srv.requests()); n != c.Expect.ModelRequests {
		o.add("modelRequests", "%d, want %d", n, c.Expect.ModelRequests)
	}
	w.compareSessions(o, c.Expect.Sessions, w.sessions(t))
	_, changed := workChanges(before, w.snapshot(t))
	compareNames(o, w.b, "changedFiles", c.Expect.ChangedFiles, changed)
	return o
}
