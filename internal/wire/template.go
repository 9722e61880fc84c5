package wire

import (
	"bytes"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// Template is an event without the string that it brought. The events of an
// answer differ in little else, so one that fits costs its string alone, and the
// format does with the string what it did with the one before. Nothing fits the
// zero value.
type Template struct {
	known    bool
	padded   bool
	padFirst bool
	around   [3][]byte // what is before, between and behind the strings
	text     jsonwire.Reader
	pad      jsonwire.Reader
	padding  []byte // the other string of the event that fitted
}

// Keep remembers what in the event data is around text, a JSON string that is a
// slice of it. pad is another such string that changes, or nil. Mostly it means
// nothing: some services fill events up with random letters, so that their
// length tells nothing to who listens.
func (t *Template) Keep(data, text, pad []byte) {
	t.known, t.padded = true, pad != nil
	first, second := text, pad
	// The strings are slices of data, so their capacities tell where they begin.
	if t.padFirst = t.padded && cap(pad) > cap(text); t.padFirst {
		first, second = pad, text
	}
	at := cap(data) - cap(first)
	t.around[0] = append(t.around[0][:0], data[:at]...)
	behind := data[at+len(first):]
	if t.padded {
		at = cap(behind) - cap(second)
		t.around[1] = append(t.around[1][:0], behind[:at]...)
		behind = behind[at+len(second):]
	}
	t.around[2] = append(t.around[2][:0], behind...)
}

// Forget takes the next event for one that was never seen.
func (t *Template) Forget() { t.known = false }

// Match reports whether the event data fits, and its string, which stays valid
// until the next call. What is around the string equals an event that was read,
// and exactly one string stands in its place, so data has the structure of that
// event.
func (t *Template) Match(data []byte) (text []byte, ok bool) {
	if !t.known || !bytes.HasPrefix(data, t.around[0]) {
		return nil, false
	}
	data = data[len(t.around[0]):]
	if t.padFirst {
		if data, ok = t.skip(data); !ok {
			return nil, false
		}
	}
	if len(data) == 0 || data[0] != '"' {
		return nil, false
	}
	t.text.Reset(data)
	text = t.text.String()
	if t.text.Err() != nil {
		return nil, false
	}
	data = data[t.text.Offset():]
	if t.padded && !t.padFirst {
		if !bytes.HasPrefix(data, t.around[1]) {
			return nil, false
		}
		if data, ok = t.skip(data[len(t.around[1]):]); !ok {
			return nil, false
		}
	}
	return text, bytes.Equal(data, t.around[2])
}

// Pad is the other string of the event that fitted, as valid as the first.
func (t *Template) Pad() []byte { return t.padding }

// skip is data behind the other string and, where that is the
// first one, behind what parts it from the other.
func (t *Template) skip(data []byte) ([]byte, bool) {
	if len(data) == 0 || data[0] != '"' {
		return nil, false
	}
	t.pad.Reset(data)
	t.padding = t.pad.String()
	if t.pad.Err() != nil {
		return nil, false
	}
	data = data[t.pad.Offset():]
	if !t.padFirst {
		return data, true
	}
	if !bytes.HasPrefix(data, t.around[1]) {
		return nil, false
	}
	return data[len(t.around[1]):], true
}
