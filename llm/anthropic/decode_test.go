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
