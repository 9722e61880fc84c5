package wire

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

type sseEvent struct{ name, data string }

func readAll(src io.Reader, limit int) (events []sseEvent, err error) {
	var s SSE
	s.Reset(src)
	if limit > 0 {
		s.max = limit
	}
	for {
		name, data, err := s.Next()
		if err != nil {
			return events, err
		}
		events = append(events, sseEvent{string(name), string(data)})
	}
}

func TestSSE(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []sseEvent
	}{
		{"empty", "", nil},
		{"line feeds", "event: a\ndata: 1\n\ndata: 2\n\n", []sseEvent{{"a", "1"}, {"", "2"}}},
		{"carriage returns", "event: a\rdata: 1\r\rdata: 2\r\r", []sseEvent{{"a", "1"}, {"", "2"}}},
		{"both", "event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", []sseEvent{{"a", "1"}, {"", "2"}}},
		{"mixed", "event: a\rdata: 1\n\r\ndata: 2\r\n\n", []sseEvent{{"a", "1"}, {"", "2"}}},
		{"comments", ": hi\n\n:\ndata: 1\n: in between\ndata: 2\n\n", []sseEvent{{"", "1\n2"}}},
		{"several data lines", "data: a\ndata\ndata:  b\n\n", []sseEvent{{"", "a\n\n b"}}},
		{"no space", "data:x\n\n", []sseEvent{{"", "x"}}},
		{"other fields", "id: 7\nretry: 3\ndata: x\n\nid: 8\n\n", []sseEvent{{"", "x"}}},
		{"name alone", "event: ping\n\n", []sseEvent{{"ping", ""}}},
		{"last name counts", "event: a\nevent: b\ndata: x\n\n", []sseEvent{{"b", "x"}}},
		{"no empty line at the end", "data: x\n", []sseEvent{{"", "x"}}},
		{"no line end at the end", "data: x", []sseEvent{{"", "x"}}},
		{"byte order mark", "\uFEFFdata: x\n\n", []sseEvent{{"", "x"}}},
		{"mark in the middle", "data: \uFEFFx\n\n", []sseEvent{{"", "\uFEFFx"}}},
		{"invalid UTF-8", "data: a\xF0\x9F\x99b\xFF\n\n", []sseEvent{{"", "a\uFFFDb\uFFFD"}}},
		{"invalid over lines", "data: \xF0\x9F\ndata: \x99\x88\n\n", []sseEvent{{"", "\uFFFD\n\uFFFD\uFFFD"}}},
		{"characters", "data: Größe 🙈\n\n", []sseEvent{{"", "Größe 🙈"}}},
		{"null byte", "data: \x00\n\n", []sseEvent{{"", "\x00"}}},
		{"colon in data", "data: a: b\n\n", []sseEvent{{"", "a: b"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for how, src := range map[string]io.Reader{
				"at once":              strings.NewReader(c.in),
				"bytes":                iotest.OneByteReader(strings.NewReader(c.in)),
				"halves":               iotest.HalfReader(strings.NewReader(c.in)),
				"data and end at once": iotest.DataErrReader(strings.NewReader(c.in)),
			} {
				got, err := readAll(src, 0)
				if !errors.Is(err, io.EOF) || !slices.Equal(got, c.want) {
					t.Errorf("%s: got %q, %v, want %q", how, got, err, c.want)
				}
			}
		})
	}
}

// A long event that is still on its way is no silence; keep-alives are, however
// many come.
func TestSSETellsOfLongLines(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want bool
	}{
		"one long event":  {"data: " + strings.Repeat("x", 4*longLine) + "\n\n", true},
		"its second line": {"data: a\ndata: " + strings.Repeat("x", 4*longLine) + "\n\n", true},
		"short events":    {strings.Repeat("data: {\"type\":\"ping\"}\n\n", longLine), false},
		"comments":        {strings.Repeat(": keep-alive\n\n", longLine), false},
		"a long comment":  {":" + strings.Repeat("x", 4*longLine) + "\n\n", false},
	} {
		calls := 0
		var s SSE
		s.Reset(iotest.OneByteReader(strings.NewReader(c.in)))
		s.arrives = func() { calls++ }
		for {
			if _, _, err := s.Next(); err != nil {
				break
			}
		}
		if (calls > 0) != c.want {
			t.Errorf("%s: told %d times", name, calls)
		}
	}
}

// An event must not wait for the line feed that may follow a carriage return.
func TestSSEDoesNotWaitBehindCarriageReturn(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	go io.WriteString(w, "data: x\r\r")
	var s SSE
	s.Reset(r)
	if _, data, err := s.Next(); err != nil || string(data) != "x" {
		t.Fatalf("got %q, %v", data, err)
	}
	go io.WriteString(w, "\ndata: y\n\n")
	if _, data, err := s.Next(); err != nil || string(data) != "y" {
		t.Fatalf("got %q, %v", data, err)
	}
}

func TestSSELimits(t *testing.T) {
	long := "data: " + strings.Repeat("x", 3*firstBuffer) + "\n\n"
	got, err := readAll(strings.NewReader(long+"data: y\n\n"), 0)
	if !errors.Is(err, io.EOF) || len(got) != 2 || len(got[0].data) != 3*firstBuffer || got[1].data != "y" {
		t.Errorf("%d events, %v", len(got), err)
	}
	_, err = readAll(strings.NewReader("data: 1\n\n"+long), 2*firstBuffer)
	var size *EventSizeError
	if !errors.As(err, &size) {
		t.Errorf("got %v, want an *EventSizeError", err)
	}
	// Comments without end are dropped, not kept.
	comments := io.MultiReader(strings.NewReader(strings.Repeat(": keep-alive\n", 100_000)), strings.NewReader("data: z\n\n"))
	if got, err := readAll(comments, 4*maxPreamble); !errors.Is(err, io.EOF) || len(got) != 1 || got[0].data != "z" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestSSEBreaksOff(t *testing.T) {
	broken := errors.New("broken")
	got, err := readAll(io.MultiReader(strings.NewReader("data: 1\n\ndata: 2\n"), iotest.ErrReader(broken)), 0)
	if !errors.Is(err, broken) || len(got) != 1 {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := readAll(emptyReader{}, 0); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("got %v, want io.ErrNoProgress", err)
	}
}

type emptyReader struct{}

func (emptyReader) Read([]byte) (int, error) { return 0, nil }

func TestSSERaw(t *testing.T) {
	var s SSE
	s.Reset(strings.NewReader("data: 0\n\n: note\r\nevent: a\r\ndata: \xFF\r\n\r\nrest"))
	s.Next()
	if _, _, err := s.Next(); err != nil {
		t.Fatal(err)
	}
	if got, want := s.Raw(`\n`), `: note\nevent: a\ndata: `+"\uFFFD"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSSEAllocations(t *testing.T) {
	body := []byte(strings.Repeat("event: a\ndata: {\"x\":\"ü\"}\n\n", 5000))
	var s SSE
	src := bytes.NewReader(body)
	allocs := testing.AllocsPerRun(5, func() {
		src.Reset(body)
		s.Reset(src)
		for {
			if _, _, err := s.Next(); err != nil {
				break
			}
		}
	})
	if allocs > 5 {
		t.Errorf("%v allocations for 5000 events", allocs)
	}
}

func FuzzSSE(f *testing.F) {
	for _, seed := range []string{
		"event: a\ndata: 1\n\n", "data: a\rdata: b\r\r\n\n", ":c\n\n\uFEFFdata:\xF0\x9F\x99", "\uFEFFevent: x\r\n\r\ndata", "\r\n\r\r\n:\xff\n",
	} {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, body []byte, step int) {
		// However the bytes arrive, the events are the same.
		whole, err := readAll(bytes.NewReader(body), 0)
		pieces, err2 := readAll(&stepReader{bytes.NewReader(body), max(1, step%17)}, 0)
		if !errors.Is(err, io.EOF) || !errors.Is(err2, io.EOF) || !slices.Equal(whole, pieces) {
			t.Fatalf("%q %v\n%q %v", whole, err, pieces, err2)
		}
	})
}

type stepReader struct {
	r io.Reader
	n int
}

func (s *stepReader) Read(p []byte) (int, error) { return s.r.Read(p[:min(len(p), s.n)]) }
