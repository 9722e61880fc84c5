package responses

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// unpack is the body that was packed.
func unpack(t testing.TB, packed []byte) []byte {
	t.Helper()
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	body, err := r.DecodeAll(packed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestPack(t *testing.T) {
	var p packer
	var wait sync.WaitGroup
	for _, body := range [][]byte{nil, []byte(`{}`), []byte(strings.Repeat(`{"role":"user"},`, 1<<18))} {
		for range 4 {
			wait.Go(func() {
				packed, err := p.pack(body)
				if err != nil {
					t.Error(err)
				} else if got := unpack(t, packed); !bytes.Equal(got, body) {
					t.Errorf("%d bytes came back as %d", len(body), len(got))
				}
			})
		}
	}
	wait.Wait()
}

func BenchmarkPack(b *testing.B) {
	var p packer
	body := []byte(strings.Repeat(`{"role":"user","content":[{"type":"input_text","text":"When is the next low water at the east pier?"}]},`, 2000))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.pack(body); err != nil {
			b.Fatal(err)
		}
	}
}
