package compact_test

import (
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/compact"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/memory"
)

// Other programs write edits of what is not ours to edit.
func TestEditsOfSummaries(t *testing.T) {
	log := `{"type":"session","version":3,"id":"s","timestamp":"2026-03-01T08:00:00.000Z","cwd":"/srv"}
{"type":"message","id":"u","parentId":null,"timestamp":"2026-03-01T08:00:01.000Z","message":{"role":"user","content":"first","timestamp":1}}
{"type":"compaction","id":"k","parentId":"u","timestamp":"2026-03-01T08:00:02.000Z","summary":"S","firstKeptEntryId":"u","tokensBefore":9,"details":{"readFiles":["a"]}}
{"type":"message","id":"v","parentId":"k","timestamp":"2026-03-01T08:00:03.000Z","message":{"role":"user","content":"second","timestamp":1}}
{"type":"context_edit","id":"e","parentId":"v","timestamp":"2026-03-01T08:00:04.000Z","targetId":"k","replacement":null}
`
	s, err := session.Open(memory.NewFrom([]byte(log)), session.Options{CWD: "/srv"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	// In the context the summary is gone, so the next one is not made of it.
	p, err := compact.Prepare(s.Path(), limits(1))
	if err != nil || p.PreviousSummary != "" || len(p.History) != 1 || len(p.Files.Read) != 0 {
		t.Errorf("%+v, %v", p, err)
	}
	// Of a branch that was left it tells all the same.
	if got := rolesOf(compact.PrepareBranch(s.Path(), 0).Messages); got != strings.Join([]string{"user", "compactionSummary", "user"}, " ") {
		t.Error(got)
	}
}
