package session

import (
	"time"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// load decodes the entry at the first call. Of two concurrent first calls one
// wins, so that messages keep their pointers.
func (e *Entry) load() *decoded {
	if d := e.decoded.Load(); d != nil {
		return d
	}
	var r jsonwire.Reader
	return e.loadFrom(e.Raw(), &r)
}

// loadFrom is load for a caller that has the line and decodes many entries with
// one Reader.
func (e *Entry) loadFrom(raw []byte, r *jsonwire.Reader) *decoded {
	if e.decoded.Load() == nil {
		e.decoded.CompareAndSwap(nil, e.decode(raw, r))
	}
	return e.decoded.Load()
}

// loadAll decodes entries, whose lines are read many at a time: what they say
// shares that memory and will be needed together.
func loadAll(list []*Entry) {
	const limit = 32 << 20
	var r jsonwire.Reader
	for e, raw := range rawLines(list, limit, func(e *Entry) bool { return e.decoded.Load() == nil }) {
		e.loadFrom(raw, &r)
	}
}

func (e *Entry) decode(raw []byte, r *jsonwire.Reader) *decoded {
	if e.Type == TypeMessage {
		d := &decodedMessage{}
		d.data = &d.entry
		d.entry.Message = e.readMessage(raw, r)
		return &d.decoded
	}
	if !e.isEntry(raw) {
		raw = nil
	}
	return decodedOf(decode(e.Type, raw), parseTime(textMember(raw, "timestamp")).UnixMilli())
}

// decodedOf is the decoded form of an entry with this content.
func decodedOf(data Data, millis int64) *decoded {
	return &decoded{data: data, shown: &shown{messages: shownBy(data, millis)}}
}

// readMessage reads the message in the entry's line, nil when there is none that
// can be read. It shares the memory of the line.
func (e *Entry) readMessage(raw []byte, r *jsonwire.Reader) agent.Message {
	if e.message > 0 && int(e.message) < len(raw) {
		r.ResetShared(raw[e.message:])
		m, err := llm.ReadMessage(r, e.role)
		// What is before was read when the log was opened.
		if rest := raw[int(e.message)+r.Offset():]; err == nil && (len(rest) == 1 || !e.byHead || e.isEntry(raw)) {
			return m
		}
	}
	if !e.isEntry(raw) {
		return nil
	}
	if m, err := ParseMessage(jsonwire.Get(raw, "message")); err == nil {
		return m
	}
	return nil
}

// isEntry reports whether a line that counted by its beginning is that entry. If
// not the log is in doubt.
func (e *Entry) isEntry(raw []byte) bool {
	if raw == nil {
		return false
	}
	if !e.byHead {
		return true
	}
	var s scanner
	if s.read(raw) && s.is(e) {
		return true
	}
	e.log.doubt.Store(true)
	return false
}

// appendContext appends the messages that the entry puts into the context at
// its place, without edits.
func (d *decoded) appendContext(list []agent.Message) []agent.Message {
	if m, ok := d.data.(*MessageEntry); ok {
		if m.Message == nil {
			return list
		}
		return append(list, m.Message)
	}
	return append(list, d.messages...)
}

// shownBy lists the messages that an entry with this content, which is no
// message, puts into the context. A compaction gives its checkpoint and summary,
// which count only at the head of the selection.
func shownBy(data Data, millis int64) []agent.Message {
	if millis == zeroMillis {
		millis = 0
	}
	switch d := data.(type) {
	case *CompactionEntry:
		summary := &CompactionSummary{Summary: d.Summary, TokensBefore: d.TokensBefore, Timestamp: millis}
		if d.System != nil {
			return []agent.Message{d.System, summary}
		}
		return []agent.Message{summary}
	case *BranchSummaryEntry:
		if d.Summary != "" {
			return []agent.Message{&BranchSummary{Summary: d.Summary, FromID: d.FromID, Timestamp: millis}}
		}
	case *CustomMessageEntry:
		return []agent.Message{&Custom{CustomType: d.CustomType, Content: d.Content, Display: d.Display, Details: d.Details, Timestamp: millis}}
	}
	return nil
}

// zeroMillis is what the zero time gives.
const zeroMillis = -62135596800000

// parseTime reads an ISO 8601 time, giving the zero time for anything else.
func parseTime(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}
	}
	return t
}

// decode reads what an entry of this type says.
func decode(typ Type, raw []byte) Data {
	var r jsonwire.Reader
	r.ResetShared(raw)
	switch typ {
	case TypeModelChange:
		return readModelChangeEntry(&r)
	case TypeThinkingLevel:
		return &ThinkingLevelEntry{Level: llm.ThinkingLevel(textMember(raw, "thinkingLevel"))}
	case TypeCompaction:
		return readCompactionEntry(&r)
	case TypeBranchSummary:
		return readBranchSummaryEntry(&r)
	case TypeCustom:
		return readCustomEntry(&r)
	case TypeCustomMessage:
		return readCustomMessageEntry(&r)
	case TypeContextEdit:
		return readContextEditEntry(&r)
	case TypeUsage:
		return readUsageEntry(&r)
	case TypeLabel:
		return readLabelEntry(&r)
	case TypeInfo:
		return &InfoEntry{Name: textMember(raw, "name")}
	case TypeLeaf:
		return &LeafEntry{TargetID: textMember(raw, "targetId")}
	}
	return &UnknownEntry{Type: typ, Raw: raw}
}

func readModelChangeEntry(r *jsonwire.Reader) *ModelChangeEntry {
	d := &ModelChangeEntry{}
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "provider":
			d.Provider = r.Text()
		case "modelId":
			d.ModelID = r.Text()
		default:
			r.Skip()
		}
	}
	return d
}

func readCompactionEntry(r *jsonwire.Reader) *CompactionEntry {
	d := &CompactionEntry{}
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "summary":
			d.Summary = r.Text()
		case "firstKeptEntryId":
			d.FirstKept = r.Text()
		case "tokensBefore":
			d.TokensBefore = r.Int()
		case "details":
			d.Details = value(r)
		case "usage":
			d.Usage = optUsage(r)
		case "fromHook":
			d.FromHook = optBool(r)
		case "systemMessage":
			if m, err := llm.ParseMessage(r.Raw()); err == nil {
				d.System, _ = m.(*llm.System)
			}
		default:
			r.Skip()
		}
	}
	return d
}

func readBranchSummaryEntry(r *jsonwire.Reader) *BranchSummaryEntry {
	d := &BranchSummaryEntry{}
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "fromId":
			d.FromID = r.Text()
		case "summary":
			d.Summary = r.Text()
		case "details":
			d.Details = value(r)
		case "usage":
			d.Usage = optUsage(r)
		case "fromHook":
			d.FromHook = optBool(r)
		default:
			r.Skip()
		}
	}
	return d
}

func readCustomEntry(r *jsonwire.Reader) *CustomEntry {
	d := &CustomEntry{}
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "customType":
			d.CustomType = r.Text()
		case "data":
			d.Value = r.Keep()
		default:
			r.Skip()
		}
	}
	return d
}

func readCustomMessageEntry(r *jsonwire.Reader) *CustomMessageEntry {
	d := &CustomMessageEntry{Content: llm.Blocks()}
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "customType":
			d.CustomType = r.Text()
		case "content":
			if !r.Null() {
				d.Content = llm.ReadContent(r)
			}
		case "display":
			d.Display = r.Bool()
		case "details":
			d.Details = value(r)
		default:
			r.Skip()
		}
	}
	return d
}

func readContextEditEntry(r *jsonwire.Reader) *ContextEditEntry {
	d := &ContextEditEntry{}
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "targetId":
			d.TargetID = r.Text()
		case "replacement":
			d.Replacement, _ = ParseReplacement(r.Raw())
		default:
			r.Skip()
		}
	}
	return d
}

func readUsageEntry(r *jsonwire.Reader) *UsageEntry {
	d := &UsageEntry{}
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "kind":
			d.Purpose = r.Text()
		case "provider":
			d.Provider = r.Text()
		case "model":
			d.Model = r.Text()
		case "usage":
			d.Usage = llm.ReadUsage(r)
		case "note":
			d.Note = r.Text()
		default:
			r.Skip()
		}
	}
	return d
}

func readLabelEntry(r *jsonwire.Reader) *LabelEntry {
	d := &LabelEntry{}
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "targetId":
			d.TargetID = r.Text()
		case "label":
			d.Label = r.Text()
		default:
			r.Skip()
		}
	}
	return d
}

func textMember(raw []byte, name string) string {
	s, _ := jsonwire.StringValue(jsonwire.Get(raw, name))
	return s
}

func optUsage(r *jsonwire.Reader) *llm.Usage {
	if r.Kind() != '{' {
		r.Skip()
		return nil
	}
	return new(llm.ReadUsage(r))
}

func optBool(r *jsonwire.Reader) *bool {
	if k := r.Kind(); k != 't' && k != 'f' {
		r.Skip()
		return nil
	}
	return new(r.Bool())
}

// ParseReplacement reads the replacement of a context edit: null takes the
// target out, {"content": …} with a string or a list gives it other content.
// Anything else is a BadReplacement.
func ParseReplacement(raw []byte) (*llm.Content, error) {
	var r jsonwire.Reader
	r.Reset(raw)
	if r.Null() {
		return nil, nil
	}
	content := jsonwire.Get(raw, "content")
	r.Reset(content)
	if k := r.Kind(); k != '"' && k != '[' {
		return nil, &Error{Kind: BadReplacement, Op: "edit context"}
	}
	return new(llm.ReadContent(&r)), nil
}
