// Package stats sums up what the conversations of a folder of sessions cost:
// tokens and money by day, model, project and session. It reads session files
// line by line and keeps the sums alone, and eight bytes for each answer, by
// which it knows the copies that forks hold.
package stats

import (
	"bufio"
	"bytes"
	"errors"
	"hash/maphash"
	"io"
	"strconv"
	"time"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

// file is what a session file says of itself.
type file struct {
	path, id, name, cwd string
}

// record is a usage that an entry of a session reports.
type record struct {
	key    uint64 // the same for copies of the entry in other files
	at     int64  // Unix milliseconds; 0 when the entry has no time
	answer bool   // of a model in the conversation, not of a summary or a tool
	model  string // provider/model; "" when the entry does not say
	sum    Sum
}

// reader reads the usages of session files, one file after the other.
type reader struct {
	seed maphash.Seed
	in   *bufio.Reader
	line []byte
	hash []byte
	r    jsonwire.Reader
	u    jsonwire.Reader
	// models holds the names that were met, so that records share them.
	models map[string]string
}

func newReader(seed maphash.Seed) *reader {
	return &reader{seed: seed, in: bufio.NewReaderSize(nil, 256<<10), models: map[string]string{}}
}

// maxLine is the longest line that is read, in bytes. Answers are shorter; a
// tool's result with pictures may be longer and is passed over.
const maxLine = 32 << 20

// What a line must contain to be worth reading. Names and models make short lines.
var (
	hasUsage = []byte(`"usage"`)
	hasModel = []byte(`"model_change"`)
	hasName  = []byte(`"session_info"`)
)

const maxShort = 16 << 10 // bytes

// read hands over the usages of a log. ok is false for what is no session.
func (rd *reader) read(log io.Reader, each func(*record)) (f file, ok bool, err error) {
	rd.in.Reset(log)
	began := false
	model := "" // that summaries are made by
	for {
		line, err := rd.next()
		if err == io.EOF {
			return f, began, nil
		}
		if err != nil {
			return f, false, err
		}
		if !began {
			line = bytes.TrimSpace(line)
			if !session.Counts(line) {
				continue
			}
			h, ok := session.ParseHeader(line)
			if !ok {
				return f, false, nil
			}
			began = true
			f.id, f.cwd = h.ID, h.CWD
			continue
		}
		if bytes.Contains(line, hasUsage) || len(line) <= maxShort && (bytes.Contains(line, hasModel) || bytes.Contains(line, hasName)) {
			rd.entry(line, &f, &model, each)
		}
	}
}

// next is the next line; one that is too long reads as empty.
func (rd *reader) next() ([]byte, error) {
	line, err := rd.in.ReadSlice('\n')
	if err == nil || err == io.EOF && len(line) > 0 {
		return line, nil
	}
	if !errors.Is(err, bufio.ErrBufferFull) {
		return nil, err
	}
	rd.line = append(rd.line[:0], line...)
	for long := false; ; {
		line, err = rd.in.ReadSlice('\n')
		if long = long || len(rd.line)+len(line) > maxLine; long {
			rd.line = rd.line[:0]
		} else {
			rd.line = append(rd.line, line...)
		}
		switch {
		case err == nil || err == io.EOF:
			return rd.line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// entryText is what a line says that counts, each part as JSON.
type entryText struct {
	typ                     session.Type
	id, stamp               []byte
	message, usage          []byte
	name, provider, modelID []byte
}

// read takes a line apart, and reports whether it is whole.
func (e *entryText) read(r *jsonwire.Reader, line []byte) bool {
	r.Reset(line)
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "type":
			e.typ = session.Type(r.String())
		case "id":
			e.id = r.Raw()
		case "timestamp":
			e.stamp = r.Raw()
		case "message":
			e.message = r.Raw()
		case "usage":
			e.usage = r.Raw()
		case "name":
			e.name = r.Raw()
		case "provider":
			e.provider = r.Raw()
		case "model", "modelId":
			e.modelID = r.Raw()
		default:
			r.Skip()
		}
	}
	return r.End() == nil
}

// readMessage takes the message apart, whose usage and model count, and gives
// its role and time.
func (e *entryText) readMessage(r *jsonwire.Reader) (role llm.Role, at int64) {
	r.Reset(e.message)
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "role":
			role = llm.Role(r.String())
		case "usage":
			e.usage = r.Raw()
		case "provider":
			e.provider = r.Raw()
		case "model":
			e.modelID = r.Raw()
		case "timestamp":
			at = r.Int()
		default:
			r.Skip()
		}
	}
	return role, at
}

func (rd *reader) entry(line []byte, f *file, model *string, each func(*record)) {
	var e entryText
	if !e.read(&rd.r, line) {
		return
	}
	rec := record{}
	switch e.typ {
	case session.TypeInfo:
		text, _ := jsonwire.StringValue(e.name)
		f.name = jsonwire.Trim(text)
		return
	case session.TypeModelChange:
		*model = rd.model(e.provider, e.modelID)
		return
	case session.TypeMessage:
		var role llm.Role
		role, rec.at = e.readMessage(&rd.r)
		switch role {
		case llm.RoleAssistant:
			rec.answer = true
			rec.model = rd.model(e.provider, e.modelID)
			*model = rec.model
		case llm.RoleToolResult: // whose model nobody wrote down
		default:
			return
		}
	case session.TypeUsage:
		rec.model = rd.model(e.provider, e.modelID)
	case session.TypeCompaction, session.TypeBranchSummary:
		rec.model = *model
	default:
		return
	}
	if len(e.usage) == 0 || e.usage[0] != '{' {
		return
	}
	if rec.at <= 0 {
		text, _ := jsonwire.StringValue(e.stamp)
		if t, err := time.Parse(time.RFC3339, text); err == nil {
			rec.at = t.UnixMilli()
		}
	}
	rd.u.Reset(e.usage)
	u := llm.ReadUsage(&rd.u)
	rec.sum = sumOf(&u, rec.answer)
	h := append(append(rd.hash[:0], e.id...), e.stamp...)
	for _, n := range []int64{rec.at, u.Input, u.Output, u.CacheRead, u.CacheWrite, u.TotalTokens} {
		h = strconv.AppendInt(append(h, ','), n, 10)
	}
	h = append(append(h, ','), rec.model...)
	rd.hash = h
	rec.key = maphash.Bytes(rd.seed, h)
	each(&rec)
}

// model is provider/model for two JSON strings.
func (rd *reader) model(provider, id []byte) string {
	p, _ := jsonwire.StringValue(provider)
	m, _ := jsonwire.StringValue(id)
	if p == "" && m == "" {
		return ""
	}
	name := p + "/" + m
	if known, ok := rd.models[name]; ok {
		return known
	}
	rd.models[name] = name
	return name
}
