package session

import (
	"bytes"
	"iter"
	"strconv"
	"strings"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// scanner walks the objects of a log and reads of each only what places it:
// type, id, parent, time and the role of its message. Everything else is only
// checked to be JSON. Lines that hold no object are passed over.
type scanner struct {
	data []byte
	text string // data as a string, shared
	at   int    // start of the next line
	r    jsonwire.Reader

	// The current line.
	raw       []byte
	start     int // of raw in data
	typ       Type
	id        string
	parent    string
	timestamp string
	role      llm.Role
	message   int // where its message begins in raw; 0 for none
}

func newScanner(data []byte) *scanner {
	// A log is never changed once it is loaded, so its strings can share it.
	return &scanner{data: data, text: unsafe.String(unsafe.SliceData(data), len(data))}
}

// next goes on to the next line that holds an object.
func (s *scanner) next() bool {
	for s.line() {
		if s.object() {
			return true
		}
	}
	return false
}

// line goes on to the next line, without its line break and the white space
// around.
func (s *scanner) line() bool {
	if s.at >= len(s.data) {
		return false
	}
	s.start = s.at
	end := len(s.data)
	if n := bytes.IndexByte(s.data[s.at:], '\n'); n >= 0 {
		end = s.at + n
	}
	s.at = end + 1
	if s.start == 0 && bytes.HasPrefix(s.data, []byte(byteOrderMark)) {
		s.start = len(byteOrderMark)
	}
	for s.start < end && jsonSpace(s.data[s.start]) {
		s.start++
	}
	for end > s.start && jsonSpace(s.data[end-1]) {
		end--
	}
	s.raw = s.data[s.start:end:end]
	return true
}

// byteOrderMark is what editors on Windows put before a text. At the start of a
// log it counts as white space, and stays until the log is written anew.
const byteOrderMark = "\uFEFF"

func jsonSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }

// object reads the current line as an object.
func (s *scanner) object() bool {
	r := &s.r
	if len(s.raw) < 2 || s.raw[0] != '{' || s.raw[len(s.raw)-1] != '}' {
		return false
	}
	s.typ, s.id, s.parent, s.timestamp, s.role, s.message = "", "", "", "", "", 0
	if at := s.usual(); at > 0 {
		r.ResetBehind(s.raw, at)
	} else {
		r.Reset(s.raw)
		r.Object()
	}
	for r.More() {
		switch string(r.Key()) {
		case "type":
			s.typ = Type(s.string())
		case "id":
			s.id = s.string()
		case "parentId":
			s.parent = s.string()
		case "timestamp":
			s.timestamp = s.string()
		case "message":
			r.Kind() // to the start of the value
			s.message = r.Offset()
			s.role = s.messageRole()
		default:
			r.Skip()
		}
	}
	if s.typ != TypeMessage {
		s.role, s.message = "", 0
	}
	return r.End() == nil
}

// usual reads the members with which nearly every line begins, written as
// everybody writes them, and gives the place behind them; 0 for other lines.
func (s *scanner) usual() int {
	var h head
	if !h.read(s.raw) {
		return 0
	}
	text := s.text[s.start:]
	s.typ, s.id, s.parent = Type(text[h.typ.from:h.typ.to]), text[h.id.from:h.id.to], text[h.parent.from:h.parent.to]
	s.timestamp = text[h.timestamp.from:h.timestamp.to]
	return h.end
}

// read reads one line without white space around, as next does.
func (s *scanner) read(raw []byte) bool {
	s.data, s.raw, s.start = raw, raw, 0
	s.text = unsafe.String(unsafe.SliceData(raw), len(raw))
	return s.object()
}

// is reports whether the current object is an entry that was found before.
func (s *scanner) is(e *Entry) bool {
	return s.typ == e.Type && s.id == e.ID && s.parent == e.ParentID && s.role == e.role && short(s.message) == e.message
}

// string reads a string that shares the log's memory where it can. Other kinds
// read as "".
func (s *scanner) string() string {
	if s.r.Kind() != '"' {
		s.r.Skip()
		return ""
	}
	b := s.r.String()
	if len(b) == 0 {
		return ""
	}
	end := s.start + s.r.Offset() - 1 // at the closing quote
	if from := end - len(b); from >= 0 && end <= len(s.data) && &s.data[from] == &b[0] {
		return s.text[from:end]
	}
	return string(b)
}

// messageRole reads a message, of which everybody writes the role first.
func (s *scanner) messageRole() (role llm.Role) {
	const first = `{"role":"`
	if at := s.r.Offset(); len(s.raw) > at+len(first) && string(s.raw[at:at+len(first)]) == first {
		name := s.raw[at+len(first):]
		if n := bytes.IndexByte(name[:min(len(name), maxRole)], '"'); n > 0 && bytes.IndexByte(name[:n], '\\') < 0 {
			from := s.start + at + len(first)
			s.r.Skip()
			return llm.Role(s.text[from : from+n])
		}
	}
	for s.r.Object(); s.r.More(); {
		if string(s.r.Key()) == "role" {
			role = llm.Role(s.string())
		} else {
			s.r.Skip()
		}
	}
	return role
}

// Counts reports whether a line without its line break may be the header of a
// log or, behind it, an entry. Lines that are no JSON, and null, false, 0 and ""
// are passed over.
func Counts(line []byte) bool { return truthy(line) }

// truthy reports whether raw is JSON and anything but null, false, 0 and "".
func truthy(raw []byte) bool {
	if len(raw) == 0 || jsonwire.Check(raw) != nil {
		return false
	}
	switch string(raw) {
	case "null", "false", `""`:
		return false
	}
	if c := raw[0]; c == '-' || c >= '0' && c <= '9' {
		f, err := strconv.ParseFloat(string(raw), 64)
		return err != nil || f != 0
	}
	return true
}

// findHeader reads the header and version of a log.
func findHeader(data []byte) (h Header, version float64, ok bool) {
	h, version, ok, _ = memorySource(data).header()
	return h, version, ok
}

// header reads the header and version of the log.
func (s *source) header() (h Header, version float64, ok bool, err error) {
	for l, err := range s.lines() {
		if err != nil {
			return h, 0, false, err
		}
		raw, err := l.whole(s)
		if err != nil {
			return h, 0, false, err
		}
		if truthy(raw) {
			h, ok = ParseHeader(bytes.Clone(raw))
			return h, versionOf(raw), ok, nil
		}
	}
	return h, 0, false, nil
}

// versionOf is the version in a header: 1 when it has none.
func versionOf(raw []byte) float64 {
	v := jsonwire.Get(raw, "version")
	var r jsonwire.Reader
	r.Reset(v)
	switch r.Kind() {
	case 0, 'n':
		return 1
	case '0':
		return r.Float()
	case '"':
		if f, err := strconv.ParseFloat(strings.TrimSpace(r.Text()), 64); err == nil {
			return f
		}
	}
	return Version // no version that could be older
}

// Lines walks through the objects of a log as they are, the header and later
// headers included, with their types. A log that does not begin with a valid
// header gives nothing.
func Lines(data []byte) iter.Seq2[Type, jsontext.Value] {
	return func(yield func(Type, jsontext.Value) bool) {
		if _, _, ok := findHeader(data); !ok {
			return
		}
		for s := newScanner(data); s.next(); {
			if !yield(s.typ, s.raw) {
				return
			}
		}
	}
}
