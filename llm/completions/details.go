package completions

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
)

// Reasoning details are a gateway's lossless form of reasoning: a list of text,
// summary and encrypted entries that must come back as they were.

type detailKind byte

const (
	detailText      detailKind = iota + 1 // "reasoning.text"
	detailSummary                         // "reasoning.summary"
	detailEncrypted                       // "reasoning.encrypted"
)

// detailView is one entry as it came; the slices belong to the input. A nil
// slice is an absent member.
type detailView struct {
	raw                          []byte // the whole entry
	kind                         detailKind
	body                         []byte // text, summary or data, a JSON string
	signature, id, format, index []byte
}

// readDetail reads the entry that r stands at; ok is false for one that is not
// valid.
func readDetail(r *jsonwire.Reader) (v detailView, ok bool) {
	if r.Kind() != '{' {
		r.Skip()
		return v, false
	}
	var text, summary, data []byte
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "type":
			switch string(r.Raw()) {
			case `"reasoning.text"`:
				v.kind = detailText
			case `"reasoning.summary"`:
				v.kind = detailSummary
			case `"reasoning.encrypted"`:
				v.kind = detailEncrypted
			default:
				v.kind = 0
			}
		case "text":
			text = r.Raw()
		case "summary":
			summary = r.Raw()
		case "data":
			data = r.Raw()
		case "signature":
			v.signature = r.Raw()
		case "id":
			v.id = r.Raw()
		case "format":
			v.format = r.Raw()
		case "index":
			v.index = r.Raw()
		default:
			r.Skip()
		}
	}
	switch v.kind {
	case detailText:
		v.body = text
		if !absent(v.signature) && !null(v.signature) && !isString(v.signature) {
			return v, false
		}
	case detailSummary:
		v.body = summary
	case detailEncrypted:
		v.body = data
	default:
		return v, false
	}
	ok = isString(v.body) &&
		(absent(v.id) || null(v.id) || isString(v.id)) &&
		(absent(v.format) || isString(v.format)) &&
		(absent(v.index) || isNumber(v.index))
	return v, ok
}

func absent(raw []byte) bool   { return raw == nil }
func null(raw []byte) bool     { return len(raw) > 0 && raw[0] == 'n' }
func isString(raw []byte) bool { return len(raw) > 0 && raw[0] == '"' }
func isNumber(raw []byte) bool {
	return len(raw) > 0 && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9')
}

// empty reports what counts as not given: absent, null or an empty string.
func empty(raw []byte) bool { return absent(raw) || null(raw) || string(raw) == `""` }

// details collects the entries of an answer. Text that comes in pieces is one
// entry in the end.
type details struct {
	list []detail
	r    jsonwire.Reader
}

// detail is one collected entry.
type detail struct {
	kind                         detailKind
	raw                          []byte // the first entry that it was made of
	text                         wire.Text
	merged                       bool
	signature, id, format, index []byte
}

// add takes a valid entry.
func (d *details) add(v *detailView) {
	if n := len(d.list) - 1; n >= 0 && v.kind != detailEncrypted && d.list[n].kind == v.kind {
		d.list[n].merge(v, &d.r)
		return
	}
	e := detail{
		kind: v.kind, raw: slices.Clone(v.raw), signature: slices.Clone(v.signature),
		id: slices.Clone(v.id), format: slices.Clone(v.format), index: slices.Clone(v.index),
	}
	if v.kind != detailEncrypted {
		d.r.Reset(v.body)
		e.text.Append(d.r.String())
	}
	d.list = append(d.list, e)
}

// merge appends a later piece: its text, and what the entry lacks so far.
func (e *detail) merge(v *detailView, r *jsonwire.Reader) {
	r.Reset(v.body)
	e.append(r.String())
	if empty(e.signature) {
		e.signature = slices.Clone(v.signature)
	}
	if absent(e.id) || null(e.id) {
		e.id = slices.Clone(v.id)
	}
	if empty(e.format) {
		e.format = slices.Clone(v.format)
	}
	if absent(e.index) {
		e.index = slices.Clone(v.index)
	}
}

// append appends a piece of text.
func (e *detail) append(piece []byte) {
	e.merged = true
	e.text.Append(piece)
}

// last is the entry that later pieces go to.
func (d *details) last() *detail { return &d.list[len(d.list)-1] }

// appendJSON appends the list in the form of a thinking block's signature.
func (d *details) appendJSON(dst []byte) []byte {
	dst = append(dst, '[')
	for i := range d.list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = d.list[i].appendJSON(dst)
	}
	return append(dst, ']')
}

func (e *detail) appendJSON(dst []byte) []byte {
	if !e.merged {
		return wire.AppendRaw(dst, e.raw)
	}
	e.text.Flush()
	dst = append(dst, '{')
	start := len(dst)
	member := func(name string, value []byte) {
		if value == nil {
			return
		}
		if len(dst) > start {
			dst = append(dst, ',')
		}
		dst = jsonwire.AppendString(dst, name)
		dst = append(dst, ':')
		dst = wire.AppendRaw(dst, value)
	}
	var seen struct{ signature, id, format, index bool }
	var r jsonwire.Reader
	r.Reset(e.raw)
	for r.Object(); r.More(); {
		name := string(r.Key())
		value := r.Raw()
		switch {
		case name == "text" && e.kind == detailText, name == "summary" && e.kind == detailSummary:
			value = jsonwire.AppendString(nil, e.text.String())
		case name == "signature" && e.kind == detailText:
			value, seen.signature = e.signature, true
		case name == "id":
			value, seen.id = e.id, true
		case name == "format":
			value, seen.format = e.format, true
		case name == "index":
			value, seen.index = e.index, true
		}
		member(name, value)
	}
	if e.kind == detailText && !seen.signature {
		member("signature", e.signature)
	}
	if !seen.id {
		member("id", e.id)
	}
	if !seen.format {
		member("format", e.format)
	}
	if !seen.index {
		member("index", e.index)
	}
	return append(dst, '}')
}

// storedDetails is the list that a thinking block's signature holds, nil when
// the signature is something else: one entry that is not valid spoils it.
func storedDetails(signature *string) []jsontext.Value {
	if signature == nil || !strings.Contains(*signature, "[") {
		return nil
	}
	text := []byte(*signature)
	var r jsonwire.Reader
	r.Reset(text)
	var list []jsontext.Value
	for r.Array(); r.More(); {
		r.Kind() // moves to the entry
		from := r.Offset()
		if _, ok := readDetail(&r); !ok {
			return nil
		}
		list = append(list, text[from:r.Offset()])
	}
	if r.End() != nil {
		return nil
	}
	return list
}

// legacyDetail is the encrypted entry that older versions kept with a tool
// call, nil when there is none that can be sent.
func legacyDetail(signature *string) jsontext.Value {
	if signature == nil {
		return nil
	}
	raw := bytes.TrimSpace([]byte(*signature))
	var r jsonwire.Reader
	r.Reset(raw)
	v, ok := readDetail(&r)
	if !ok || r.End() != nil || v.kind != detailEncrypted || empty(v.body) || empty(v.id) {
		return nil
	}
	return raw
}
