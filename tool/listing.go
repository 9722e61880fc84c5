package tool

import (
	"bytes"
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// listing is a result of many lines, of which only as much is kept as can be
// shown.
type listing struct {
	text  []byte // the first lines, joined by line feeds
	whole extent // of all lines
	lines int
	room  int // bytes of text that are kept; 0 for just enough to show
}

// add appends lines that are joined by line feeds. extent is that of all of
// them; text may be the first part of it that is over MaxBytes.
func (l *listing) add(text []byte, e extent) {
	if l.lines > 0 {
		l.whole.bytes++
		l.whole.newlines++
		l.keep(lf)
	}
	l.lines += e.newlines + 1
	l.whole.bytes += e.bytes
	l.whole.newlines += e.newlines
	l.keep(text)
}

func (l *listing) keep(text []byte) {
	if room := cmp.Or(l.room, MaxBytes+1) - len(l.text); room > 0 {
		l.text = append(l.text, text[:min(room, len(text))]...)
	}
}

func (l *listing) line(text []byte) {
	l.add(text, extent{bytes: int64(len(text)), newlines: bytes.Count(text, lf)})
}

// note is something to be said about a result: to the model, and to programs.
type note struct {
	text   string
	detail string // a member of the details
	value  string // in JSON
}

// result shows the listing with notes below it. What the number of bytes gives
// to say stands between those before and after.
func (l *listing) result(before, after []note) agent.Result {
	t := truncateHeadTo(l.text, l.whole, anyLines)
	notes := before
	if t.truncated {
		notes = append(notes, note{sizeText(MaxBytes) + " limit reached", "truncation", string(t.appendJSON(nil))})
	}
	notes = append(notes, after...)
	if len(notes) == 0 {
		return agent.TextResult(t.content)
	}
	var texts []string
	var details []byte
	for i, n := range notes {
		texts = append(texts, n.text)
		details = append(details, "{,"[min(i, 1)])
		details = append(jsonwire.AppendString(details, n.detail), ':')
		details = append(details, n.value...)
	}
	r := agent.TextResult(t.content + "\n\n[" + strings.Join(texts, ". ") + "]")
	r.Details = append(details, '}')
	return r
}

// limitNote says that there are more things than the limit, and how to get on.
func limitNote(limit int, things, otherwise, detail string) note {
	n := strconv.Itoa(limit)
	return note{n + " " + things + " limit reached. Use limit=" + strconv.Itoa(2*limit) + " for more" + otherwise, detail, n}
}

// limitArg is a number of things to show, at least one.
func limitArg(args jsontext.Value, standard int) int {
	return max(1, numberArg(args, "limit", standard))
}

// numberArg is a whole number of a call, cut to an integer, bounded.
func numberArg(args jsontext.Value, name string, standard int) int {
	v := jsontext.Value(jsonwire.Get(args, name))
	if v.Kind() != '0' {
		return standard
	}
	var r jsonwire.Reader
	r.Reset(v)
	return int(math.Max(0, math.Min(math.Floor(r.Float()), math.MaxInt32)))
}

func textArg(args jsontext.Value, name string) string {
	s, _ := jsonwire.StringValue(jsonwire.Get(args, name))
	return jsonwire.ToValidUTF8(s)
}

func boolArg(args jsontext.Value, name string) bool {
	v := jsontext.Value(jsonwire.Get(args, name))
	return len(v) > 0 && v.Kind() == 't'
}
