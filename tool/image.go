package tool

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/image/bmp"
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

// FitImage is a picture of a prompt as a model takes it, nil for one of the usual
// limits; without resize it is as large as it was. hints tell the model what was
// done to it; the picture is nil when it cannot be shown. One of a type that models
// do not take is converted, and one whose type is not that of its bytes gets theirs,
// as a service would refuse it.
func FitImage(img *llm.Image, m *llm.Model, resize bool) (fitted *llm.Image, hints []string) {
	data, err := base64.StdEncoding.DecodeString(img.Data)
	if err != nil {
		return nil, []string{imageTooBig}
	}
	said, show := imageType(img.MimeType), showImage
	mime := cmp.Or(sniffImage(data), said)
	if !inlineImage(said) {
		show = func(mime string, data []byte, limits imageLimits, resize bool) shownImage {
			return showConverted(said, mime, data, limits, resize)
		}
	}
	shown := show(mime, data, imageLimitsOf(m), resize)
	switch {
	case shown.data == nil:
		return nil, shown.hints
	case len(shown.hints) == 0 && shown.mime == img.MimeType:
		return img, nil
	}
	return &llm.Image{Data: base64.StdEncoding.EncodeToString(shown.data), MimeType: shown.mime}, shown.hints
}

// imageType is a media type as it is compared: without parameters and in lower
// case, a JPEG by its right name.
func imageType(mime string) string {
	mime, _, _ = strings.Cut(mime, ";")
	if mime = strings.ToLower(strings.TrimSpace(mime)); mime == "image/jpg" {
		return "image/jpeg"
	}
	return mime
}

// inlineImage reports whether models take pictures of a type.
func inlineImage(mime string) bool {
	return slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, mime)
}

// asPNG is a picture as a PNG, upright; of an animation the first frame.
func asPNG(mime string, data []byte) ([]byte, error) {
	pic, err := decodeImage(mime, data)
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	err = png.Encode(&buf, upright(pic, orientationOf(mime, data)))
	return buf.Bytes(), err
}

// maxImageFile is the size in bytes above which a picture is not even loaded.
const maxImageFile = 256 << 20

// maxDecoded bounds the memory in bytes that a decoded picture may take: a small
// file can claim one that fills the memory.
const maxDecoded = 640 << 20

// showImage prepares a picture: models take no BMP, and none beyond the limits.
func showImage(mime string, data []byte, limits imageLimits, resize bool) shownImage {
	if mime == "image/bmp" {
		return showConverted(mime, mime, data, limits, resize)
	}
	out := shownImage{mime: mime, data: data}
	if !resize {
		return out
	}
	width, height, _, err := imageConfig(out.mime, out.data)
	small := err == nil && width <= limits.width && height <= limits.height && base64.StdEncoding.EncodedLen(len(out.data)) < limits.bytes
	var pic image.Image
	if err == nil {
		pic, err = decodeImage(out.mime, out.data)
	}
	switch {
	case small && (err == nil || isUnsupported(err)):
		return out
	case err != nil:
		// A broken picture would make a service refuse the conversation from
		// then on.
		return shownImage{mime: out.mime, hints: []string{imageTooBig}}
	}
	orientation := orientationOf(out.mime, out.data)
	fitted, mime, shown := fitImage(pic, orientation, limits)
	if fitted == nil {
		return shownImage{mime: out.mime, hints: []string{imageTooBig}}
	}
	out.data, out.mime = fitted, mime
	size := turnedSize(pic.Bounds().Size(), orientation)
	out.hints = append(out.hints, fmt.Sprintf(
		"[Image: original %dx%d, displayed at %dx%d. Multiply coordinates by %s to map to original image.]",
		size.X, size.Y, shown.X, shown.Y, hundredths(float64(size.X)/float64(shown.X))))
	return out
}

// showConverted prepares a picture of a type, from, that models do not take. Its
// bytes are of the type mime.
func showConverted(from, mime string, data []byte, limits imageLimits, resize bool) shownImage {
	converted, err := asPNG(mime, data)
	if err != nil {
		return shownImage{mime: from, hints: []string{imageUnconverted}}
	}
	out := showImage("image/png", converted, limits, resize)
	if out.data == nil {
		out.mime = from
		return out
	}
	hint := "[Image converted from " + from + " to " + out.mime + ".]"
	out.hints = append([]string{hint}, out.hints...)
	return out
}

// fitImage scales a picture into the limits, turns it upright and encodes it,
// smaller and smaller until it fits. data is nil when nothing does.
func fitImage(pic image.Image, orientation int, limits imageLimits) (data []byte, mime string, shown image.Point) {
	size := turnedSize(pic.Bounds().Size(), orientation)
	w, h := size.X, size.Y
	if w > limits.width {
		w, h = limits.width, scaled(h, limits.width, w)
	}
	if h > limits.height {
		w, h = scaled(w, limits.height, h), limits.height
	}
	if shown = image.Pt(w, h); shown != size {
		stored := turnedSize(shown, orientation)
		pic = shrink(pic, stored.X, stored.Y)
	}
	full := upright(pic, orientation)
	for pic = full; ; pic = shrink(full, shown.X, shown.Y) {
		if data, mime := encodeImage(pic, limits); data != nil {
			return data, mime, shown
		}
		if shown == image.Pt(1, 1) {
			return nil, "", shown
		}
		shown = image.Pt(max(1, shown.X*3/4), max(1, shown.Y*3/4))
	}
}

// scaled is n*num/den, rounded, at least 1.
func scaled(n, num, den int) int {
	return max(1, int(math.Floor(float64(n)*float64(num)/float64(den)+0.5)))
}

// encodeImage is the smaller form of a picture that fits: PNG, or JPEG of the
// best quality that does. It is nil when none fits.
func encodeImage(pic image.Image, limits imageLimits) ([]byte, string) {
	var best []byte
	mime := ""
	room := limits.bytes // of what is worth having
	for q := limits.quality; q > 0 && best == nil; q -= 15 {
		w := boundedWriter{room: room}
		if jpeg.Encode(&w, flat(pic), &jpeg.Options{Quality: q}) == nil && base64.StdEncoding.EncodedLen(len(w.data)) < limits.bytes {
			best, mime, room = w.data, "image/jpeg", len(w.data)
		}
	}
	// Of a photograph the PNG is given up once it is larger.
	w := boundedWriter{room: room}
	if png.Encode(&w, pic) == nil && base64.StdEncoding.EncodedLen(len(w.data)) < limits.bytes {
		best, mime = w.data, "image/png"
	}
	return best, mime
}

// boundedWriter holds so many bytes and fails at more.
type boundedWriter struct {
	data []byte
	room int
}

func (w *boundedWriter) Write(p []byte) (int, error) {
	if len(p) > w.room-len(w.data) {
		return 0, io.ErrShortWrite
	}
	w.data = append(w.data, p...)
	return len(p), nil
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

func imageConfig(mime string, data []byte) (w, h int, model color.Model, err error) {
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
	if err == nil && (c.Width <= 0 || c.Height <= 0) {
		err = image.ErrFormat
	}
	return c.Width, c.Height, c.ColorModel, err
}

// decodeImage decodes a picture as it is stored, of an animation the first frame.
func decodeImage(mime string, data []byte) (image.Image, error) {
	w, h, model, err := imageConfig(mime, data)
	if err != nil {
		return nil, err
	}
	pixels := int64(w) * int64(h)
	if int64(w) > maxDecoded || int64(h) > maxDecoded || pixels*pixelBytes(mime, model, data) > maxDecoded {
		return nil, errImageMemory
	}
	r := bytes.NewReader(data)
	switch mime {
	case "image/png":
		if pixels/8/maxDeflate > int64(len(data)) {
			return nil, image.ErrFormat // not even the emptiest picture is packed so small
		}
		return png.Decode(r)
	case "image/jpeg":
		return jpeg.Decode(r)
	case "image/gif":
		return gif.Decode(r)
	case "image/webp":
		if frame := firstFrame(data); frame != nil {
			return webp.Decode(bytes.NewReader(frame))
		}
		return webp.Decode(r)
	case "image/bmp":
		return bmp.Decode(r)
	}
	return nil, image.ErrFormat
}

// isUnsupported reports whether a picture may be whole though it cannot be
// decoded here.
func isUnsupported(err error) bool {
	_, isPNG := errors.AsType[png.UnsupportedError](err)
	_, isJPEG := errors.AsType[jpeg.UnsupportedError](err)
	return isPNG || isJPEG
}

var errImageMemory = errors.New("the picture needs too much memory")

// maxDeflate is how many bytes one byte of a PNG's data can stand for.
const maxDeflate = 1032

// pixelBytes is how much memory a pixel takes while a picture is decoded.
func pixelBytes(mime string, model color.Model, data []byte) int64 {
	if _, ok := model.(color.Palette); ok {
		return 1
	}
	if mime == "image/jpeg" && isProgressive(data) {
		return 15 // all coefficients are held
	}
	switch model {
	case color.GrayModel:
		return 1
	case color.Gray16Model:
		return 2
	case color.YCbCrModel:
		return 3
	case color.CMYKModel, color.RGBAModel, color.NRGBAModel, color.NYCbCrAModel:
		return 4
	}
	return 8
}

// firstFrame is the first frame of an animated WebP as a file of its own, nil
// for a picture that stands still.
func firstFrame(data []byte) []byte {
	const frameHead = 16
	for at := 12; at+8 <= len(data); {
		name, n := string(data[at:at+4]), int64(binary.LittleEndian.Uint32(data[at+4:]))
		body := data[at+8:]
		if n > int64(len(body)) {
			return nil
		}
		if body = body[:n]; name == "ANMF" && n > frameHead {
			head := make([]byte, 10)
			if string(body[frameHead:min(frameHead+4, n)]) == "ALPH" {
				head[0] = 1 << 4
			}
			copy(head[4:], body[6:12]) // width and height
			out := binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(4+8+len(head)+len(body)-frameHead))
			out = binary.LittleEndian.AppendUint32(append(out, "WEBPVP8X"...), uint32(len(head)))
			return append(append(out, head...), body[frameHead:]...)
		}
		at += 8 + int(n+n&1)
	}
	return nil
}

// hundredths prints a number with two decimals, halves rounded up.
func hundredths(f float64) string {
	if h := f * 100; h == math.Trunc(h)+0.5 {
		f = (h + 0.5) / 100
	}
	return strconv.FormatFloat(f, 'f', 2, 64)
}
