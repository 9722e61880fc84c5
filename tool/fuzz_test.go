package tool

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

func FuzzImageHeaders(f *testing.F) {
	f.Add([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\xff\xff\xff\xffacTL"))
	f.Add([]byte("BM\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x0c\x00\x00\x00\x01\x00\x01\x00\x01\x00\x08\x00"))
	f.Add([]byte("\xff\xd8\xff\xe1\x00\x22Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00"))
	f.Add([]byte("RIFF\x00\x00\x00\x00WEBPEXIF\x1a\x00\x00\x00II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00\x06\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		switch mime := sniffImage(data); mime {
		case "", "image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp":
			if w, h, _, err := imageConfig(mime, data); err == nil && (w <= 0 || h <= 0) {
				t.Errorf("%s of %dx%d", mime, w, h)
			}
		default:
			t.Errorf("sniffed %q", mime)
		}
		for _, mime := range []string{"image/jpeg", "image/webp"} {
			if o := orientationOf(mime, data); o < 1 || o > 8 {
				t.Errorf("orientation %d of %s", o, mime)
			}
		}
	})
}

func FuzzPrepareEdit(f *testing.F) {
	f.Add([]byte(`{"path":"a","edits":"[{}]","oldText":"1","newText":"2"}`))
	f.Add([]byte(`{"edits":{"oldText":"\ud800"},"edits":[]}`))
	f.Fuzz(func(t *testing.T, args []byte) {
		if !jsonwire.IsObject(args) {
			return // the loop hands over objects only
		}
		got, err := prepareEdit(jsontext.Value(args))
		if err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		if !jsonwire.IsObject(got) {
			t.Fatalf("%q became %q", args, got)
		}
		parseEdit(got)
	})
}

// Any edit of any bytes either fails with words or changes the lines that it
// names and no byte elsewhere, and does to valid text what the plain model does.
func FuzzApplyEdits(f *testing.F) {
	f.Add([]byte("a\r\nb“c”  \r\n"), "\"c\"", "d\ne")
	f.Add([]byte("\xef\xbb\xbfx\xff\ry"), "x", "")
	f.Add([]byte("caf\xe9  \n\xe9\xe8\r\n"), "caf\uFFFD\n", "cafe\n")
	f.Add([]byte("\n\n\r\n\r"), "\n\n\n", "\n")
	f.Fuzz(func(t *testing.T, data []byte, old, new string) {
		checkEdit(t, string(data), []replacement{{withLF(jsonwire.ToValidUTF8(old)), withLF(jsonwire.ToValidUTF8(new))}})
	})
}
