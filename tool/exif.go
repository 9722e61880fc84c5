package tool

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
)

// exifOrientation is how a JPEG wants to be turned, 1 to 8 as Exif counts; 1,
// which is upright, also for pictures that do not say. Encoding a picture anew
// loses the note, so the picture itself has to be turned.
func exifOrientation(data []byte) int {
	const sos, app1 = 0xDA, 0xE1
	for at := 2; at+4 <= len(data) && data[at] == 0xFF && data[at+1] != sos; {
		n := int(binary.BigEndian.Uint16(data[at+2:]))
		if n < 2 || at+2+n > len(data) {
			break
		}
		if body, ok := bytes.CutPrefix(data[at+4:at+2+n], []byte("Exif\x00\x00")); ok && data[at+1] == app1 {
			return tiffOrientation(body)
		}
		at += 2 + n
	}
	return 1
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

// upright turns a picture as its orientation says.
func upright(pic image.Image, orientation int) image.Image {
	if orientation <= 1 {
		return pic
	}
	return turned{pic, orientation}
}

// turned shows a picture in one of the eight ways of Exif.
type turned struct {
	image.Image
	orientation int
}

func (t turned) Bounds() image.Rectangle {
	size := t.Image.Bounds().Size()
	if t.orientation >= 5 {
		size.X, size.Y = size.Y, size.X
	}
	return image.Rectangle{Max: size}
}

func (t turned) At(x, y int) color.Color {
	b := t.Image.Bounds()
	w, h := b.Dx()-1, b.Dy()-1
	switch t.orientation {
	case 2:
		x = w - x
	case 3:
		x, y = w-x, h-y
	case 4:
		y = h - y
	case 5:
		x, y = y, x
	case 6:
		x, y = y, h-x
	case 7:
		x, y = w-y, h-x
	case 8:
		x, y = w-y, x
	}
	return t.Image.At(b.Min.X+x, b.Min.Y+y)
}
