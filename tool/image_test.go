package tool

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/image/bmp"

	"github.com/pinch-agent/pinch/llm"
)

func TestSniffImage(t *testing.T) {
	ihdr := "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + strings.Repeat("\x00", 17)
	bmpHeader := func(size uint32, planes, depth uint16) string {
		b := append([]byte("BM"), make([]byte, 12)...)
		b = binary.LittleEndian.AppendUint32(b, size)
		if size == 12 {
			b = append(b, 1, 0, 1, 0)
		} else {
			b = append(b, 1, 0, 0, 0, 1, 0, 0, 0)
		}
		b = binary.LittleEndian.AppendUint16(b, planes)
		b = binary.LittleEndian.AppendUint16(b, depth)
		return string(b)
	}
	for _, tt := range []struct{ name, head, want string }{
		{"nothing", "", ""},
		{"text", "hello", ""},
		{"jpeg", "\xff\xd8\xff\xe0", "image/jpeg"},
		{"jpeg-ls", "\xff\xd8\xff\xf7", ""},
		{"short jpeg", "\xff\xd8\xff", ""},
		{"png", ihdr + "\x00\x00\x00\x01IDAT", "image/png"},
		{"png of 4100 bytes of other chunks", ihdr + "\x00\x00\xff\xffiCCP", "image/png"},
		{"animated png", ihdr + "\x00\x00\x00\x08acTL", ""},
		{"png with a later acTL", ihdr + "\x00\x00\x00\x00IDAT\x00\x00\x00\x00\x00\x00\x00\x08acTL", "image/png"},
		{"png without IHDR", "\x89PNG\r\n\x1a\n\x00\x00\x00\rXXXX", ""},
		{"png with a short IHDR", "\x89PNG\r\n\x1a\n\x00\x00\x00\x0cIHDR", ""},
		{"gif", "GIF89a", "image/gif"},
		{"old gif", "GIF87a", "image/gif"},
		{"no gif", "GIF88a", ""},
		{"webp", "RIFF\x00\x00\x00\x00WEBP", "image/webp"},
		{"wave", "RIFF\x00\x00\x00\x00WAVE", ""},
		{"bmp", bmpHeader(40, 1, 24), "image/bmp"},
		{"old bmp", bmpHeader(12, 1, 8), "image/bmp"},
		{"bmp of two planes", bmpHeader(40, 2, 24), ""},
		{"bmp of odd depth", bmpHeader(40, 1, 7), ""},
		{"text that starts like a bmp", "BMW builds cars, and this is a text about them.", ""},
	} {
		if got := sniffImage([]byte(tt.head)); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func noise(w, h int) *image.NRGBA {
	pic := image.NewNRGBA(image.Rect(0, 0, w, h))
	r := rand.New(rand.NewPCG(1, 2))
	for i := range pic.Pix {
		pic.Pix[i] = byte(r.Uint32()) | 1
		if i%4 == 3 {
			pic.Pix[i] = 255
		}
	}
	return pic
}

func pngOf(t *testing.T, pic image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, pic); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestShowImage(t *testing.T) {
	limits := imageLimitsOf(nil)
	small := pngOf(t, noise(30, 20))
	t.Run("small stays", func(t *testing.T) {
		got := showImage("image/png", small, limits, true)
		if !bytes.Equal(got.data, small) || got.mime != "image/png" || got.hints != nil {
			t.Errorf("got %d bytes, %s, %q", len(got.data), got.mime, got.hints)
		}
	})
	t.Run("too many bytes", func(t *testing.T) {
		l := limits
		l.bytes = 1000
		got := showImage("image/png", small, l, true)
		if n := base64.StdEncoding.EncodedLen(len(got.data)); n == 0 || n >= 1000 {
			t.Errorf("got %d bytes, %q", n, got.hints)
		}
		if len(got.hints) != 1 || !strings.HasPrefix(got.hints[0], "[Image: original 30x20, displayed at ") {
			t.Errorf("got %q", got.hints)
		}
	})
	t.Run("nothing fits", func(t *testing.T) {
		l := limits
		l.bytes = 10
		got := showImage("image/png", small, l, true)
		if got.data != nil || len(got.hints) != 1 || got.hints[0] != imageTooBig {
			t.Errorf("got %d bytes, %q", len(got.data), got.hints)
		}
	})
	t.Run("both sides too long", func(t *testing.T) {
		l := limits
		l.width, l.height = 20, 5
		got := showImage("image/png", small, l, true)
		c, _, err := image.DecodeConfig(bytes.NewReader(got.data))
		if err != nil || c.Width != 8 || c.Height != 5 {
			t.Errorf("got %dx%d, %v", c.Width, c.Height, err)
		}
		if want := "[Image: original 30x20, displayed at 8x5. Multiply coordinates by 3.75 to map to original image.]"; got.hints[0] != want {
			t.Errorf("got %q", got.hints[0])
		}
	})
	t.Run("broken and not resized", func(t *testing.T) {
		got := showImage("image/jpeg", []byte("\xff\xd8\xff\xe0"), limits, false)
		if got.data == nil || got.hints != nil {
			t.Errorf("got %q", got.hints)
		}
	})
	t.Run("broken bmp", func(t *testing.T) {
		got := showImage("image/bmp", []byte("BM"), limits, true)
		if got.data != nil || len(got.hints) != 1 || got.hints[0] != imageUnconverted {
			t.Errorf("got %q", got.hints)
		}
	})
	t.Run("a claim that would fill the memory", func(t *testing.T) {
		bomb := bytes.Clone(small)
		binary.BigEndian.PutUint32(bomb[16:], 1<<30)
		binary.BigEndian.PutUint32(bomb[20:], 1<<30)
		got := showImage("image/png", bomb, limits, true)
		if got.data != nil || got.hints[0] != imageTooBig {
			t.Errorf("got %q", got.hints)
		}
	})
}

// A prompt's picture goes by its bytes, and becomes one that models take.
func TestFitImage(t *testing.T) {
	small := pngOf(t, noise(30, 20))
	for _, c := range []struct {
		said, mime string
		same       bool
		hint       string
	}{
		{"image/png", "image/png", true, ""},
		{"image/PNG; charset=binary", "image/png", true, ""},
		{"image/jpg", "image/png", true, ""},
		{"image/webp", "image/png", true, ""},
		{"text/plain", "image/png", false, "[Image converted from text/plain to image/png.]"},
		{"image/TIFF; x=y", "image/png", false, "[Image converted from image/tiff to image/png.]"},
	} {
		got, hints := FitImage(&llm.Image{MimeType: c.said, Data: base64.StdEncoding.EncodeToString(small)}, nil, true)
		if got == nil || got.MimeType != c.mime || strings.Join(hints, "|") != c.hint {
			t.Fatalf("%s: got %v, %q", c.said, got, hints)
		}
		data, _ := base64.StdEncoding.DecodeString(got.Data)
		if conf, err := png.DecodeConfig(bytes.NewReader(data)); err != nil || conf.Width != 30 || c.same && !bytes.Equal(data, small) {
			t.Errorf("%s: %v, %v", c.said, conf, err)
		}
	}
	for said, want := range map[string]string{"image/tiff": imageUnconverted, "image/png": imageTooBig, "": imageUnconverted} {
		got, hints := FitImage(&llm.Image{MimeType: said, Data: base64.StdEncoding.EncodeToString([]byte("no picture"))}, nil, true)
		if got != nil || len(hints) != 1 || hints[0] != want {
			t.Errorf("%q: got %v, %q", said, got, hints)
		}
	}
}

// A hint names the type that a picture has in the end, and one that is turned when
// it is shown is turned for good when it is converted.
func TestConvertedImage(t *testing.T) {
	limits := imageLimitsOf(nil)
	limits.bytes = 6000
	photo := encoded(t, func(b *bytes.Buffer) error { return bmp.Encode(b, noise(60, 40)) })
	got := showImage("image/bmp", photo, limits, true)
	if got.mime != "image/jpeg" || got.hints[0] != "[Image converted from image/bmp to image/jpeg.]" {
		t.Errorf("%s, %q", got.mime, got.hints)
	}
	limits.bytes = 10
	if got = showImage("image/bmp", photo, limits, true); got.data != nil || got.mime != "image/bmp" || !slices.Equal(got.hints, []string{imageTooBig}) {
		t.Errorf("%s, %q", got.mime, got.hints)
	}
	turned := turnedJPEG(t) // 300x200, to be turned
	for _, resize := range []bool{true, false} {
		img, hints := FitImage(&llm.Image{MimeType: "image/heic", Data: base64.StdEncoding.EncodeToString(turned)}, nil, resize)
		data, _ := base64.StdEncoding.DecodeString(img.Data)
		if c, err := png.DecodeConfig(bytes.NewReader(data)); err != nil || c.Width != 200 || c.Height != 300 || hints[0] != "[Image converted from image/heic to image/png.]" {
			t.Errorf("%v, %v, %q", c, err, hints)
		}
	}
	// Without resize a picture of a type that models take stays, however large.
	wide := &llm.Image{MimeType: "image/png", Data: base64.StdEncoding.EncodeToString(pngOf(t, noise(2100, 1)))}
	if img, hints := FitImage(wide, nil, false); img != wide || hints != nil {
		t.Errorf("%v, %q", img, hints)
	}
}

func TestImageLimitsOf(t *testing.T) {
	m := &llm.Model{InputLimits: jsontext.Value(`{"images":{"resize":{"maxWidth":100,"maxBytes":5000,"jpegQuality":300}}}`)}
	if got, want := imageLimitsOf(m), (imageLimits{width: 100, height: 2000, bytes: 5000, quality: 100}); got != want {
		t.Errorf("got %+v", got)
	}
}

// A turned photograph is shown upright once it is encoded anew.
func TestUpright(t *testing.T) {
	// Red, green over blue, white, in blocks that JPEG keeps apart.
	pic := image.NewRGBA(image.Rect(0, 0, 64, 32))
	corners := []color.RGBA{{255, 0, 0, 255}, {0, 255, 0, 255}, {0, 0, 255, 255}, {255, 255, 255, 255}}
	for y := range 32 {
		for x := range 64 {
			pic.Set(x, y, corners[y/16*2+x/32])
		}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, pic, nil); err != nil {
		t.Fatal(err)
	}
	// Top left, top right, bottom left, bottom right of what is seen.
	for orientation, want := range map[int]string{1: "RGBW", 2: "GRWB", 3: "WBGR", 4: "BWRG", 5: "RBGW", 6: "BRWG", 7: "WGBR", 8: "GWRB"} {
		tiff := "MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00" + string(rune(orientation)) + "\x00\x00"
		app1 := "Exif\x00\x00" + tiff
		head := append([]byte("\xff\xd8\xff\xe1\x00"), byte(len(app1)+2))
		data := append(append(head, app1...), b.Bytes()[2:]...)
		stored, err := decodeImage("image/jpeg", data)
		if err != nil {
			t.Fatal(err)
		}
		fitted, hints := FitImage(&llm.Image{MimeType: "image/heic", Data: base64.StdEncoding.EncodeToString(data)}, nil, true)
		if fitted == nil {
			t.Fatalf("%d: %q", orientation, hints)
		}
		encoded, _ := base64.StdEncoding.DecodeString(fitted.Data)
		converted, err := png.Decode(bytes.NewReader(encoded))
		if err != nil {
			t.Fatal(err)
		}
		for how, got := range map[string]image.Image{"turned": upright(stored, exifOrientation(data)), "converted": converted} {
			size := got.Bounds().Size()
			if wide := size.X > size.Y; wide != (orientation < 5) {
				t.Errorf("%s %d: the size is %v", how, orientation, size)
			}
			seen := ""
			for _, p := range []image.Point{{4, 4}, {size.X - 5, 4}, {4, size.Y - 5}, {size.X - 5, size.Y - 5}} {
				r, g, _, _ := got.At(p.X, p.Y).RGBA()
				switch {
				case r > 0x8000 && g > 0x8000:
					seen += "W"
				case r > 0x8000:
					seen += "R"
				case g > 0x8000:
					seen += "G"
				default:
					seen += "B"
				}
			}
			if seen != want {
				t.Errorf("%s %d: got %s, want %s", how, orientation, seen, want)
			}
		}
	}
}
