package google

import (
	"bytes"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// frame is the chunk before without what differs from chunk to chunk: the text of
// its only part, and the numbers of its token counts. A chunk in the known frame
// costs its text and a few comparisons. What the frame itself says was taken when
// it was read.
type frame struct {
	holes   []hole   // in the order of the chunk; none while no frame is known
	around  [][]byte // before, between and behind the holes
	text    []byte   // memory of around
	thought bool
	usage   wireUsage // of the frame's own chunk; holes overwrite it
}

// hole is a place in a frame: the text, or a number and the count that it is.
type hole struct {
	at, to int
	kind   holeKind
}

type holeKind uint8

const (
	holeText holeKind = iota
	holeNumber
	holePrompt
	holeCached
	holeCandidates
	holeThoughts
	holeTotal
)

// maxHoles bounds the numbers of a frame, maxDigits their length.
const (
	maxHoles  = 32
	maxDigits = 18
)

// inFrame reports whether a chunk is in the known frame, and takes its text, which
// stays valid until the next call, and its counts. The parts around the holes
// equal those of a chunk that was read, and exactly one string or whole number
// stands in each, so the chunk has the structure of that one.
func (x *exchange) inFrame(data []byte) (text []byte, u wireUsage, ok bool) {
	f := &x.frame
	if len(f.holes) == 0 || !bytes.HasPrefix(data, f.around[0]) {
		return nil, u, false
	}
	data = data[len(f.around[0]):]
	u = f.usage
	for i, h := range f.holes {
		if h.kind == holeText {
			r := &x.value
			r.Reset(data)
			if r.Kind() != '"' || data[0] != '"' {
				return nil, u, false
			}
			if text = r.String(); r.Err() != nil {
				return nil, u, false
			}
			data = data[r.Offset():]
		} else {
			n, value := number(data)
			if n == 0 {
				return nil, u, false
			}
			if to := u.count(h.kind); to != nil {
				*to = value
			}
			data = data[n:]
		}
		if !bytes.HasPrefix(data, f.around[i+1]) {
			return nil, u, false
		}
		data = data[len(f.around[i+1]):]
	}
	return text, u, len(data) == 0
}

// number reads the whole number at the start of b: its length, 0 for none.
func number(b []byte) (n int, value int64) {
	for n < len(b) && b[n] >= '0' && b[n] <= '9' {
		value = value*10 + int64(b[n]-'0')
		n++
	}
	if n > maxDigits || n > 1 && b[0] == '0' {
		return 0, 0
	}
	return n, value
}

// count is where the count of a hole goes, nil for a number that is none.
func (u *wireUsage) count(k holeKind) *int64 {
	switch k {
	case holePrompt:
		return &u.prompt
	case holeCached:
		return &u.cached
	case holeCandidates:
		return &u.candidates
	case holeThoughts:
		return &u.thoughts
	case holeTotal:
		return &u.total
	}
	return nil
}

// keepFrame remembers the frame of a chunk that was read, if it brought one piece
// of text and nothing else.
func (x *exchange) keepFrame(data []byte) {
	c, f := &x.view, &x.frame
	f.holes, f.around = f.holes[:0], f.around[:0]
	if len(c.parts) != 1 || c.parts[0].text == nil || c.parts[0].call != nil || c.parts[0].signature != nil || c.finish != nil {
		return
	}
	// The parts are slices of data, so their capacities tell where they begin.
	from := func(part []byte) int { return cap(data) - cap(part) }
	part := &c.parts[0]
	f.thought, f.usage = part.thought, x.usage
	at := from(part.text)
	text := hole{at: at, to: at + len(part.text)}
	clean := true
	if c.usage == nil {
		f.holes = append(f.holes, text)
	} else if at := from(c.usage); at > text.at {
		f.holes = append(f.holes, text)
		clean = x.numberHoles(at, c.usage)
	} else {
		clean = x.numberHoles(at, c.usage)
		f.holes = append(f.holes, text)
	}
	if !clean || len(f.holes) > maxHoles {
		f.holes = f.holes[:0]
		return
	}
	f.text = append(f.text[:0], data...)
	end := 0
	for _, h := range f.holes {
		f.around = append(f.around, f.text[end:h.at])
		end = h.to
	}
	f.around = append(f.around, f.text[end:])
}

// numberHoles makes holes of the whole numbers in the usage at an offset of a
// chunk. It reports whether each count is there once: of two the last one counts,
// also one that is no hole.
func (x *exchange) numberHoles(offset int, usage []byte) (clean bool) {
	var seen [holeTotal + 1]bool
	clean = true
	r := &x.value
	r.Reset(usage)
	for r.Object(); r.More(); {
		kind := holeNumber
		switch string(r.Key()) {
		case "promptTokenCount":
			kind = holePrompt
		case "cachedContentTokenCount":
			kind = holeCached
		case "candidatesTokenCount":
			kind = holeCandidates
		case "thoughtsTokenCount":
			kind = holeThoughts
		case "totalTokenCount":
			kind = holeTotal
		}
		clean = clean && (kind == holeNumber || !seen[kind])
		seen[kind] = true
		x.valueHoles(r, offset, kind)
	}
	return clean
}

// valueHoles makes holes of the whole numbers in the value that r stands at.
func (x *exchange) valueHoles(r *jsonwire.Reader, offset int, kind holeKind) {
	switch r.Kind() {
	case '{':
		for r.Object(); r.More(); {
			r.Key()
			x.valueHoles(r, offset, holeNumber)
		}
	case '[':
		for r.Array(); r.More(); {
			x.valueHoles(r, offset, holeNumber)
		}
	case '0':
		at := r.Offset()
		raw := r.Raw()
		if n, _ := number(raw); n == len(raw) {
			x.frame.holes = append(x.frame.holes, hole{at: offset + at, to: offset + at + n, kind: kind})
		}
	default:
		r.Skip()
	}
}
