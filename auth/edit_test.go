package auth

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

func TestSignInKeepsItsShape(t *testing.T) {
	const before = `{
  "openai-codex": {
    "accountId": "a\u002d1",
    "expires": 1700000000000.0,
    "type": "oauth",
    "scopes": ["x",  "y"],
    "access": "old",
    "refresh": "r1",
    "big": 12345678901234567890
  },
  "mystery": {"type":"mtls",   "n": 1e2}
}
`
	s := newStore(t, before)
	c, err := s.Get("openai-codex")
	if err != nil {
		t.Fatal(err)
	}
	o := c.(*OAuth)
	if o.Expires.UnixMilli() != 1700000000000 || o.Extra("accountId") != "a-1" || o.Extra("scopes") != "" {
		t.Errorf("read %v %q", o.Expires, o.Extra("accountId"))
	}
	o.Access, o.Refresh, o.Expires = NewSecret("new"), NewSecret("r2"), time.UnixMilli(1800000000000)
	o.SetExtra("models", []byte(`[1,{"a":"b"}]`))
	o.SetExtraText("big", "")
	if err := s.Set(t.Context(), "openai-codex", o); err != nil {
		t.Fatal(err)
	}
	const after = `{
  "openai-codex": {
    "accountId": "a\u002d1",
    "expires": 1800000000000,
    "type": "oauth",
    "scopes": ["x",  "y"],
    "access": "new",
    "refresh": "r2",
    "models": [
      1,
      {
        "a": "b"
      }
    ]
  },
  "mystery": {"type":"mtls",   "n": 1e2}
}
`
	if b, _ := os.ReadFile(s.Path()); string(b) != after {
		t.Errorf("got %s", b)
	}
	// Without Raw the stored members stay.
	if err := s.Set(t.Context(), "openai-codex", &OAuth{Access: o.Access, Refresh: o.Refresh, Expires: o.Expires}); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(s.Path()); string(b) != after {
		t.Errorf("without Raw: %s", b)
	}
}

func TestKeyTakesTheEntry(t *testing.T) {
	s := newStore(t, `{"p":{"type":"oauth","access":"a","refresh":"r","expires":1,"x":1}}`)
	key := &APIKey{Key: NewSecret("k"), Env: map[string]string{"B": "2", "A": "1"}}
	if err := s.Set(t.Context(), "p", key); err != nil {
		t.Fatal(err)
	}
	want := `{"p":{"type":"api_key","key":"k","env":{"A":"1","B":"2"}}}`
	if b, _ := os.ReadFile(s.Path()); string(b) != want {
		t.Errorf("got %s", b)
	}
	// A key without variables keeps the stored ones, an empty map does not.
	if err := s.Set(t.Context(), "p", &APIKey{Key: NewSecret("l")}); err != nil {
		t.Fatal(err)
	}
	if c, _ := s.Get("p"); c.(*APIKey).Env["B"] != "2" || c.(*APIKey).Key.Reveal() != "l" {
		t.Error("lost")
	}
	if err := s.Set(t.Context(), "p", &APIKey{Key: NewSecret("l"), Env: map[string]string{}}); err != nil {
		t.Fatal(err)
	}
	if c, _ := s.Get("p"); c.(*APIKey).Env != nil {
		t.Error("kept")
	}
	if err := s.Set(t.Context(), "p", &UnknownCredential{Type: "x"}); err == nil {
		t.Error("an unknown credential was written")
	}
}

// FuzzAuthJSON writes into a file of any content: what does not parse is left as
// it is, and of the rest all that was there is there afterwards, to the byte.
func FuzzAuthJSON(f *testing.F) {
	for _, seed := range []string{
		"", " \n", "{}", "null", "[]", "\uFEFF{}", `{"p":null}`, `{"p":{"type":"api_key","key":"k","key":"l"},"p":{}}`,
		`{"a":{"type":"oauth","access":"x","expires":1e3},"p":{"type":"oauth","n":-0.0,"s":"\ud800\u0061"}}`,
		`{"a": 1 , "p" : {"type" : "oauth" , "refresh":7 } }  `, `{"a":"x"} x`, `{"\u0070":{"type":"oauth"}}`, "{\"\xff\":\"\xfe\"}", `{"a":{`,
	} {
		f.Add([]byte(seed))
	}
	path := filepath.Join(f.TempDir(), "auth.json")
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		s := OpenStore(path, StoreOptions{})
		old, getErr := s.Get("p")
		o := &OAuth{Access: NewSecret("access\n\"1\""), Refresh: NewSecret("r"), Expires: time.UnixMilli(7)}
		err := s.Set(context.Background(), "p", o)
		after, _ := os.ReadFile(path)
		if (err == nil) != (getErr == nil) {
			t.Fatalf("Get: %v, Set: %v", getErr, err)
		}
		if err != nil {
			if !bytes.Equal(after, content) {
				t.Fatalf("a broken file was written over: %q", after)
			}
			return
		}
		if err := jsonwire.Check(after); err != nil {
			t.Fatalf("%q: %v", after, err)
		}
		before, err := parseDocument(content)
		if err != nil {
			t.Fatal(err)
		}
		now, err := parseDocument(after)
		if err != nil {
			t.Fatal(err)
		}
		checkKept(t, before.text, now.text, "p")
		if prior, ok := old.(*OAuth); ok {
			checkKept(t, prior.Raw, now.entries[indexOf(now.entries, "p")].raw, "type", "access", "refresh", "expires")
		}
		c, err := OpenStore(path, StoreOptions{}).Get("p")
		got, ok := c.(*OAuth)
		if err != nil || !ok || got.Access.Reveal() != o.Access.Reveal() || !got.Expires.Equal(o.Expires) {
			t.Fatalf("read back %v, %v", c, err)
		}
		// What was put in can be taken out.
		if removed, err := s.Remove(context.Background(), "p"); !removed || err != nil {
			t.Fatal(removed, err)
		}
		last, _ := os.ReadFile(path)
		checkKept(t, before.text, last, "p")
		if bytes.Contains(last, []byte(`access\n\"1\"`)) && !bytes.Contains(content, []byte(`access\n\"1\"`)) {
			t.Fatalf("a removed secret is left: %q", last)
		}
	})
}

// checkKept checks that the members of an object are those of another one, in
// order and to the byte, names that are excepted aside.
func checkKept(t *testing.T, before, after []byte, except ...string) {
	t.Helper()
	list := func(b []byte) (all [][]byte) {
		var r jsonwire.Reader
		r.Reset(b)
		for r.Object(); r.More(); {
			from := r.Offset()
			name := string(r.Key())
			if r.Skip(); !slices.Contains(except, name) {
				all = append(all, b[from:r.Offset()])
			}
		}
		return all
	}
	if a, b := bytes.Join(list(before), []byte("\x00")), bytes.Join(list(after), []byte("\x00")); !bytes.Equal(a, b) {
		t.Fatalf("of %q there is %q", a, b)
	}
}
