package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// MaxEvent bounds one event in bytes; a longer one is an *EventSizeError.
const MaxEvent = 64 << 20

// EventSizeError says that a server sent an event longer than MaxEvent.
type EventSizeError struct{ Limit int }

func (e *EventSizeError) Error() string {
	return fmt.Sprintf("stream event is longer than %d bytes", e.Limit)
}

const (
	firstBuffer  = 16 << 10
	maxPreamble  = 64 << 10 // comments kept in front of an event, for error texts
	longLine     = 4 << 10  // longer than any keep-alive
	minRead      = 512
	maxEmptyRead = 100
)

// SSE reads server-sent events by the rules of the WHATWG: lines end in CR, LF
// or CRLF, lines that begin with a colon are comments, several data lines are
// joined by a line feed, text is UTF-8 with invalid bytes replaced. Unlike the
// standard it also takes an event that the end of the stream cuts off before
// its empty line, and reports events that have a name but no data.
//
// The zero value is ready for Reset. No event costs an allocation once the
// buffer has the size of the longest event.
type SSE struct {
	src io.Reader
	max int

	buf        []byte
	start      int // the current event begins here
	pos, end   int // unread bytes are buf[pos:end]
	seen       int // buf[pos:seen] holds no line end
	lf         int // a line feed, when not below seen
	lfSeen     int // buf[seen:lfSeen] holds no line feed
	eof        error
	afterCR    bool // a line feed at pos belongs to the line end before
	begun      bool // something was read: no byte order mark any more
	cut        bool // the stream ended inside the event returned last
	eventStart int  // of the event returned last
	eventEnd   int

	// arrives is called when more came of a line that is too long for a keep-alive:
	// data on its way, although its event cannot be read yet. Nil for nobody.
	arrives func()

	joined []byte // data of several lines, or repaired
	named  []byte // name, repaired
}

// MediaType implements Frames.
func (s *SSE) MediaType() string { return "text/event-stream" }

// Reset starts reading src and keeps the buffer.
func (s *SSE) Reset(src io.Reader) {
	*s = SSE{src: src, max: MaxEvent, lf: -1, buf: s.buf, joined: s.joined[:0], named: s.named[:0]}
}

// field is a part of the buffer that moves with it: offsets from s.start.
type field struct{ from, to int }

// Next returns the next event. name is empty for an event without name. The
// slices are valid until the next call. At the end of the stream err is io.EOF.
func (s *SSE) Next() (name, data []byte, err error) {
	s.start = s.pos
	var nameAt, dataAt field
	hasName, lines := false, 0
	for {
		from, to, err := s.line()
		if err != nil {
			if errors.Is(err, io.EOF) && (hasName || lines > 0) {
				s.cut = true
				break
			}
			return nil, nil, err
		}
		if from == to {
			if hasName || lines > 0 {
				break
			}
			s.start = s.pos
			continue
		}
		line := s.buf[from:to]
		if line[0] == ':' {
			if !hasName && lines == 0 && s.pos-s.start > maxPreamble {
				s.start = s.pos
			}
			continue
		}
		value := len(line)
		key := line
		if i := bytes.IndexByte(line, ':'); i >= 0 {
			key, value = line[:i], i+1
			if value < len(line) && line[value] == ' ' {
				value++
			}
		}
		at := field{from + value - s.start, to - s.start}
		switch string(key) {
		case "data":
			switch lines++; lines {
			case 1:
				dataAt = at
			case 2:
				s.joined = append(s.joined[:0], s.at(dataAt)...)
				fallthrough
			default:
				s.joined = append(s.joined, '\n')
				s.joined = append(s.joined, s.at(at)...)
			}
		case "event":
			nameAt, hasName = at, true
		}
	}
	s.eventStart, s.eventEnd = s.start, s.pos
	if hasName {
		name = s.at(nameAt)
		if !utf8.Valid(name) {
			s.named = jsonwire.AppendUTF8(s.named[:0], name)
			name = s.named
		}
	}
	switch {
	case lines == 1:
		if data = s.at(dataAt); !utf8.Valid(data) {
			s.joined = jsonwire.AppendUTF8(s.joined[:0], data)
			data = s.joined
		}
	case lines > 1:
		if data = s.joined; !utf8.Valid(data) {
			s.joined = jsonwire.AppendUTF8(nil, data)
			data = s.joined
		}
	}
	return name, data, nil
}

// Raw is the lines of the event returned last, joined by sep, for error texts.
func (s *SSE) Raw(sep string) string {
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(s.buf[s.eventStart:s.eventEnd]))
	text = strings.Trim(text, "\n")
	return strings.ReplaceAll(string(jsonwire.AppendUTF8(nil, text)), "\n", sep)
}

func (s *SSE) at(f field) []byte { return s.buf[s.start+f.from : s.start+f.to] }

// line returns the bounds of the next line in the buffer, without its end.
func (s *SSE) line() (from, to int, err error) {
	for {
		if s.afterCR && s.pos < s.end {
			s.afterCR = false
			if s.buf[s.pos] == '\n' {
				if s.start == s.pos {
					s.start++
				}
				s.pos++
				s.seen = max(s.seen, s.pos)
			}
		}
		if i := s.lineEnd(); i >= 0 {
			from, to = s.pos, i
			s.afterCR = s.buf[to] == '\r'
			s.pos = to + 1
			s.seen = s.pos
			return from, to, nil
		}
		s.seen = s.end
		if s.eof != nil {
			if s.pos < s.end && errors.Is(s.eof, io.EOF) {
				from, to = s.pos, s.end
				s.pos = s.end
				return from, to, nil
			}
			return 0, 0, s.eof
		}
		if err := s.fill(); err != nil {
			return 0, 0, err
		}
	}
}

// lineEnd is the index of the first unseen CR or LF, -1 for none. What is known
// about line feeds is kept, so that a text of CR lines is searched only once.
func (s *SSE) lineEnd() int {
	limit := s.end
	if s.lf >= s.seen {
		limit = s.lf
	} else {
		from := max(s.seen, s.lfSeen)
		if i := bytes.IndexByte(s.buf[from:s.end], '\n'); i >= 0 {
			s.lf = from + i
			limit = s.lf
		} else {
			s.lfSeen = s.end
		}
	}
	if i := bytes.IndexByte(s.buf[s.seen:limit], '\r'); i >= 0 {
		return s.seen + i
	}
	if limit == s.end {
		return -1
	}
	return limit
}

// fill reads more, making room first. An error of the source is kept in s.eof.
func (s *SSE) fill() error {
	if len(s.buf)-s.end < minRead {
		if n := s.start; n > 0 {
			s.end = copy(s.buf, s.buf[n:s.end])
			s.pos, s.seen, s.lf, s.lfSeen, s.start = s.pos-n, s.seen-n, s.lf-n, s.lfSeen-n, 0
		}
		if s.end == len(s.buf) {
			if s.end >= s.max {
				s.eof = &EventSizeError{Limit: s.max}
				s.pos = s.end
				return s.eof
			}
			grown := make([]byte, max(firstBuffer, min(2*len(s.buf), s.max)))
			copy(grown, s.buf[:s.end])
			s.buf = grown
		}
	}
	for range maxEmptyRead {
		n, err := s.src.Read(s.buf[s.end:])
		s.end += n
		if err != nil {
			s.eof = err
		}
		if !s.begun && (s.end >= 3 || err != nil) {
			s.begun = true
			if bytes.HasPrefix(s.buf[:s.end], []byte("\uFEFF")) {
				s.pos, s.start, s.seen = 3, 3, 3
			}
		}
		if s.begun && (n > 0 || err != nil) {
			if n > 0 && s.end-s.pos > longLine && s.buf[s.pos] != ':' && s.arrives != nil {
				s.arrives()
			}
			return nil
		}
	}
	s.eof = io.ErrNoProgress
	return s.eof
}
