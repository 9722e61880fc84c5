package tool

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/draw"
	"iter"
)

// orientationOf is how a JPEG or WebP wants to be turned, 1 to 8 as Exif counts; 1,
// which is upright, for pictures that do not say. Encoding a picture anew loses the
// note, so the picture itself has to be turned.
func orientationOf(mime string, data []byte) int {
	switch mime {
	case "image/jpeg":
		return exifOrientation(data)
	case "image/webp":
		return webpOrientation(data)
	}
	return 1
}

// webpOrientation is that of the chunk EXIF. Some begin it as a JPEG does.
func webpOrientation(data []byte) int {
	const header, chunkHeader = 12, 8
	for at := header; at+chunkHeader <= len(data); {
		name, size := string(data[at:at+4]), int64(binary.LittleEndian.Uint32(data[at+4:]))
		body := data[at+chunkHeader:]
		if size > int64(len(body)) {
			return 1
		}
		if name == "EXIF" {
			return tiffOrientation(bytes.TrimPrefix(body[:size], []byte("Exif\x00\x00")))
		}
		at += chunkHeader + int(size+size%2)
	}
	return 1
}

// exifOrientation is that of a JPEG.
func exifOrientation(data []byte) int {
	for marker, body := range jpegSegments(data) {
		if exif, ok := bytes.CutPrefix(body, []byte("Exif\x00\x00")); ok && marker == 0xE1 {
			return tiffOrientation(exif)
		}
	}
	return 1
}

// isProgressive reports whether a JPEG is of the kind that comes in passes.
func isProgressive(data []byte) bool {
	for marker := range jpegSegments(data) {
		if marker == 0xC2 {
			return true
		}
	}
	return false
}

// jpegSegments goes through what stands before the data of a JPEG.
func jpegSegments(data []byte) iter.Seq2[byte, []byte] {
	return func(yield func(byte, []byte) bool) {
		const sos = 0xDA
		for at := 2; at+4 <= len(data) && data[at] == 0xFF && data[at+1] != sos; {
			n := int(binary.BigEndian.Uint16(data[at+2:]))
			if n < 2 || at+2+n > len(data) || !yield(data[at+1], data[at+4:at+2+n]) {
				return
			}
			at += 2 + n
		}
	}
}

func tiffOrientation(b []byte) int {
	const tag, short = 0x0112, 3
	if len(b) < 8 {
		return 1
	}
	var order binary.ByteOrder = binary.LittleEndian
	if b[0] == 'M' {
		order = binary.BigEndian
	}
	at := int64(order.Uint32(b[4:]))
	if at+2 > int64(len(b)) {
		return 1
	}
	for n := order.Uint16(b[at:]); n > 0; n-- {
		entry := at + 2 + 12*int64(n-1)
		if entry+12 > int64(len(b)) || order.Uint16(b[entry:]) != tag || order.Uint16(b[entry+2:]) != short {
			continue
		}
		if o := int(order.Uint16(b[entry+8:])); o >= 1 && o <= 8 {
			return o
		}
	}
	return 1
}

// turnedSize is the size of a picture as it is seen.
func turnedSize(size image.Point, orientation int) image.Point {
	if orientation >= 5 {
		return image.Pt(size.Y, size.X)
	}
	return size
}

// upright turns a picture as its orientation says.
func upright(pic image.Image, orientation int) image.Image {
	if orientation <= 1 {
		return pic
	}
	src, ok := pic.(*image.RGBA)
	if !ok {
		src = image.NewRGBA(image.Rectangle{Max: pic.Bounds().Size()})
		draw.Draw(src, src.Bounds(), pic, pic.Bounds().Min, draw.Src)
	}
	size := turnedSize(src.Bounds().Size(), orientation)
	dst := image.NewRGBA(image.Rectangle{Max: size})
	w, h := src.Bounds().Dx()-1, src.Bounds().Dy()-1
	for y := range size.Y {
		for x := range size.X {
			sx, sy := x, y
			switch orientation {
			case 2:
				sx = w - x
			case 3:
				sx, sy = w-x, h-y
			case 4:
				sy = h - y
			case 5:
				sx, sy = y, x
			case 6:
				sx, sy = y, h-x
			case 7:
				sx, sy = w-y, h-x
			case 8:
				sx, sy = w-y, x
			}
			copy(dst.Pix[y*dst.Stride+4*x:][:4], src.Pix[sy*src.Stride+4*sx:][:4])
		}
	}
	return dst
}
