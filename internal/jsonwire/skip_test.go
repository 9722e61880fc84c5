package jsonwire

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
)

// TestSkipChecksSyntax compares Check with the standard library over mutations
// of texts that hold every construct.
func TestSkipChecksSyntax(t *testing.T) {
	seeds := []string{
		`{"a":1,"b":[1,2.5e3,{"c":"x\n\u00ff"}],"d":{},"e":[],"f":null,"g":true,"h":-0.5}`,
		`[[[]],{"a":{"b":[{}]}},"a long string with more than sixteen bytes \\ \" é"]`,
		` { "a" : [ 1 , 2 ] , "b" : "c" } `,
		`[1,]`, `{"a":1,}`, `{"a" 1}`, `{]`, `[}`, `[1}`, `"\u12`, `01`, `1.`, `-`,
	}
	const alphabet = "{}[],:\"\\ \n\t01-.eEatrufalsn\x00"
	r := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		b := []byte(seeds[r.IntN(len(seeds))])
		for range r.IntN(4) {
			i := r.IntN(len(b) + 1)
			switch c := alphabet[r.IntN(len(alphabet))]; {
			case r.IntN(3) == 0 || i == len(b):
				b = append(b[:i:i], append([]byte{c}, b[i:]...)...)
			case r.IntN(2) == 0:
				b[i] = c
			default:
				b = append(b[:i], b[i+1:]...)
			}
		}
		if got, want := Check(b) == nil, json.Valid(b); got != want {
			t.Fatalf("%q: valid %v, want %v", b, got, want)
		}
	}
}

func TestResetBehind(t *testing.T) {
	text := []byte(`{"a":[1],"b":2,"c":{"d":3}}`)
	var r Reader
	r.ResetBehind(text, len(`{"a":[1]`))
	got := ""
	for r.More() {
		got += string(r.Key()) + string(r.Raw())
	}
	if err := r.End(); err != nil || got != `b2c{"d":3}` {
		t.Errorf("%s, %v", got, err)
	}
	r.ResetBehind([]byte(`{"a":1 "b":2}`), len(`{"a":1`))
	for r.More() {
	}
	if r.Err() == nil {
		t.Error("a missing comma was taken")
	}
}
