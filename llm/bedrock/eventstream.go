package bedrock

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/pinch-agent/pinch/internal/wire"
)

// The framing of AWS event streams, application/vnd.amazon.eventstream:
//
//	total length   4 bytes  of all of the frame
//	headers length 4 bytes
//	checksum       4 bytes  of the 8 bytes before
//	headers                 name length 1, name, type 1, value
//	payload
//	checksum       4 bytes  of all bytes before
//
// Numbers are big endian, checksums CRC-32 as in Ethernet.
const (
	preludeLen  = 12
	checksumLen = 4
	firstBuffer = 16 << 10
	maxEmpty    = 100 // reads in a row that bring nothing
)

// eventStream implements wire.Frames. An event costs no allocation once the
// buffer has the size of the longest one.
type eventStream struct {
	src io.Reader
	err error // of src
	max int   // bytes of a frame

	buf      []byte
	pos, end int // unread bytes are buf[pos:end]

	// Of the event returned last, valid until the next one is read.
	messageType   []byte // event, exception, error
	exceptionType []byte
	errorCode     []byte
	errorMessage  []byte
}

// MediaType implements wire.Frames.
func (s *eventStream) MediaType() string { return "application/vnd.amazon.eventstream" }

// Reset implements wire.Frames and keeps the buffer.
func (s *eventStream) Reset(src io.Reader) {
	*s = eventStream{src: src, max: wire.MaxEvent, buf: s.buf}
}

// Next implements wire.Frames: the name is the event's type, the data its
// payload. A stream that ends inside a frame is a broken connection.
func (s *eventStream) Next() (name, data []byte, err error) {
	s.messageType, s.exceptionType, s.errorCode, s.errorMessage = nil, nil, nil, nil
	if err := s.fill(preludeLen); err != nil {
		return nil, nil, err
	}
	prelude := s.buf[s.pos : s.pos+preludeLen]
	total, headers := binary.BigEndian.Uint32(prelude), binary.BigEndian.Uint32(prelude[4:])
	// The checksum comes first: a length that is not right says nothing.
	if sum := crc32.ChecksumIEEE(prelude[:8]); sum != binary.BigEndian.Uint32(prelude[8:]) {
		return nil, nil, damaged("the checksum of a frame's lengths is wrong")
	}
	switch {
	case uint64(total) > uint64(s.max):
		return nil, nil, &wire.EventSizeError{Limit: s.max}
	case total < preludeLen+checksumLen:
		return nil, nil, damaged("a frame claims a length of %d bytes", total)
	case headers > total-preludeLen-checksumLen:
		return nil, nil, damaged("a frame of %d bytes claims %d bytes of headers", total, headers)
	}
	if err := s.fill(int(total)); err != nil {
		return nil, nil, err
	}
	frame := s.buf[s.pos : s.pos+int(total)]
	s.pos += int(total)
	body := frame[:len(frame)-checksumLen]
	if crc32.ChecksumIEEE(body) != binary.BigEndian.Uint32(frame[len(body):]) {
		return nil, nil, damaged("the checksum of a frame is wrong")
	}
	name, err = s.headers(body[preludeLen : preludeLen+headers])
	return name, body[preludeLen+headers:], err
}

func damaged(format string, args ...any) error {
	return &wire.FrameError{Problem: fmt.Sprintf(format, args...)}
}

// headers reads the headers of a frame and returns the event's type.
func (s *eventStream) headers(b []byte) (event []byte, err error) {
	for len(b) > 0 {
		n := int(b[0])
		if n == 0 || len(b) < 1+n+1 {
			return nil, damaged("a header has no name")
		}
		name, kind := b[1:1+n], b[1+n]
		b = b[n+2:]
		size, prefix := 0, 0
		switch kind {
		case 0, 1: // true, false
		case 2: // byte
			size = 1
		case 3: // short
			size = 2
		case 4: // integer
			size = 4
		case 5, 8: // long, timestamp
			size = 8
		case 9: // UUID
			size = 16
		case 6, 7: // bytes, string
			if len(b) < 2 {
				return nil, damaged("the header %q is cut off", name)
			}
			size, prefix = int(binary.BigEndian.Uint16(b)), 2
		default:
			return nil, damaged("the header %q has the unknown type %d", name, kind)
		}
		if len(b) < prefix+size {
			return nil, damaged("the header %q is cut off", name)
		}
		value := b[prefix : prefix+size]
		b = b[prefix+size:]
		if kind != 7 {
			continue
		}
		switch string(name) {
		case ":event-type":
			event = value
		case ":message-type":
			s.messageType = value
		case ":exception-type":
			s.exceptionType = value
		case ":error-code":
			s.errorCode = value
		case ":error-message":
			s.errorMessage = value
		}
	}
	return event, nil
}

// fill makes at least n unread bytes available. Memory grows with what has
// come, not with what a length claims.
func (s *eventStream) fill(n int) error {
	empty := 0
	for s.end-s.pos < n {
		if s.err != nil {
			if errors.Is(s.err, io.EOF) && s.end > s.pos {
				return &wire.ConnectionError{Cause: fmt.Errorf("connection closed by the server in the middle of an event: %w", io.ErrUnexpectedEOF)}
			}
			return s.err
		}
		s.room()
		read, err := s.src.Read(s.buf[s.end:])
		s.end += read
		s.err = err
		if read > 0 {
			empty = 0
		} else if empty++; empty > maxEmpty && err == nil {
			s.err = io.ErrNoProgress
		}
	}
	return nil
}

// room makes place behind the unread bytes.
func (s *eventStream) room() {
	if s.pos == s.end {
		s.pos, s.end = 0, 0
	}
	if s.end < len(s.buf) && s.pos == 0 {
		return
	}
	if len(s.buf)-s.end >= len(s.buf)/2 && len(s.buf) > 0 {
		return
	}
	if s.end-s.pos > len(s.buf)/2 || len(s.buf) == 0 {
		grown := make([]byte, max(firstBuffer, 2*len(s.buf)))
		s.end = copy(grown, s.buf[s.pos:s.end])
		s.buf, s.pos = grown, 0
		return
	}
	s.end = copy(s.buf, s.buf[s.pos:s.end])
	s.pos = 0
}
