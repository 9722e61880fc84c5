package session

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// Version is the version of the format that this package writes.
const Version = 3

// Header is the first line of a log.
type Header struct {
	ID            string
	Timestamp     string // when the session began, ISO 8601 in UTC
	CWD           string // working directory; "" in some old files
	ParentSession string // path of the session this one was forked from; "" for none
	// Raw is the line as it is in the log, with members that this version does
	// not know.
	Raw jsontext.Value
}

func newHeader(id string, now time.Time, cwd, parent string) Header {
	h := Header{ID: id, Timestamp: timestamp(now), CWD: cwd, ParentSession: parent}
	o := jsonwire.Begin(nil)
	o.Text("type", "session")
	o.Int("version", Version)
	o.Text("id", id)
	o.Text("timestamp", h.Timestamp)
	o.Text("cwd", cwd)
	o.OptText("parentSession", parent)
	h.Raw = o.End()
	return h
}

// ParseHeader reads a log's first line; ok is false when it is no header.
func ParseHeader(raw []byte) (h Header, ok bool) {
	var r jsonwire.Reader
	r.Reset(raw)
	if r.Kind() != '{' {
		return h, false
	}
	typed, hasID := false, false
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "type":
			typed = string(r.String()) == "session"
		case "id":
			hasID = r.Kind() == '"'
			h.ID = r.Text()
		case "timestamp":
			h.Timestamp = r.Text()
		case "cwd":
			h.CWD = r.Text()
		case "parentSession":
			h.ParentSession = r.Text()
		default:
			r.Skip()
		}
	}
	h.Raw = raw
	return h, r.End() == nil && typed && hasID
}

// timestamp is the form of times in logs.
func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
