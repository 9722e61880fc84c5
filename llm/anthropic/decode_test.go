package anthropic

import (
	"bytes"
	"testing"
)

// What quick understands, read understands in the same way.
func FuzzDelta(f *testing.F) {
	for _, seed := range []string{
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\n\ud83d"}}`,
		`{"type":"content_block_delta","index":12,"delta":{"type":"input_json_delta","partial_json":""}  }`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"x"},"more":1}`,
		`{"type":"content_block_delta","index":01,"delta":{"type":"text_delta","text":"x"}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"x"}}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"x","text":"y"}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":7}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var a, b decoder
		fast, ok := a.quick(data)
		if !ok {
			return
		}
		slow, err := b.read(data, true)
		if err != nil || fast.index != slow.index || fast.kind != slow.kind || !bytes.Equal(fast.text, slow.text) {
			t.Fatalf("%s\nquick: %d %d %q\nread: %d %d %q, %v", data, fast.index, fast.kind, fast.text, slow.index, slow.kind, slow.text, err)
		}
	})
}

func TestQuick(t *testing.T) {
	for data, want := range map[string]bool{
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`:                      true,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}       }`:               true,
		`{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"a\""}}`:   true,
		`{"type":"content_block_delta","index":3,"delta":{"type":"thinking_delta","thinking":"a"}}`:              true,
		`{"type":"content_block_delta","index":3,"delta":{"type":"signature_delta","signature":"a"}}`:            false,
		`{"type": "content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`:                     false,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\x"}}`:                    false,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}`:                       false,
		`{"type":"content_block_delta","index":,"delta":{"type":"text_delta","text":"a"}}`:                       false,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":`:                           false,
		`{"type":"content_block_delta","index":12345678901,"delta":{"type":"text_delta","text":"a"}}`:            false,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"},"usage":{"tokens":1}}`: false,
	} {
		var d decoder
		if _, ok := d.quick([]byte(data)); ok != want {
			t.Errorf("%s: %v", data, ok)
		}
	}
}

func TestSessionsAreBounded(t *testing.T) {
	var s sessions
	id := func(i int) string { return string(rune('a'+i%26)) + string(rune(0x4E00+i)) }
	for i := range maxSessions + 5 {
		forgotten := s.add(id(i))
		if (forgotten != "") != (i >= maxSessions) {
			t.Fatalf("session %d: forgot %q", i, forgotten)
		}
	}
	if s.has(id(4)) || !s.has(id(5)) || len(s.ids) != maxSessions {
		t.Errorf("the oldest were not the ones to go: %d kept", len(s.ids))
	}
	s.remove(id(9))
	if s.has(id(9)) || s.add("") != "" || s.has("") {
		t.Error("removed and empty sessions are remembered")
	}
}

func TestLegalID(t *testing.T) {
	for id, want := range map[string]string{
		"toolu_1-A": "toolu_1-A", "call|fc": "call_fc", "a.b:c": "a_b_c", "ü": "_", "🙈": "__", "": "",
		"0123456789012345678901234567890123456789012345678901234567890123456": "0123456789012345678901234567890123456789012345678901234567890123",
	} {
		if got := legalID(id, nil); got != want {
			t.Errorf("%q: got %q, want %q", id, got, want)
		}
	}
}

func TestStreamed(t *testing.T) {
	for body, want := range map[string]string{
		`{"a":1,"stream":true}`:       `{"a":1,"stream":true}`,
		`{"stream":false,"a":[1, 2]}`: `{"a":[1, 2],"stream":true}`,
		`{}`:                          `{"stream":true}`,
		`[]`:                          `[]`,
	} {
		if got := string(streamed([]byte(body))); got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
}
