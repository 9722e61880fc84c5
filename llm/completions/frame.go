package completions

import "bytes"

// frame is the chunk before without the strings that it brought: a piece of
// text, of reasoning, of a reasoning detail, of a call's arguments. The chunks
// of an answer differ in little else, so a chunk in the known frame costs its
// strings alone. What the frame itself says was taken when it was read.
type frame struct {
	holes  [maxHoles]leaf // in the order of the chunk, leafNone behind the last
	around [maxHoles + 1][]byte
	call   int // position of the call, for leafArguments
}

const maxHoles = 2

type leaf uint8

const (
	leafNone leaf = iota
	leafText
	leafReasoning
	leafDetail
	leafArguments
)

// inFrame reports whether a chunk is in the known frame, and its strings, which
// stay valid until the next call. The parts around them equal those of a chunk
// that was read, and exactly one string stands in each hole, so the chunk has
// the structure of that one.
func (x *exchange) inFrame(data []byte) (pieces [maxHoles][]byte, ok bool) {
	f := &x.frame
	if f.holes[0] == leafNone || !bytes.HasPrefix(data, f.around[0]) {
		return pieces, false
	}
	data = data[len(f.around[0]):]
	for i := 0; i < maxHoles && f.holes[i] != leafNone; i++ {
		r := &x.holes[i]
		r.Reset(data)
		if r.Kind() != '"' {
			return pieces, false
		}
		pieces[i] = r.String()
		if r.Err() != nil {
			return pieces, false
		}
		data = data[r.Offset():]
		if !bytes.HasPrefix(data, f.around[i+1]) {
			return pieces, false
		}
		data = data[len(f.around[i+1]):]
	}
	return pieces, len(data) == 0
}

// takePieces appends the strings of a chunk in the frame and reports whether
// there was anything in them.
func (x *exchange) takePieces(pieces *[maxHoles][]byte) (said bool) {
	for i, leaf := range x.frame.holes {
		said = said || len(pieces[i]) > 0
		switch leaf {
		case leafText:
			x.text.Extend(pieces[i])
		case leafReasoning:
			x.thinking.Extend(pieces[i])
		case leafDetail:
			x.details.last().append(pieces[i])
		case leafArguments:
			x.calls[x.frame.call].append(x, pieces[i])
		}
	}
	return said
}

// keepFrame remembers the frame of a chunk that brought such strings and
// nothing else; called is the call of its last tool entry.
func (x *exchange) keepFrame(data []byte, c *chunkView, called int) {
	f := &x.frame
	f.holes = [maxHoles]leaf{}
	if isText(c.finish) || isObject(c.usage) || isObject(c.choiceUsage) {
		return
	}
	var part [maxHoles][]byte
	n := 0
	add := func(l leaf, raw []byte) {
		if n < maxHoles {
			f.holes[n], part[n] = l, raw
		}
		n++
	}
	if isText(c.content) {
		add(leafText, c.content)
	}
	if _, raw := c.reasoningLeaf(); raw != nil {
		add(leafReasoning, raw)
	}
	for i := range c.details {
		d := &c.details[i]
		if d.kind == detailEncrypted {
			n = maxHoles + 1
		}
		add(leafDetail, d.body)
	}
	for i := range c.tools {
		e := &c.tools[i]
		// An entry without index and id finds its call by the state of the others.
		if !isString(e.args) || !e.hasIndex && !isText(e.id) {
			n = maxHoles + 1
		}
		f.call = called
		add(leafArguments, e.args)
	}
	// Two strings can be taken in the order of the chunk only when that does not
	// matter: reasoning goes to a block, its detail to the list of details.
	pair := n == 2 && f.holes[0] == leafReasoning && f.holes[1] == leafDetail
	if n != 1 && !pair {
		f.holes = [maxHoles]leaf{}
		return
	}
	// The parts are slices of data, so their capacities tell where they begin.
	if pair && cap(part[0]) < cap(part[1]) {
		part[0], part[1] = part[1], part[0]
		f.holes[0], f.holes[1] = f.holes[1], f.holes[0]
	}
	from := 0
	for i := range n {
		at := cap(data) - cap(part[i])
		f.around[i] = append(f.around[i][:0], data[from:at]...)
		from = at + len(part[i])
	}
	f.around[n] = append(f.around[n][:0], data[from:]...)
}
