package tool

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math"
	"strconv"

	"golang.org/x/image/bmp"
	"golang.org/x/image/draw"
	"golang.org/x/image/webp"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// sniffImage is the type of the picture that a file starts with, "" for none.
// The name of a file says nothing. An animated PNG is none, as models cannot
// read it.
func sniffImage(b []byte) string {
	switch {
	case len(b) >= 4 && b[0] == 0xFF && b[1] == 0xD8 && b[2] == 0xFF && b[3] != 0xF7:
		return "image/jpeg"
	case bytes.HasPrefix(b, []byte("\x89PNG\r\n\x1a\n")):
		return sniffPNG(b)
	case bytes.HasPrefix(b, []byte("GIF87a")), bytes.HasPrefix(b, []byte("GIF89a")):
		return "image/gif"
	case len(b) >= 12 && string(b[:4]) == "RIFF" && string(b[8:12]) == "WEBP":
		return "image/webp"
	case len(b) >= 2 && string(b[:2]) == "BM":
		return sniffBMP(b)
	}
	return ""
}

func sniffPNG(b []byte) string {
	if len(b) < 16 || binary.BigEndian.Uint32(b[8:]) != 13 || string(b[12:16]) != "IHDR" {
		return ""
	}
	for at := 8; at+8 <= len(b); {
		switch string(b[at+4 : at+8]) {
		case "acTL":
			return ""
		case "IDAT":
			return "image/png"
		}
		n := int64(binary.BigEndian.Uint32(b[at:])) + 12
		if n > int64(len(b)-at) {
			break
		}
		at += int(n)
	}
	return "image/png"
}

func sniffBMP(b []byte) string {
	if len(b) < 26 {
		return ""
	}
	var planes, depth uint16
	switch size := binary.LittleEndian.Uint32(b[14:]); {
	case size == 12:
		planes, depth = binary.LittleEndian.Uint16(b[22:]), binary.LittleEndian.Uint16(b[24:])
	case size >= 40 && size <= 124 && len(b) >= 30:
		planes, depth = binary.LittleEndian.Uint16(b[26:]), binary.LittleEndian.Uint16(b[28:])
	default:
		return ""
	}
	if planes != 1 {
		return ""
	}
	switch depth {
	case 1, 4, 8, 16, 24, 32:
		return "image/bmp"
	}
	return ""
}

// imageLimits bound the pictures that a model takes.
type imageLimits struct {
	width, height int // pixels
	bytes         int // of the base64 form
	quality       int // first JPEG quality to try
}

// imageLimitsOf are the limits that a model declares, with those of the common
// services for the rest.
func imageLimitsOf(m *llm.Model) imageLimits {
	l := imageLimits{width: 2000, height: 2000, bytes: 4718592, quality: 80}
	if m == nil || m.InputLimits == nil {
		return l
	}
	resize := jsonwire.Get(jsonwire.Get(m.InputLimits, "images"), "resize")
	for name, v := range map[string]*int{"maxWidth": &l.width, "maxHeight": &l.height, "maxBytes": &l.bytes, "jpegQuality": &l.quality} {
		if n, err := strconv.Atoi(string(jsonwire.Get(resize, name))); err == nil && n > 0 {
			*v = n
		}
	}
	l.quality = min(l.quality, 100)
	return l
}

// shownImage is a picture as a model gets it.
type shownImage struct {
	mime  string
	data  []byte // nil when it cannot be shown
	hints []string
}

const (
	imageTooBig      = "[Image omitted: could not be resized below the inline image size limit.]"
	imageUnconverted = "[Image omitted: could not be converted to a supported inline image format.]"
)

// FitImage is a picture of a prompt within the limits of a model, nil for one of
// the usual limits. hints tell the model what was done to it; the picture is nil
// when it cannot be shown.
func FitImage(img *llm.Image, m *llm.Model) (fitted *llm.Image, hints []string) {
	data, err := base64.StdEncoding.DecodeString(img.Data)
	if err != nil {
		return nil, []string{imageTooBig}
	}
	shown := showImage(img.MimeType, data, imageLimitsOf(m), true)
	switch {
	case shown.data == nil:
		return nil, shown.hints
	case len(shown.hints) == 0:
		return img, nil
	}
	return &llm.Image{Data: base64.StdEncoding.EncodeToString(shown.data), MimeType: shown.mime}, shown.hints
}

// maxPixels bounds what is decoded: a small file can claim a picture that
// fills the memory.
const maxPixels = 200_000_000

// showImage prepares a picture: models take no BMP, and none beyond the limits.
func showImage(mime string, data []byte, limits imageLimits, resize bool) shownImage {
	out := shownImage{mime: mime, data: data}
	var pic image.Image
	if mime == "image/bmp" {
		out.mime = "image/png"
		var err error
		var buf bytes.Buffer
		if pic, err = decodeImage(mime, data); err == nil {
			err = png.Encode(&buf, pic)
		}
		if err != nil {
			return shownImage{mime: mime, hints: []string{imageUnconverted}}
		}
		out.data = buf.Bytes()
		out.hints = append(out.hints, "[Image converted from image/bmp to image/png.]")
	}
	if !resize {
		return out
	}
	width, height, err := imageSize(out.mime, out.data)
	if err == nil && width <= limits.width && height <= limits.height && base64.StdEncoding.EncodedLen(len(out.data)) < limits.bytes {
		return out
	}
	if err == nil && pic == nil {
		pic, err = decodeImage(out.mime, out.data)
	}
	if err != nil {
		return shownImage{mime: out.mime, hints: append(out.hints, imageTooBig)}
	}
	small, smallMime, w, h := fitImage(pic, limits)
	if small == nil {
		return shownImage{mime: out.mime, hints: append(out.hints, imageTooBig)}
	}
	out.data, out.mime = small, smallMime
	size := pic.Bounds().Size() // as it is seen, which may be turned
	factor := float64(size.X) / float64(w)
	out.hints = append(out.hints, fmt.Sprintf(
		"[Image: original %dx%d, displayed at %dx%d. Multiply coordinates by %s to map to original image.]",
		size.X, size.Y, w, h, hundredths(factor)))
	return out
}

// fitImage scales a picture into the limits and encodes it, smaller and smaller
// until it fits. data is nil when nothing does.
func fitImage(pic image.Image, limits imageLimits) (data []byte, mime string, w, h int) {
	size := pic.Bounds().Size()
	w, h = size.X, size.Y
	if w > limits.width {
		w, h = limits.width, scaled(h, limits.width, w)
	}
	if h > limits.height {
		w, h = scaled(w, limits.height, h), limits.height
	}
	for {
		scaledPic := pic
		if w != size.X || h != size.Y {
			dst := image.NewNRGBA(image.Rect(0, 0, w, h))
			draw.CatmullRom.Scale(dst, dst.Bounds(), pic, pic.Bounds(), draw.Src, nil)
			scaledPic = dst
		}
		if data, mime := encodeImage(scaledPic, limits); data != nil {
			return data, mime, w, h
		}
		if w == 1 && h == 1 {
			return nil, "", 0, 0
		}
		w, h = max(1, w*3/4), max(1, h*3/4)
	}
}

// scaled is n*num/den, rounded, at least 1.
func scaled(n, num, den int) int {
	return max(1, int(math.Floor(float64(n)*float64(num)/float64(den)+0.5)))
}

// encodeImage is the smallest form of a picture that fits: PNG, or JPEG at
// falling quality. It is nil when none fits.
func encodeImage(pic image.Image, limits imageLimits) ([]byte, string) {
	fits := func(b []byte) bool { return base64.StdEncoding.EncodedLen(len(b)) < limits.bytes }
	var best []byte
	mime := ""
	var buf bytes.Buffer
	if png.Encode(&buf, pic) == nil && fits(buf.Bytes()) {
		best, mime = buf.Bytes(), "image/png"
	}
	for q := limits.quality; q > 0; q -= 15 {
		var buf bytes.Buffer
		if jpeg.Encode(&buf, flat(pic), &jpeg.Options{Quality: q}) != nil {
			break
		}
		if fits(buf.Bytes()) {
			if best == nil || buf.Len() < len(best) {
				best, mime = buf.Bytes(), "image/jpeg"
			}
			break // a lower quality is only for what does not fit
		}
	}
	return best, mime
}

// flat is a picture on white ground: JPEG knows no transparency.
func flat(pic image.Image) image.Image {
	if o, ok := pic.(interface{ Opaque() bool }); ok && o.Opaque() {
		return pic
	}
	dst := image.NewRGBA(pic.Bounds())
	draw.Draw(dst, dst.Bounds(), image.White, image.Point{}, draw.Src)
	draw.Draw(dst, dst.Bounds(), pic, pic.Bounds().Min, draw.Over)
	return dst
}

func imageSize(mime string, data []byte) (w, h int, err error) {
	var c image.Config
	r := bytes.NewReader(data)
	switch mime {
	case "image/png":
		c, err = png.DecodeConfig(r)
	case "image/jpeg":
		c, err = jpeg.DecodeConfig(r)
	case "image/gif":
		c, err = gif.DecodeConfig(r)
	case "image/webp":
		c, err = webp.DecodeConfig(r)
	case "image/bmp":
		c, err = bmp.DecodeConfig(r)
	default:
		err = image.ErrFormat
	}
	if err == nil && (c.Width <= 0 || c.Height <= 0 || int64(c.Width)*int64(c.Height) > maxPixels) {
		err = image.ErrFormat
	}
	return c.Width, c.Height, err
}

func decodeImage(mime string, data []byte) (image.Image, error) {
	if _, _, err := imageSize(mime, data); err != nil {
		return nil, err
	}
	r := bytes.NewReader(data)
	switch mime {
	case "image/png":
		return png.Decode(r)
	case "image/jpeg":
		pic, err := jpeg.Decode(r)
		if err != nil {
			return nil, err
		}
		return upright(pic, exifOrientation(data)), nil
	case "image/gif":
		return gif.Decode(r)
	case "image/webp":
		return webp.Decode(r)
	case "image/bmp":
		return bmp.Decode(r)
	}
	return nil, image.ErrFormat
}

// hundredths prints a number with two decimals, halves rounded up.
func hundredths(f float64) string {
	if h := f * 100; h == math.Trunc(h)+0.5 {
		f = (h + 0.5) / 100
	}
	return strconv.FormatFloat(f, 'f', 2, 64)
}
