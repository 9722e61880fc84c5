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
	e.decoded.CompareAndSwap(nil, e.decode(&r))
	return e.decoded.Load()
}

// loadWith is load with a Reader that the caller uses for many entries.
func (e *Entry) loadWith(r *jsonwire.Reader) *decoded {
	if e.decoded.Load() == nil {
		e.decoded.CompareAndSwap(nil, e.decode(r))
	}
	return e.decoded.Load()
}

func (e *Entry) decode(r *jsonwire.Reader) *decoded {
	if e.Type == TypeMessage {
		d := &decodedMessage{}
		d.data = &d.entry
		d.entry.Message = e.readMessage(r)
		return &d.decoded
	}
	return decodedOf(decode(e.Type, e.raw), e.Time().UnixMilli())
}

// decodedOf is the decoded form of an entry with this content.
func decodedOf(data Data, millis int64) *decoded {
	return &decoded{data: data, shown: &shown{messages: shownBy(data, millis)}}
}

// readMessage reads the message of the entry's line, nil when there is none
// that can be read. It shares the memory of the log.
func (e *Entry) readMessage(r *jsonwire.Reader) agent.Message {
	if e.message > 0 {
		r.ResetShared(e.raw[e.message:])
		if m, err := llm.ReadMessage(r, e.role); err == nil {
			return m
		}
	}
	if m, err := ParseMessage(jsonwire.Get(e.raw, "message")); err == nil {
		return m
	}
	return nil
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

func decode(typ Type, raw []byte) Data {
	var r jsonwire.Reader
	r.ResetShared(raw)
	switch typ {
	case TypeModelChange:
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
	case TypeThinkingLevel:
		return &ThinkingLevelEntry{Level: llm.ThinkingLevel(textMember(raw, "thinkingLevel"))}
	case TypeCompaction:
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
				d.Details = value(&r)
			case "usage":
				d.Usage = optUsage(&r)
			case "fromHook":
				d.FromHook = optBool(&r)
			case "systemMessage":
				if m, err := llm.ParseMessage(r.Raw()); err == nil {
					d.System, _ = m.(*llm.System)
				}
			default:
				r.Skip()
			}
		}
		return d
	case TypeBranchSummary:
		d := &BranchSummaryEntry{}
		for r.Object(); r.More(); {
			switch string(r.Key()) {
			case "fromId":
				d.FromID = r.Text()
			case "summary":
				d.Summary = r.Text()
			case "details":
				d.Details = value(&r)
			case "usage":
				d.Usage = optUsage(&r)
			case "fromHook":
				d.FromHook = optBool(&r)
			default:
				r.Skip()
			}
		}
		return d
	case TypeCustom:
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
	case TypeCustomMessage:
		d := &CustomMessageEntry{Content: llm.Blocks()}
		for r.Object(); r.More(); {
			switch string(r.Key()) {
			case "customType":
				d.CustomType = r.Text()
			case "content":
				if !r.Null() {
					d.Content = llm.ReadContent(&r)
				}
			case "display":
				d.Display = r.Bool()
			case "details":
				d.Details = value(&r)
			default:
				r.Skip()
			}
		}
		return d
	case TypeContextEdit:
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
	case TypeUsage:
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
				d.Usage = llm.ReadUsage(&r)
			case "note":
				d.Note = r.Text()
			default:
				r.Skip()
			}
		}
		return d
	case TypeLabel:
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
	case TypeInfo:
		return &InfoEntry{Name: textMember(raw, "name")}
	case TypeLeaf:
		return &LeafEntry{TargetID: textMember(raw, "targetId")}
	}
	return &UnknownEntry{Type: typ, Raw: raw}
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
