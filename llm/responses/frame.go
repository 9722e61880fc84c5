package responses

import (
	"bytes"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// frame is the event before without what is new in each event of its kind: the
// piece of text, the number of the event, the padding that hides the length of
// the piece. The deltas of a block differ in nothing else, so one in the known
// frame costs these values alone.
type frame struct {
	typ    eventType // eventOther for no frame
	index  int64
	holes  [maxHoles]hole
	n      int
	around [maxHoles + 1][]byte
}

const maxHoles = 3

// hole is a value that differs between the events of a frame.
type hole struct {
	kind     holeKind
	from, to int // in the event that the frame was made of
}

type holeKind uint8

const (
	holePiece holeKind = iota + 1
	holeNumber
	holePadding
)

// match reports whether an event is in the frame, and its piece, which stays
// valid until the next call on r. The parts around the holes equal those of an
// event that was read, so the event has the structure of that one.
func (f *frame) match(data []byte, r *jsonwire.Reader) (piece []byte, ok bool) {
	if f.typ == eventOther || !bytes.HasPrefix(data, f.around[0]) {
		return nil, false
	}
	at := len(f.around[0])
	for i := range f.n {
		switch rest := data[at:]; f.holes[i].kind {
		case holePiece:
			r.Reset(rest)
			if r.Kind() != '"' {
				return nil, false
			}
			if piece = r.String(); r.Err() != nil {
				return nil, false
			}
			at += r.Offset()
		case holeNumber:
			n := digits(rest)
			if n == 0 {
				return nil, false
			}
			at += n
		case holePadding:
			n := plainString(rest)
			if n == 0 {
				return nil, false
			}
			at += n
		}
		if !bytes.HasPrefix(data[at:], f.around[i+1]) {
			return nil, false
		}
		at += len(f.around[i+1])
	}
	return piece, at == len(data)
}

// digits is the length of the whole number that b begins with, 0 for none.
func digits(b []byte) int {
	n := 0
	for n < len(b) && b[n] >= '0' && b[n] <= '9' {
		n++
	}
	if n > 1 && b[0] == '0' {
		return 0
	}
	return n
}

// plainString is the length of the JSON string that b begins with, 0 for none
// and for one with escapes or other than ASCII.
func plainString(b []byte) int {
	if len(b) == 0 || b[0] != '"' {
		return 0
	}
	for i := 1; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c == '\\' || c < ' ' || c >= 0x80:
			return 0
		}
	}
	return 0
}

// keep remembers the frame of an event that v tells of.
func (f *frame) keep(data []byte, v *eventView) {
	f.typ = eventOther
	switch v.typ {
	case eventText, eventThinking, eventArguments, eventInput:
	default:
		return
	}
	if v.crowded || v.named || !isString(v.delta) {
		return
	}
	f.typ, f.index, f.n = v.typ, v.index, v.n
	from := 0
	for i := range v.n {
		h := v.holes[i]
		f.holes[i] = h
		f.around[i] = append(f.around[i][:0], data[from:h.from]...)
		from = h.to
	}
	f.around[v.n] = append(f.around[v.n][:0], data[from:]...)
}
