package session

import (
	"bufio"
	"errors"
	"io"
	"time"
	"unicode/utf8"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// Info is what a list of sessions shows of one.
type Info struct {
	Path          string
	ID            string
	CWD           string // working directory; "" in some old files
	Name          string // that the user gave; "" for none
	ParentSession string // path of the session this one was forked from; "" for none
	Created       time.Time
	Modified      time.Time // of the newest user or assistant message, else Created
	MessageCount  int       // of messages of any role
	FirstMessage  string    // first text of the user, or NoMessages
	Text          string    // of all user and assistant messages, for searching
}

// NoMessages stands for the first message of a session in which the user said
// nothing.
const NoMessages = "(no messages)"

// InfoReader reads the Info of logs, one after the other. It keeps one line in
// memory. The zero InfoReader is ready.
type InfoReader struct {
	// MaxLine is the longest line that is read, in bytes; 0 for 32 MiB, more
	// than messages with pictures take. Longer ones are passed over: a list,
	// which reads several logs at once, must not fill the memory.
	MaxLine int
	NoText  bool // leave Info.Text empty
	// MaxFirst is how much of Info.FirstMessage is kept, in bytes, less the rest
	// of a character; 0 for all.
	MaxFirst int

	in     bufio.Reader
	line   []byte
	r      jsonwire.Reader
	text   []byte // of the messages so far
	newest int64  // Unix milliseconds of the newest message
}

// maxHeader is how far into a log its header must end for a list to show it, in
// bytes.
const maxHeader = 1 << 20

// Read reads a log. ok is false when it does not begin with a header, or when
// that does not end within the first MiB. modified stands in for a log that
// holds no time.
func (ir *InfoReader) Read(log io.Reader, modified time.Time) (info Info, ok bool, err error) {
	ir.in.Reset(log)
	SkipMark(&ir.in)
	ir.text, ir.newest = ir.text[:0], 0
	limit := ir.MaxLine
	if limit <= 0 {
		limit = 32 << 20
	}
	began := false
	room := maxHeader // what the header may still take
	for {
		longest := limit
		if !began {
			longest = min(limit, room)
		}
		line, n, err := ir.next(longest)
		if err == io.EOF {
			break
		}
		if err != nil {
			return Info{}, false, err
		}
		if !began {
			if room -= n; room < 0 {
				return Info{}, false, nil
			}
			if !truthy(line) {
				continue
			}
			h, ok := ParseHeader(line)
			if !ok {
				return Info{}, false, nil
			}
			began = true
			info.ID, info.CWD, info.ParentSession = h.ID, h.CWD, h.ParentSession
			info.Created = parseTime(h.Timestamp)
			continue
		}
		ir.entry(line, &info)
	}
	if !began {
		return Info{}, false, nil
	}
	if !ir.NoText {
		info.Text = string(ir.text)
	}
	if info.FirstMessage == "" {
		info.FirstMessage = NoMessages
	}
	switch {
	case ir.newest > 0:
		info.Modified = time.UnixMilli(ir.newest).UTC()
	case !info.Created.IsZero():
		info.Modified = info.Created
	default:
		info.Modified = modified
	}
	return info, true, nil
}

// next is the next line without white space around, and its length with all.
// One that is longer than limit reads as empty.
func (ir *InfoReader) next(limit int) (line []byte, n int, err error) {
	ir.line = ir.line[:0]
	for {
		part, err := ir.in.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && err != io.EOF {
			return nil, n, err
		}
		first := n == 0
		n += len(part)
		switch {
		case n > limit:
			ir.line = nil
		case err == nil && first:
			return trimLine(part), n, nil
		default:
			ir.line = append(ir.line, part...)
		}
		switch {
		case err == io.EOF && n == 0:
			return nil, 0, io.EOF
		case err == nil || err == io.EOF:
			return trimLine(ir.line), n, nil
		}
	}
}

// SkipMark goes past the byte order mark that a log may begin with, to where
// its lines are. A failure to read shows at the next read.
func SkipMark(log *bufio.Reader) {
	if mark, _ := log.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		log.Discard(len(mark))
	}
}

func trimLine(b []byte) []byte {
	for len(b) > 0 && (jsonSpace(b[len(b)-1]) || b[len(b)-1] == '\n') {
		b = b[:len(b)-1]
	}
	for len(b) > 0 && jsonSpace(b[0]) {
		b = b[1:]
	}
	return b
}

// entry adds what a line says to the info.
func (ir *InfoReader) entry(line []byte, info *Info) {
	if len(line) == 0 || line[0] != '{' {
		return
	}
	r := &ir.r
	r.Reset(line)
	isMessage, isInfo := false, false
	var message, name, stamp []byte
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "type":
			typ := r.String()
			isMessage, isInfo = string(typ) == string(TypeMessage), string(typ) == string(TypeInfo)
		case "message":
			message = r.Raw()
		case "name":
			name = r.Raw()
		case "timestamp":
			stamp = r.Raw()
		default:
			r.Skip()
		}
	}
	switch {
	case r.End() != nil:
	case isInfo:
		text, _ := jsonwire.StringValue(name)
		info.Name = jsonwire.Trim(text)
	case isMessage:
		info.MessageCount++
		ir.message(message, stamp, info)
	}
}

func (ir *InfoReader) message(raw, stamp []byte, info *Info) {
	r := &ir.r
	r.Reset(raw)
	var content []byte
	at := int64(-1)
	known, byUser := false, false
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "role":
			role := r.String()
			byUser = string(role) == string(llm.RoleUser)
			if known = byUser || string(role) == string(llm.RoleAssistant); !known {
				return
			}
		case "content":
			content = r.Raw()
		case "timestamp":
			if r.Kind() == '0' {
				at = r.Int()
			} else {
				r.Skip()
			}
		default:
			r.Skip()
		}
	}
	if !known {
		return
	}
	if at < 0 {
		text, _ := jsonwire.StringValue(stamp)
		if t := parseTime(text); !t.IsZero() {
			at = t.UnixMilli()
		}
	}
	ir.newest = max(ir.newest, at)
	if ir.NoText {
		if !byUser || info.FirstMessage != "" {
			return
		}
		ir.text = ir.text[:0]
	}
	start := len(ir.text)
	if start > 0 {
		ir.text = append(ir.text, ' ')
	}
	from := len(ir.text)
	ir.text = appendContent(ir.text, r, content)
	if len(ir.text) == from {
		ir.text = ir.text[:start]
	} else if info.FirstMessage == "" && byUser {
		first := ir.text[from:]
		if n := ir.MaxFirst; n > 0 && n < len(first) {
			for n > 0 && !utf8.RuneStart(first[n]) {
				n--
			}
			first = first[:n]
		}
		info.FirstMessage = string(first)
	}
}

// appendContent appends the text of a message's content, blocks joined by a
// space.
func appendContent(dst []byte, r *jsonwire.Reader, content []byte) []byte {
	r.Reset(content)
	if r.Kind() != '[' {
		return append(dst, r.String()...)
	}
	first := true
	for r.Array(); r.More(); {
		isText := false
		var text []byte
		for r.Object(); r.More(); {
			switch string(r.Key()) {
			case "type":
				isText = string(r.String()) == "text"
			case "text":
				text = r.Raw()
			default:
				r.Skip()
			}
		}
		if !isText {
			continue
		}
		if !first {
			dst = append(dst, ' ')
		}
		first = false
		var t jsonwire.Reader
		t.Reset(text)
		dst = append(dst, t.String()...)
	}
	return dst
}
