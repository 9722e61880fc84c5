package completions

import "github.com/pinch-agent/pinch/internal/wire"

// frame is the chunk before without the strings that it brought: a piece of
// text, of reasoning, of a reasoning detail, of a call's arguments. The chunks
// of an answer differ in little else, so a chunk in the known frame costs its
// strings alone. What the frame itself says was taken when it was read.
type frame struct {
	around   wire.Template
	leaf     leaf // of the string, leafReasoning where there are two
	detailed bool // the other string is that of a detail
	call     int  // position of the call, for leafArguments
}

type leaf uint8

const (
	leafText leaf = iota
	leafReasoning
	leafDetail
	leafArguments
)

// takePiece appends the string of a chunk in the frame, and the other one where
// there are two, and reports whether there was anything in them.
func (x *exchange) takePiece(piece []byte) (said bool) {
	f := &x.frame
	said = len(piece) > 0
	switch f.leaf {
	case leafText:
		x.text.Extend(piece)
	case leafReasoning:
		x.thinking.Extend(piece)
	case leafDetail:
		x.details.last().append(piece)
	case leafArguments:
		x.calls[f.call].append(piece)
	}
	if f.detailed {
		detail := f.around.Pad()
		said = said || len(detail) > 0
		x.details.last().append(detail)
	}
	return said
}

// keepFrame remembers the frame of a chunk that brought such strings and
// nothing else; called is the call of its last tool entry.
func (x *exchange) keepFrame(data []byte, c *chunkView, called int) {
	f := &x.frame
	f.around.Forget()
	if isText(c.finish) || isObject(c.usage) || isObject(c.choiceUsage) || len(c.details) > 1 || len(c.tools) > 1 {
		return
	}
	var piece, detail []byte
	n := 0
	add := func(l leaf, raw []byte) {
		f.leaf, piece = l, raw
		n++
	}
	if isText(c.content) {
		add(leafText, c.content)
	}
	if len(c.details) > 0 {
		if c.details[0].kind == detailEncrypted {
			return
		}
		detail = c.details[0].body
		add(leafDetail, detail)
	}
	if _, raw := c.reasoningLeaf(); raw != nil {
		add(leafReasoning, raw)
	}
	if len(c.tools) > 0 {
		e := &c.tools[0]
		// An entry without index and id finds its call by the state of the others.
		if !isString(e.args) || !e.hasIndex && !isText(e.id) {
			return
		}
		f.call = called
		add(leafArguments, e.args)
	}
	// Two strings can be taken in one order only where that does not matter:
	// reasoning goes to a block, its detail to the list of details.
	f.detailed = n == 2 && f.leaf == leafReasoning && detail != nil
	switch {
	case f.detailed:
		f.around.Keep(data, piece, detail)
	case n == 1:
		f.around.Keep(data, piece, nil)
	}
}
