package bedrock

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/pinch-agent/pinch/internal/wire"
)

// frame encodes one event; headers are names and values in turn.
func frame(payload string, headers ...string) []byte {
	var h []byte
	for i := 0; i < len(headers); i += 2 {
		h = stringHeader(h, headers[i], headers[i+1])
	}
	return rawFrame(h, payload)
}

func stringHeader(h []byte, name, value string) []byte {
	h = append(append(h, byte(len(name))), name...)
	h = binary.BigEndian.AppendUint16(append(h, 7), uint16(len(value)))
	return append(h, value...)
}

func rawFrame(headers []byte, payload string) []byte {
	return lengths(uint32(preludeLen+len(headers)+len(payload)+checksumLen), uint32(len(headers)), append(headers, payload...))
}

// lengths is a frame that claims the given lengths.
func lengths(total, headers uint32, rest []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, total)
	b = binary.BigEndian.AppendUint32(b, headers)
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(b, rest...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

func event(name, payload string) []byte {
	return frame(payload, ":event-type", name, ":content-type", "application/json", ":message-type", "event")
}

// flipped is b with one bit changed.
func flipped(b []byte, at int) []byte {
	b = slices.Clone(b)
	b[at] ^= 0x10
	return b
}

func TestEventStream(t *testing.T) {
	other := []byte{
		1, 'a', 0, // true
		1, 'b', 1, // false
		1, 'c', 2, 9, // byte
		1, 'd', 3, 9, 9, // short
		1, 'e', 4, 9, 9, 9, 9, // integer
		1, 'f', 5, 9, 9, 9, 9, 9, 9, 9, 9, // long
		1, 'g', 6, 0, 2, 9, 9, // bytes
		1, 'h', 8, 9, 9, 9, 9, 9, 9, 9, 9, // timestamp
		1, 'i', 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, // UUID
	}
	good := event("messageStart", `{"role":"assistant"}`)
	for _, c := range []struct {
		name   string
		stream []byte
		want   string // name=payload of each event
		err    string // part of the error; "" for a good end
	}{
		{"empty", nil, "", ""},
		{"two", append(slices.Clone(good), event("messageStop", "{}")...), `messageStart={"role":"assistant"} messageStop={}`, ""},
		{"no payload", frame("", ":event-type", "x"), "x=", ""},
		{"no headers", frame("p"), "=p", ""},
		{"headers of every type", rawFrame(stringHeader(slices.Clone(other), ":event-type", "x"), "p"), "x=p", ""},
		{"name of another type", rawFrame(append([]byte{byte(len(":event-type"))}, ":event-type\x06\x00\x01x"...), "p"), "=p", ""},
		{"checksum of the lengths", flipped(good, 9), "", "checksum of a frame's lengths"},
		{"length changed", flipped(good, 2), "", "checksum of a frame's lengths"},
		{"header changed", flipped(good, 15), "", "checksum of a frame is wrong"},
		{"payload changed", flipped(good, len(good)-7), "", "checksum of a frame is wrong"},
		{"checksum changed", flipped(good, len(good)-1), "", "checksum of a frame is wrong"},
		{"too short", lengths(15, 0, nil), "", "claims a length of 15 bytes"},
		{"headers longer than the frame", lengths(20, 5, []byte("1234")), "", "claims 5 bytes of headers"},
		{"headers far longer", lengths(20, 0xFFFFFFFF, []byte("1234")), "", "claims 4294967295 bytes of headers"},
		{"longer than allowed", lengths(wire.MaxEvent+1, 0, nil), "", "longer than"},
		{"far longer than allowed", lengths(0xFFFFFFFF, 0, nil), "", "longer than"},
		{"claims more than comes", lengths(60<<20, 0, []byte("x")), "", "in the middle of an event"},
		{"cut in the lengths", good[:7], "", "in the middle of an event"},
		{"cut in the headers", good[:20], "", "in the middle of an event"},
		{"cut before the last byte", good[:len(good)-1], "", "in the middle of an event"},
		{"cut in the second", append(slices.Clone(good), good[:30]...), `messageStart={"role":"assistant"}`, "in the middle of an event"},
		{"header without a name", rawFrame([]byte{0, 7, 0, 0}, ""), "", "has no name"},
		{"header cut in its name", rawFrame([]byte{9, 'a'}, ""), "", "has no name"},
		{"header cut in its length", rawFrame([]byte{1, 'a', 7, 0}, ""), "", "is cut off"},
		{"header cut in its value", rawFrame([]byte{1, 'a', 7, 0, 3, 'x'}, ""), "", "is cut off"},
		{"header cut in its number", rawFrame([]byte{1, 'a', 5, 0, 3}, ""), "", "is cut off"},
		{"header of an unknown type", rawFrame([]byte{1, 'a', 10}, ""), "", "unknown type 10"},
		{"no frames", []byte(`{"message":"no such model"}`), "", "checksum of a frame's lengths"},
	} {
		for how, reader := range map[string]func(io.Reader) io.Reader{
			"at once": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader, "with the end": iotest.DataErrReader,
		} {
			t.Run(c.name+" "+how, func(t *testing.T) {
				var s eventStream
				s.Reset(reader(bytes.NewReader(c.stream)))
				var got []string
				var err error
				for {
					var name, data []byte
					if name, data, err = s.Next(); err != nil {
						break
					}
					got = append(got, string(name)+"="+string(data))
				}
				if g := strings.Join(got, " "); g != c.want {
					t.Errorf("got %s, want %s", g, c.want)
				}
				if c.err == "" && err != io.EOF || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want %s", err, c.err)
				}
				if _, _, again := s.Next(); again == nil {
					t.Error("an event behind the error")
				}
				if len(s.buf) > firstBuffer {
					t.Errorf("a buffer of %d bytes for a stream of %d", len(s.buf), len(c.stream))
				}
			})
		}
	}
}

func TestEventStreamErrors(t *testing.T) {
	read := func(b []byte, src func(io.Reader) io.Reader) error {
		var s eventStream
		s.Reset(src(bytes.NewReader(b)))
		for {
			if _, _, err := s.Next(); err != nil {
				return err
			}
		}
	}
	plain := func(r io.Reader) io.Reader { return r }
	good := event("x", "{}")
	var frameErr *wire.FrameError
	if err := read(flipped(good, 3), plain); !errors.As(err, &frameErr) {
		t.Errorf("a bad checksum is %T", err)
	}
	var size *wire.EventSizeError
	if err := read(lengths(wire.MaxEvent+1, 0, nil), plain); !errors.As(err, &size) || size.Limit != wire.MaxEvent {
		t.Errorf("a frame that is too long is %T", err)
	}
	var conn *wire.ConnectionError
	if err := read(good[:9], plain); !errors.As(err, &conn) {
		t.Errorf("a cut frame is %T", err)
	}
	own := errors.New("broken")
	if err := read(good[:9], func(r io.Reader) io.Reader { return io.MultiReader(r, iotest.ErrReader(own)) }); err != own {
		t.Errorf("an error of the connection is %v", err)
	}
	if err := read(good, func(io.Reader) io.Reader { return idle{} }); err != io.ErrNoProgress {
		t.Errorf("a reader that gives nothing is %v", err)
	}
}

type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

// Events of all sizes come whole, however the reads fall.
func TestEventStreamSizes(t *testing.T) {
	var stream []byte
	sizes := []int{0, 1, 100, 5_000, 16_000, 17_000, 3, 40_000, 200_000, 2, 1, 90_000, 30}
	for _, n := range sizes {
		stream = append(stream, event("x", strings.Repeat("a", n))...)
	}
	for _, step := range []int{1, 7, 1000, 4096, 1 << 20} {
		var s eventStream
		s.Reset(&stepped{stream, step})
		for _, n := range sizes {
			name, data, err := s.Next()
			if err != nil || string(name) != "x" || len(data) != n || strings.Count(string(data), "a") != n {
				t.Fatalf("reads of %d: an event of %d bytes comes as %q, %d bytes, %v", step, n, name, len(data), err)
			}
		}
		if _, _, err := s.Next(); err != io.EOF {
			t.Fatal(err)
		}
		if len(s.buf) > 1<<19 {
			t.Errorf("reads of %d: a buffer of %d bytes", step, len(s.buf))
		}
	}
}

type stepped struct {
	b []byte
	n int
}

func (s *stepped) Read(p []byte) (int, error) {
	if len(s.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.b[:min(s.n, len(s.b))])
	s.b = s.b[n:]
	return n, nil
}

// FuzzEventStream reads arbitrary bytes: whatever comes out must be what a frame
// of the bytes says, in order, and nothing may be made up.
func FuzzEventStream(f *testing.F) {
	f.Add(event("messageStart", `{"role":"assistant"}`))
	f.Add(append(event("a", "1"), event("b", "2")...))
	f.Add(frame(`{"message":"m"}`, ":message-type", "exception", ":exception-type", "throttlingException"))
	f.Add(lengths(60<<20, 4, []byte("x")))
	f.Add(lengths(16, 0xFFFFFFF0, nil))
	f.Add(flipped(event("x", "y"), 40))
	f.Add(rawFrame([]byte{1, 'a', 9}, ""))
	f.Add(event("x", "y")[:20])
	f.Add([]byte(`{"message":"no such model"}`))
	f.Fuzz(func(t *testing.T, stream []byte) {
		var s eventStream
		s.Reset(&stepped{slices.Clone(stream), 11})
		at := 0
		for {
			name, data, err := s.Next()
			if err != nil {
				if err == io.EOF && at != len(stream) {
					t.Fatalf("%d bytes are passed over", len(stream)-at)
				}
				break
			}
			total := int(binary.BigEndian.Uint32(stream[at:]))
			whole := stream[at : at+total]
			if crc32.ChecksumIEEE(whole[:total-4]) != binary.BigEndian.Uint32(whole[total-4:]) {
				t.Fatal("a wrong checksum is accepted")
			}
			if !bytes.HasSuffix(whole[:total-4], data) || !bytes.Contains(whole, name) {
				t.Fatal("an event that no frame holds")
			}
			at += total
		}
		if len(s.buf) > max(firstBuffer, 4*len(stream)) {
			t.Fatalf("a buffer of %d bytes for %d", len(s.buf), len(stream))
		}
	})
}
