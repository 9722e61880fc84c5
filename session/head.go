package session

import "github.com/pinch-agent/pinch/internal/jsonwire"

// head is where the members stand with which nearly every line of a log begins,
// written as everybody writes them.
type head struct {
	typ, id, parent, timestamp part
	end                        int // behind the timestamp
	role                       part
	message                    int // where the value of a message begins; 0 when none follows
}

// part is a part of a line.
type part struct{ from, to int }

// read reads the beginning of a line. It reports false for lines that begin in
// another way.
func (h *head) read(line []byte) bool {
	*h = head{}
	at, ok := behind(line, 0, `{"type":"`)
	if ok {
		h.typ, at, ok = plain(line, at)
	}
	if ok {
		at, ok = behind(line, at, `,"id":"`)
	}
	if ok {
		h.id, at, ok = plain(line, at)
	}
	if ok {
		if after, null := behind(line, at, `,"parentId":null`); null {
			at = after
		} else if at, ok = behind(line, at, `,"parentId":"`); ok {
			h.parent, at, ok = plain(line, at)
		}
	}
	if ok {
		at, ok = behind(line, at, `,"timestamp":"`)
	}
	if ok {
		h.timestamp, at, ok = plain(line, at)
	}
	h.end = at
	return ok
}

// readMessage goes on to the role of the message that follows.
func (h *head) readMessage(line []byte) bool {
	const key, role = `,"message":`, `{"role":"`
	at, ok := behind(line, h.end, key)
	if ok {
		h.message = at
		at, ok = behind(line, at, role)
	}
	if ok {
		h.role, _, ok = plain(line[:min(len(line), at+maxRole)], at)
	}
	return ok && h.role.to > h.role.from
}

// maxRole is the longest role, with its quote, that is read beside a message.
const maxRole = 32

// behind is the place behind a literal that stands at a place.
func behind(line []byte, at int, literal string) (int, bool) {
	end := at + len(literal)
	if end > len(line) || string(line[at:end]) != literal {
		return at, false
	}
	return end, true
}

// plain is an ASCII string without escapes whose first byte stands at a place,
// and the place behind its closing quote.
func plain(line []byte, at int) (s part, after int, ok bool) {
	n, ascii := jsonwire.Plain(line[at:])
	end := at + n
	if !ascii || end == len(line) || line[end] != '"' {
		return s, at, false
	}
	return part{at, end}, end + 1, true
}
