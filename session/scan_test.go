package session

import (
	"bytes"
	"encoding/json"
	"testing"
)

// TestUsualLinesReadLikeOthers reads lines as everybody writes them, and the
// same with other white space and order of members.
func TestUsualLinesReadLikeOthers(t *testing.T) {
	read := func(line []byte) (scanner, bool) {
		s := newScanner(line)
		ok := s.next()
		return *s, ok
	}
	for _, line := range []string{
		`{"type":"message","id":"a","parentId":null,"timestamp":"2026-03-01T08:00:01.000Z","message":{"role":"user","content":"x"}}`,
		`{"type":"message","id":"b","parentId":"a","timestamp":"","message":{"content":[{"role":"no"}],"role":"toolResult"}}`,
		`{"type":"label","id":"é","parentId":"\u00e9","timestamp":"t","targetId":"a","message":{"role":"user"}}`,
		`{"type":"message","id":"c","parentId":"a","timestamp":"t","id":"later"}`,
		`{"type":"message","id":"c","parentId":5,"timestamp":"t","message":null}`,
		`{"type":"message","id":"c","parentId":"a","timestamp":"t"}`,
		`{"type":"message","id":"c","parentId":"a","timestamp":"t"`,
		`{"type":"message","id":"c","parentId":"a","timestamp":"t",}`,
		`{"type":"message","id":"c","parentId":"a","timestamp":"t"}}`,
		`{"type":"message","id":"c","parentId":"a","timestamp":"t" "message":{}}`,
		`{"type":"message","id":"c","parentId":"a","timestamp":"t","message":{"role":"use\u0072"}}`,
	} {
		a, ok := read([]byte(line))
		if ok != json.Valid([]byte(line)) {
			t.Errorf("%s: read %v", line, ok)
		}
		b, spaced := read(bytes.Replace([]byte(line), []byte(`{"type"`), []byte(`{ "type"`), 1))
		if spaced != ok || ok && (a.typ != b.typ || a.id != b.id || a.parent != b.parent || a.timestamp != b.timestamp || a.role != b.role) {
			t.Errorf("%s: %q %q %q %q, spaced %q %q %q %q", line, a.id, a.parent, a.timestamp, a.role, b.id, b.parent, b.timestamp, b.role)
		}
	}
}
