package session

import (
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// line is the JSON object of an entry, without a line break.
func line(e *Entry, data Data, stamp string) []byte {
	o := jsonwire.Begin(nil)
	if u, ok := data.(*UnknownEntry); ok {
		raw := u.Raw
		if !jsonwire.IsObject(raw) {
			raw = []byte("{}")
		}
		b, _ := jsonwire.AppendCompact(nil, raw)
		b = setMember(b, "type", jsonwire.AppendString(nil, string(u.Type)))
		b = setMember(b, "id", jsonwire.AppendString(nil, e.ID))
		b = setMember(b, "parentId", optID(e.ParentID))
		return setMember(b, "timestamp", jsonwire.AppendString(nil, stamp))
	}
	o.Text("type", string(e.Type))
	// The peer writes these two kinds with their own members in front.
	late := e.Type == TypeCustom || e.Type == TypeCustomMessage
	if late {
		data.append(&o)
	}
	o.Text("id", e.ID)
	o.Key("parentId")
	o.B = append(o.B, optID(e.ParentID)...)
	o.Text("timestamp", stamp)
	if !late {
		data.append(&o)
	}
	return o.End()
}

func optID(id string) []byte {
	if id == "" {
		return []byte("null")
	}
	return jsonwire.AppendString(nil, id)
}

func (d *MessageEntry) append(o *jsonwire.Object) {
	o.Key("message")
	o.B = d.Message.AppendJSON(o.B)
}

func (d *ModelChangeEntry) append(o *jsonwire.Object) {
	o.Text("provider", d.Provider)
	o.Text("modelId", d.ModelID)
}

func (d *ThinkingLevelEntry) append(o *jsonwire.Object) { o.Text("thinkingLevel", string(d.Level)) }

func (d *CompactionEntry) append(o *jsonwire.Object) {
	o.Text("summary", d.Summary)
	o.Text("firstKeptEntryId", d.FirstKept)
	o.Int("tokensBefore", d.TokensBefore)
	o.Raw("details", d.Details)
	appendUsage(o, d.Usage)
	if d.FromHook != nil {
		o.Bool("fromHook", *d.FromHook)
	}
	if d.System != nil {
		o.Key("systemMessage")
		o.B = d.System.AppendJSON(o.B)
	}
}

func (d *BranchSummaryEntry) append(o *jsonwire.Object) {
	o.Text("fromId", d.FromID)
	o.Text("summary", d.Summary)
	o.Raw("details", d.Details)
	appendUsage(o, d.Usage)
	if d.FromHook != nil {
		o.Bool("fromHook", *d.FromHook)
	}
}

func (d *CustomEntry) append(o *jsonwire.Object) {
	o.Text("customType", d.CustomType)
	o.Raw("data", d.Value)
}

func (d *CustomMessageEntry) append(o *jsonwire.Object) {
	o.Text("customType", d.CustomType)
	o.Key("content")
	o.B = d.Content.AppendJSON(o.B)
	o.Bool("display", d.Display)
	o.Raw("details", d.Details)
}

func (d *ContextEditEntry) append(o *jsonwire.Object) {
	o.Text("targetId", d.TargetID)
	o.Key("replacement")
	if d.Replacement == nil {
		o.B = append(o.B, "null"...)
		return
	}
	r := jsonwire.Begin(o.B)
	r.Key("content")
	r.B = d.Replacement.AppendJSON(r.B)
	o.B = r.End()
}

func (d *UsageEntry) append(o *jsonwire.Object) {
	o.Text("kind", d.Purpose)
	o.Text("provider", d.Provider)
	o.Text("model", d.Model)
	appendUsage(o, &d.Usage)
	o.OptText("note", d.Note)
}

func (d *LabelEntry) append(o *jsonwire.Object) {
	o.Text("targetId", d.TargetID)
	o.OptText("label", d.Label)
}

func (d *InfoEntry) append(o *jsonwire.Object) { o.Text("name", d.Name) }

func (d *LeafEntry) append(o *jsonwire.Object) {
	o.Key("targetId")
	o.B = append(o.B, optID(d.TargetID)...)
}

func (*UnknownEntry) append(*jsonwire.Object) {}

// setMember is the object raw with a member set: in its place when it is there,
// else at the end. Every other byte stays.
func setMember(raw []byte, name string, v []byte) []byte {
	var r jsonwire.Reader
	r.Reset(raw)
	out := make([]byte, 0, len(raw)+len(name)+len(v)+4)
	done, found, empty := 0, false, true
	for r.Object(); r.More(); {
		empty = false
		if string(r.Key()) != name {
			r.Skip()
			continue
		}
		old := r.Raw()
		if r.Err() != nil {
			return raw
		}
		end := r.Offset()
		out = append(out, raw[done:end-len(old)]...)
		out = append(out, v...)
		done, found = end, true
	}
	if r.Err() != nil {
		return raw
	}
	if found {
		return append(out, raw[done:]...)
	}
	end := r.Offset() - 1 // the closing bracket
	out = append(out, raw[:end]...)
	if !empty {
		out = append(out, ',')
	}
	out = jsonwire.AppendString(out, name)
	out = append(out, ':')
	out = append(out, v...)
	return append(out, raw[end:]...)
}

// dropMember is the object raw without a member.
func dropMember(raw []byte, name string) []byte {
	var r jsonwire.Reader
	r.Reset(raw)
	o := jsonwire.Begin(make([]byte, 0, len(raw)))
	found := false
	for r.Object(); r.More(); {
		k := string(r.Key())
		v := r.Raw()
		if k == name {
			found = true
			continue
		}
		o.Name(k)
		o.B = append(o.B, v...)
	}
	if r.Err() != nil || !found {
		return raw
	}
	return o.End()
}

// role is the role of a message as the scanner would find it.
func roleOf(d Data) llm.Role {
	if m, ok := d.(*MessageEntry); ok && m.Message != nil {
		return m.Message.Role()
	}
	return ""
}
