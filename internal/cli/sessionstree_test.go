package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/memory"
)

// The tree of a session that branches at each of its entries is no larger than
// the session: branches of branches do not move right without end.
func TestTreeOfBranchesOfBranches(t *testing.T) {
	const levels = 4000
	var log strings.Builder
	log.WriteString(`{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}` + "\n")
	parent := "null"
	for i := range levels {
		for _, end := range []string{"a", "b"} {
			fmt.Fprintf(&log, `{"type":"message","id":"%07x%s","parentId":%s,"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"said","timestamp":1}}`+"\n", i, end, parent)
		}
		parent = fmt.Sprintf(`"%07xa"`, i)
	}
	s, err := session.Open(memory.NewFrom([]byte(log.String())), session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := writeTree(&out, s); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(out.Bytes(), []byte("said")); n != 2*levels || out.Len() > log.Len() {
		t.Errorf("%d of %d entries, %d bytes for a session of %d", n, 2*levels, out.Len(), log.Len())
	}
}
