package tool

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"image"
	"image/color"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"image/png"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/image/bmp"
	xdraw "golang.org/x/image/draw"
)

// slope is a picture that changes slowly, with alpha where the kind has it.
func slope(w, h int, alpha uint8) *image.NRGBA {
	pic := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			pic.SetNRGBA(x, y, color.NRGBA{uint8(x * 255 / w), uint8(y * 255 / h), uint8((x + y) % 256), alpha})
		}
	}
	return pic
}

func encoded(t testing.TB, encode func(*bytes.Buffer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := encode(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// still is a WebP of one pixel.
func still(t testing.TB) []byte {
	b, err := base64.StdEncoding.DecodeString("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// animated puts a WebP as the first frame of an animation.
func animated(frame []byte) []byte {
	body := append(make([]byte, 16), frame[12:]...)
	out := append([]byte("RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x02\x00\x00\x00"), make([]byte, 6)...)
	out = append(out, "ANIM\x06\x00\x00\x00\x00\x00\x00\x00\x00\x00"...)
	out = binary.LittleEndian.AppendUint32(append(out, "ANMF"...), uint32(len(body)))
	out = append(out, body...)
	binary.LittleEndian.PutUint32(out[4:], uint32(len(out)-8))
	return out
}

// kinds are pictures of every kind that is read, 300x200 unless it is said.
func kinds(t testing.TB) map[string][]byte {
	pic := slope(300, 200, 255)
	deep := image.NewNRGBA64(pic.Bounds())
	xdraw.Draw(deep, deep.Bounds(), pic, image.Point{}, xdraw.Src)
	grey := image.NewGray(pic.Bounds())
	xdraw.Draw(grey, grey.Bounds(), pic, image.Point{}, xdraw.Src)
	listed := image.NewPaletted(pic.Bounds(), palette.WebSafe)
	xdraw.Draw(listed, listed.Bounds(), pic, image.Point{}, xdraw.Src)
	return map[string][]byte{
		"png":            encoded(t, func(b *bytes.Buffer) error { return png.Encode(b, pic) }),
		"png, clear":     encoded(t, func(b *bytes.Buffer) error { return png.Encode(b, slope(300, 200, 90)) }),
		"png of 16 bits": encoded(t, func(b *bytes.Buffer) error { return png.Encode(b, deep) }),
		"png, listed":    encoded(t, func(b *bytes.Buffer) error { return png.Encode(b, listed) }),
		"jpeg":           encoded(t, func(b *bytes.Buffer) error { return jpeg.Encode(b, pic, nil) }),
		"jpeg, grey":     encoded(t, func(b *bytes.Buffer) error { return jpeg.Encode(b, grey, nil) }),
		"bmp":            encoded(t, func(b *bytes.Buffer) error { return bmp.Encode(b, pic) }),
		"bmp, grey":      encoded(t, func(b *bytes.Buffer) error { return bmp.Encode(b, grey) }),
		"gif, moving": encoded(t, func(b *bytes.Buffer) error {
			return gif.EncodeAll(b, &gif.GIF{Image: []*image.Paletted{listed, listed}, Delay: []int{1, 1}})
		}),
		"webp of one pixel":         still(t),
		"webp of one pixel, moving": animated(still(t)),
	}
}

func TestEveryKindOfImage(t *testing.T) {
	limits := imageLimitsOf(nil)
	limits.width, limits.height = 100, 100
	for name, data := range kinds(t) {
		mime := sniffImage(data)
		want, factor := image.Pt(100, 67), "[Image: original 300x200, displayed at 100x67. Multiply coordinates by 3.00 to map to original image.]"
		l := limits
		if strings.Contains(name, "one pixel") {
			want, factor = image.Pt(1, 1), "[Image: original 1x1, displayed at 1x1. Multiply coordinates by 1.00 to map to original image.]"
			l.width, l.bytes = 1, 4000
			data = append(bytes.Clone(data), make([]byte, 4000)...) // too long, so it is encoded anew
		}
		got := showImage(mime, data, l, true)
		c, _, err := image.DecodeConfig(bytes.NewReader(got.data))
		if err != nil || image.Pt(c.Width, c.Height) != want || len(got.hints) == 0 || got.hints[len(got.hints)-1] != factor {
			t.Errorf("%s: %dx%d, %q, %v", name, c.Width, c.Height, got.hints, err)
		}
		// What is cut off is told, or as much shown as there is.
		for n := 0; n < len(data); n += 1 + len(data)/7 {
			if mime := sniffImage(data[:n]); mime != "" {
				got := showImage(mime, data[:n], l, true)
				if got.data == nil && len(got.hints) == 0 {
					t.Errorf("%s cut off at %d: no word", name, n)
				}
			}
		}
	}
}

// A picture that ends too soon is not sent, however small: services refuse the
// whole conversation for it.
func TestBrokenSmallImage(t *testing.T) {
	for name, data := range kinds(t) {
		mime := sniffImage(data)
		if got := showImage(mime, data, imageLimitsOf(nil), true); got.data == nil {
			t.Errorf("%s: %q", name, got.hints)
		}
		if !strings.Contains(name, "png") {
			continue
		}
		if got := showImage(mime, data[:len(data)/2], imageLimitsOf(nil), true); got.data != nil || len(got.hints) != 1 || got.hints[0] != imageTooBig {
			t.Errorf("half of %s: %q", name, got.hints)
		}
	}
}

// A file of a few bytes cannot claim the memory.
func TestImageBombs(t *testing.T) {
	files := kinds(t)
	for name, patch := range map[string]func(b []byte, size uint32){
		"png": func(b []byte, n uint32) { binary.BigEndian.PutUint32(b[16:], n); binary.BigEndian.PutUint32(b[20:], n) },
		"bmp": func(b []byte, n uint32) {
			binary.LittleEndian.PutUint32(b[18:], n)
			binary.LittleEndian.PutUint32(b[22:], n)
		},
		"webp of one pixel, moving": func(b []byte, n uint32) {
			copy(b[24:], []byte{0xff, 0xff, 0, 0xff, 0x7f, 0})
		},
		"gif, moving": func(b []byte, n uint32) { copy(b[6:], "\xff\xff\xff\xff") },
	} {
		for _, size := range []uint32{100_000, 1<<31 - 1, 12_000} {
			if name != "png" && size == 12_000 {
				continue
			}
			data := bytes.Clone(files[name])
			patch(data, size)
			if name == "png" { // the checksum of the header
				data = fixPNG(data)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got := showImage(sniffImage(data), data, imageLimitsOf(nil), true)
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
				t.Errorf("%s of %d: %d bytes", name, size, n)
			}
			if got.data == nil && len(got.hints) == 0 {
				t.Errorf("%s of %d: no word", name, size)
			}
		}
	}
}

// fixPNG corrects the checksum of a changed header.
func fixPNG(b []byte) []byte {
	binary.BigEndian.PutUint32(b[29:], crc(b[12:29]))
	return b
}

func crc(b []byte) uint32 {
	sum := ^uint32(0)
	for _, c := range b {
		sum ^= uint32(c)
		for range 8 {
			sum = sum>>1 ^ 0xEDB88320&-(sum&1)
		}
	}
	return ^sum
}

// turnedJPEG is the JPEG of all kinds, marked as one that is to be turned.
func turnedJPEG(t *testing.T) []byte {
	data := kinds(t)["jpeg"]
	app1 := "Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00"
	return append(append([]byte("\xff\xd8\xff\xe1\x00"), byte(len(app1)+2)), append([]byte(app1), data[2:]...)...)
}

// turnedWebP is a WebP marked in the same way.
func turnedWebP(t *testing.T, prefix string) []byte {
	exif := prefix + "II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00\x06\x00\x00\x00\x00"
	data := append(still(t), "JUNK\x01\x00\x00\x00x\x00EXIF"...)
	data = binary.LittleEndian.AppendUint32(data, uint32(len(exif)))
	return append(data, exif...)
}

func TestTurnedWebP(t *testing.T) {
	for _, prefix := range []string{"", "Exif\x00\x00"} {
		data := turnedWebP(t, prefix)
		if o := orientationOf("image/webp", data); o != 6 {
			t.Errorf("%q: orientation %d", prefix, o)
		}
		for n := range data {
			if o := orientationOf("image/webp", data[:n]); o != 1 {
				t.Errorf("%q: orientation %d in %d bytes", prefix, o, n)
			}
		}
	}
	if o := orientationOf("image/webp", still(t)); o != 1 {
		t.Errorf("without a note: %d", o)
	}
}

// A turned photograph is scaled and its hint is about what is seen.
func TestTurnedImageIsScaled(t *testing.T) {
	data := turnedJPEG(t)
	limits := imageLimitsOf(nil)
	limits.width, limits.height = 100, 150
	got := showImage("image/jpeg", data, limits, true)
	c, _, err := image.DecodeConfig(bytes.NewReader(got.data))
	if want := "[Image: original 200x300, displayed at 100x150. Multiply coordinates by 2.00 to map to original image.]"; err != nil || c.Width != 100 || c.Height != 150 || got.hints[0] != want {
		t.Errorf("%dx%d, %q, %v", c.Width, c.Height, got.hints, err)
	}
}

// Scaling is what another implementation of the kernel makes, row by row or not.
func TestShrink(t *testing.T) {
	for _, pic := range []image.Image{noise(61, 47), slope(200, 90, 255), slope(64, 64, 100), slope(200, 90, 255).SubImage(image.Rect(20, 10, 150, 83))} {
		for _, size := range []image.Point{{10, 7}, {33, 40}, {1, 1}, {60, 3}, {80, 70}} {
			got := shrink(pic, size.X, size.Y)
			want := image.NewRGBA(got.Bounds())
			xdraw.CatmullRom.Scale(want, want.Bounds(), pic, pic.Bounds(), xdraw.Src, nil)
			for i := range got.Pix {
				if d := int(got.Pix[i]) - int(want.Pix[i]); d < -2 || d > 2 {
					t.Fatalf("%v to %v: byte %d is %d, want %d", pic.Bounds(), size, i, got.Pix[i], want.Pix[i])
				}
			}
		}
	}
}

func BenchmarkShowPhotograph(b *testing.B) {
	for name, size := range map[string]image.Point{"12MP": {4000, 3000}, "48MP": {8000, 6000}} {
		pic := slope(size.X, size.Y, 255)
		for i := range pic.Pix {
			if i%4 < 3 {
				pic.Pix[i] ^= byte(i*2654435761>>13) & 15 // grain, as photographs have it
			}
		}
		data := encoded(b, func(buf *bytes.Buffer) error { return jpeg.Encode(buf, pic, nil) })
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if got := showImage("image/jpeg", data, imageLimitsOf(nil), true); got.data == nil {
					b.Fatal(got.hints)
				}
			}
		})
	}
}
