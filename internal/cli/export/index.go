package export

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

// index writes a row for each entry, in the order of the entries:
//
//	[id, parent, kind, time, size, text, refs]
//
// parent is the number of the parent's row, -1 for none; kind is the role of a
// message or the type of an entry; time is in Unix milliseconds, 0 for unknown;
// size is that of the entry in bytes; text begins what it says. refs depend on
// the kind: the ids of an answer's calls, the call of a result, the target of
// a label and its text, the target of an edit; 0 hides a message of an
// extension.
func (p *page) index() {
	at := make(map[string]int, len(p.entries))
	for i, e := range p.entries {
		if e.ID != "" {
			at[e.ID] = i
		}
	}
	p.w.WriteString("[\n")
	for i, e := range p.entries {
		parent, ok := at[e.ParentID]
		if !ok || e.ParentID == "" || parent == i {
			parent = -1
		}
		r := p.row(e)
		b := append(p.scratch[:0], '[')
		b = jsonwire.AppendString(b, e.ID)
		b = strconv.AppendInt(append(b, ','), int64(parent), 10)
		b = jsonwire.AppendString(append(b, ','), r.kind)
		ms := int64(0)
		if t := e.Time(); !t.IsZero() {
			ms = t.UnixMilli()
		}
		b = strconv.AppendInt(append(b, ','), ms, 10)
		b = strconv.AppendInt(append(b, ','), int64(len(e.Raw())), 10)
		b = jsonwire.AppendString(append(b, ','), r.text)
		switch {
		case r.hidden:
			b = append(b, ",0"...)
		case len(r.refs) > 0:
			b = jsonwire.AppendStrings(append(b, ','), r.refs)
		}
		b = append(b, ']')
		p.scratch = b
		p.json(b)
		if i+1 < len(p.entries) {
			p.w.WriteByte(',')
		}
		p.w.WriteByte('\n')
	}
	p.w.WriteString("]\n")
}

// row is what the index says of an entry.
type row struct {
	kind   string
	text   string // at most previewLen characters, on one line
	refs   []string
	hidden bool
	model  string // that answered, as provider/id
	raw    []byte
}

const previewLen = 100

// row reads an entry without decoding it for good: the session would keep what
// it decodes.
func (p *page) row(e *session.Entry) row {
	x := row{kind: string(e.Type), raw: e.Raw()}
	if e.Type == session.TypeMessage {
		x.kind = string(e.Role())
		x.raw = jsonwire.Get(x.raw, "message")
	}
	var provider, model, name, value, custom string
	r := &p.r
	r.Reset(x.raw)
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "content":
			if e.Role() == llm.RoleToolResult { // found by its call
				r.Skip()
			} else {
				x.content(r)
			}
		case "summary", "command", "thinkingLevel":
			x.text = opening(r)
		case "customType":
			custom = opening(r)
		case "provider":
			provider = scalar(r)
		case "model", "modelId":
			model = scalar(r)
		case "toolName", "name":
			name = opening(r)
		case "toolCallId", "targetId":
			x.refs = append(x.refs, scalar(r))
		case "label":
			value = opening(r)
		case "display":
			x.hidden = !r.Bool()
		default:
			r.Skip()
		}
	}
	if model != "" && provider != "" {
		model = provider + "/" + model
	}
	switch {
	case e.Role() == llm.RoleAssistant:
		x.model = model
	case e.Role() == llm.RoleToolResult, e.Type == session.TypeInfo:
		x.text = name
	case e.Type == session.TypeModelChange:
		x.text = preview([]byte(model))
	case e.Type == session.TypeLabel:
		x.text = value
	case x.text == "":
		x.text = custom
	}
	x.hidden = x.hidden && (e.Type == session.TypeCustomMessage || e.Role() == session.RoleCustom)
	return x
}

// content reads the content of a message: its first text and the ids of its
// calls.
func (x *row) content(r *jsonwire.Reader) {
	if r.Kind() == '"' {
		x.text = opening(r)
		return
	}
	for r.Array(); r.More(); {
		var typ, text, id string
		for r.Object(); r.More(); {
			switch string(r.Key()) {
			case "type":
				typ = scalar(r)
			case "text":
				text = opening(r)
			case "id":
				id = scalar(r)
			default:
				r.Skip()
			}
		}
		switch {
		case typ == "text" && x.text == "":
			x.text = text
		case typ == "toolCall":
			x.refs = append(x.refs, id)
		}
	}
}

// said is all of the texts of a message, cut at a number of bytes.
func (x row) said(limit int) string {
	var out []byte
	add := func(s []byte) {
		if len(out) > 0 && len(s) > 0 {
			out = append(out, "\n\n"...)
		}
		out = append(out, cut(s, max(0, limit-len(out)))...)
	}
	var r jsonwire.Reader
	r.Reset(jsonwire.Get(x.raw, "content"))
	if r.Kind() == '"' {
		add(r.String())
	} else {
		for r.Array(); r.More(); {
			block := r.Raw()
			if text, ok := jsonwire.StringValue(jsonwire.Get(block, "text")); ok {
				add([]byte(text))
			}
		}
	}
	return string(out)
}

func cut(s []byte, n int) []byte {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// scalar reads a string; other kinds read as "".
func scalar(r *jsonwire.Reader) string {
	if r.Kind() != '"' {
		r.Skip()
		return ""
	}
	return string(r.String())
}

// opening is the preview of a string; other kinds read as "".
func opening(r *jsonwire.Reader) string {
	if r.Kind() != '"' {
		r.Skip()
		return ""
	}
	return preview(r.String())
}

// preview is the begin of a text on one line.
func preview(text []byte) string {
	s := strings.Join(strings.Fields(string(cut(text, 8*previewLen))), " ")
	n := 0
	for i := range s {
		if n++; n > previewLen {
			return s[:i] + "…"
		}
	}
	return s
}
