package session

import (
	"encoding/hex"
	"io"
	"time"
)

// ValidID reports whether a session may bear the id: letters, digits, dots,
// dashes and underscores, the first and the last a letter or digit.
func ValidID(id string) bool {
	alnum := func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
	}
	for i := range len(id) {
		c := id[i]
		if !alnum(c) && (c != '.' && c != '_' && c != '-' || i == 0 || i == len(id)-1) {
			return false
		}
	}
	return id != ""
}

// NewID makes a session id: a UUID of version 7, so that ids sort by time.
func NewID(now time.Time, random io.Reader) (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", &Error{Kind: IO, Op: "make a session id", Err: err}
	}
	ms := uint64(now.UnixMilli())
	for i := range 6 {
		b[i] = byte(ms >> (40 - 8*i))
	}
	b[6] = b[6]&0x0F | 0x70
	b[8] = b[8]&0x3F | 0x80
	return uuid(b), nil
}

func uuid(b [16]byte) string {
	var out [36]byte
	hex.Encode(out[0:8], b[0:4])
	hex.Encode(out[9:13], b[4:6])
	hex.Encode(out[14:18], b[6:8])
	hex.Encode(out[19:23], b[8:10])
	hex.Encode(out[24:36], b[10:16])
	out[8], out[13], out[18], out[23] = '-', '-', '-', '-'
	return string(out[:])
}

// entryID draws an id that is not taken: eight hex digits, and after a hundred
// collisions a whole random UUID.
func entryID(random io.Reader, taken func(string) bool) (string, error) {
	var b [16]byte
	for range 100 {
		if _, err := io.ReadFull(random, b[:4]); err != nil {
			return "", &Error{Kind: IO, Op: "make an entry id", Err: err}
		}
		if id := hex.EncodeToString(b[:4]); !taken(id) {
			return id, nil
		}
	}
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", &Error{Kind: IO, Op: "make an entry id", Err: err}
	}
	b[6] = b[6]&0x0F | 0x40
	b[8] = b[8]&0x3F | 0x80
	return uuid(b), nil
}
