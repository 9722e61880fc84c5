package session_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/memory"
)

// FuzzOpen opens arbitrary bytes behind a header: nothing panics, every line
// that is an object becomes an entry, and what is appended afterwards is whole.
func FuzzOpen(f *testing.F) {
	f.Add([]byte(entry("a", "", "1") + entry("b", "a", "2") + "{torn"))
	f.Add([]byte(entry("a", "b", "1") + entry("b", "a", "2") + `{"type":"compaction","id":"k","parentId":"b","firstKeptEntryId":"a","systemMessage":{"role":"system"}}` + "\n"))
	f.Add([]byte(`{"type":"context_edit","id":"e","parentId":"e","targetId":"e","replacement":{"content":[]}}` + "\r\n\x00\xff\n[]\nnull"))
	f.Add([]byte(entry("a", "", "1") + strings.Replace(entry("b", "a", "2"), "}}", `},"id":"c"}`, 1) + strings.Replace(entry("d", "b", "3"), `:1}`, `:}`, 1)))
	f.Add([]byte(`{"type":"label","id":"l","targetId":"a","label":"\ud83d"}` + "\n" + `{"type":"session","id":"x"}` + "\n"))
	f.Fuzz(func(t *testing.T, tail []byte) {
		log := append([]byte(header), tail...)
		checkDamaged(t, log, func(*session.Session) {})
		store := memory.NewFrom(log)
		s, err := session.Open(store, options())
		if err != nil {
			t.Fatal(err)
		}
		objects := 0
		for line := range bytes.Lines(tail) {
			var v struct {
				Type json.RawMessage `json:"type"`
			}
			line = bytes.Trim(line, " \t\r\n")
			if len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &v) != nil || !json.Valid(line) {
				continue
			}
			if !bytes.Contains(line, []byte("session")) && !bytes.Contains(line, []byte(`\u`)) {
				objects++
			}
		}
		if n := len(s.Entries()); n < objects {
			t.Fatalf("%d entries of %d objects", n, objects)
		}
		for _, e := range s.Entries() {
			e.Data()
		}
		s.Tree()
		s.Stats()
		session.ToLLM(s.Context().Messages)
		if err := s.Export(&bytes.Buffer{}); err != nil {
			t.Fatal(err)
		}
		if fork, err := s.Fork(memory.New(), s.LeafID(), options()); err != nil {
			t.Fatal(err)
		} else if len(fork.Context().Messages) != len(s.Context().Messages) {
			t.Fatalf("the fork has %d messages, not %d", len(fork.Context().Messages), len(s.Context().Messages))
		}
		e := say(t, s, "after")
		if !bytes.HasPrefix(store.Bytes(), log) {
			t.Fatal("bytes were lost")
		}
		again, err := session.Open(memory.NewFrom(store.Bytes()), options())
		if err != nil || again.LeafID() != e.ID || len(again.Entries()) != len(s.Entries()) {
			t.Fatalf("after an append: leaf %q, %v", again.LeafID(), err)
		}
		var info session.InfoReader
		if _, ok, err := info.Read(strings.NewReader(string(store.Bytes())), e.Time()); !ok || err != nil {
			t.Fatalf("info: %v, %v", ok, err)
		}
	})
}

// FuzzMigrate rewrites arbitrary logs of version 1: nothing panics and the
// result is stable.
func FuzzMigrate(f *testing.F) {
	f.Add([]byte(`{"type":"message","message":{"role":"hookMessage"}}` + "\n" + `{"type":"compaction","firstKeptEntryIndex":1e0}` + "\nx"))
	f.Add([]byte(`{"type":"message","message":{"role":"hookMessage"}}` + "\n5\n[]\n"))
	f.Fuzz(func(t *testing.T, tail []byte) {
		log := append([]byte(`{"type":"session","id":"old"}`+"\n"), tail...)
		out, err := session.Migrate(log, options().Rand)
		if err != nil {
			t.Fatal(err)
		}
		again, err := session.Migrate(out, options().Rand)
		if err != nil || !bytes.Equal(out, again) {
			t.Fatalf("not stable: %v", err)
		}
		became := bytes.Split(bytes.TrimSuffix(out, []byte{'\n'}), []byte{'\n'})
		for i, line := range bytes.Split(bytes.TrimSuffix(log, []byte{'\n'}), []byte{'\n'}) {
			if line = bytes.Trim(line, " \t\r"); !json.Valid(line) || line[0] != '{' {
				if !bytes.Equal(became[i], line) {
					t.Fatalf("line %d, which is no object, was %q and became %q", i, line, became[i])
				}
			}
		}
		s, err := session.Open(memory.NewFrom(out), options())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range s.Entries() {
			if e.ID == "" {
				t.Fatalf("no id: %s", e.Raw())
			}
		}
	})
}
