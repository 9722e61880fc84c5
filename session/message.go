package session

import (
	"errors"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// The roles that sessions add to those that a model knows.
const (
	RoleBashExecution     llm.Role = "bashExecution"
	RoleCustom            llm.Role = "custom"
	RoleBranchSummary     llm.Role = "branchSummary"
	RoleCompactionSummary llm.Role = "compactionSummary"
)

// BashExecution is a command that the user ran beside the model.
type BashExecution struct {
	Command            string
	Output             string
	ExitCode           *int64 // nil when the command did not end by itself
	Cancelled          bool
	Truncated          bool   // Output is not all there was
	FullOutputPath     string // file with all of it; "" for none
	ExcludeFromContext bool   // models never see it
	Timestamp          int64  // Unix milliseconds
	Extra              []llm.Member

	user cached
}

// Custom is a message that an extension puts into the conversation.
type Custom struct {
	CustomType string
	Content    llm.Content
	Display    bool           // show it to the user
	Details    jsontext.Value // for the extension, never sent to a model; nil for none
	Timestamp  int64          // Unix milliseconds
	Extra      []llm.Member

	content contentState
	user    cached
}

// BranchSummary stands for a branch that the user left.
type BranchSummary struct {
	Summary   string
	FromID    string // leaf of the branch that was left; "root" for none
	Timestamp int64  // Unix milliseconds
	Extra     []llm.Member

	user cached
}

// CompactionSummary stands for the part of the conversation that a compaction
// took out of the context.
type CompactionSummary struct {
	Summary      string
	TokensBefore int64 // size of the context before
	Timestamp    int64 // Unix milliseconds
	Extra        []llm.Member

	user cached
}

// Unknown is a message of a role that this version does not know. It survives a
// read and a write and is never sent to a model.
type Unknown struct {
	Name      llm.Role
	Raw       jsontext.Value
	Timestamp int64 // Unix milliseconds
}

// cached holds the form of a message that models see. Wire formats remember
// what they made of a message under its pointer, so the same message must give
// the same pointer every time.
type cached struct{ p atomic.Pointer[llm.User] }

// contentState keeps apart what a lenient reader makes equal.
type contentState uint8

const (
	contentSet contentState = iota
	contentNull
	contentMissing
)

func (*BashExecution) Role() llm.Role     { return RoleBashExecution }
func (*Custom) Role() llm.Role            { return RoleCustom }
func (*BranchSummary) Role() llm.Role     { return RoleBranchSummary }
func (*CompactionSummary) Role() llm.Role { return RoleCompactionSummary }
func (m *Unknown) Role() llm.Role         { return m.Name }

func (m *BashExecution) Time() int64     { return m.Timestamp }
func (m *Custom) Time() int64            { return m.Timestamp }
func (m *BranchSummary) Time() int64     { return m.Timestamp }
func (m *CompactionSummary) Time() int64 { return m.Timestamp }
func (m *Unknown) Time() int64           { return m.Timestamp }

// ParseMessage reads a message of any role in the form of session files. It
// fails only on text that is no JSON object.
func ParseMessage(raw []byte) (agent.Message, error) {
	m, err := llm.ParseMessage(raw)
	if err == nil {
		return m, nil
	}
	unknown, ok := errors.AsType[*llm.UnknownRoleError](err)
	if !ok {
		return nil, err
	}
	var r jsonwire.Reader
	r.Reset(raw)
	if r.Kind() != '{' {
		return nil, &Error{Kind: BadEntry, Op: "parse message"}
	}
	switch llm.Role(unknown.Role) {
	case RoleBashExecution:
		return readBash(&r), r.Err()
	case RoleCustom:
		return readCustom(&r), r.Err()
	case RoleBranchSummary:
		return readBranchSummary(&r), r.Err()
	case RoleCompactionSummary:
		return readCompactionSummary(&r), r.Err()
	}
	u := &Unknown{Name: llm.Role(unknown.Role), Raw: clone(raw)}
	for r.Object(); r.More(); {
		if string(r.Key()) == "timestamp" {
			u.Timestamp = r.Int()
		} else {
			r.Skip()
		}
	}
	return u, r.Err()
}

func readBash(r *jsonwire.Reader) *BashExecution {
	m := &BashExecution{}
	for r.Object(); r.More(); {
		switch k := r.Key(); string(k) {
		case "role":
			r.Skip()
		case "command":
			m.Command = r.Text()
		case "output":
			m.Output = r.Text()
		case "exitCode":
			if r.Kind() == '0' {
				m.ExitCode = new(r.Int())
			} else {
				r.Skip()
			}
		case "cancelled":
			m.Cancelled = r.Bool()
		case "truncated":
			m.Truncated = r.Bool()
		case "fullOutputPath":
			m.FullOutputPath = r.Text()
		case "excludeFromContext":
			m.ExcludeFromContext = r.Bool()
		case "timestamp":
			m.Timestamp = r.Int()
		default:
			m.Extra = member(r, m.Extra, k)
		}
	}
	return m
}

func readCustom(r *jsonwire.Reader) *Custom {
	m := &Custom{content: contentMissing}
	for r.Object(); r.More(); {
		switch k := r.Key(); string(k) {
		case "role":
			r.Skip()
		case "customType":
			m.CustomType = r.Text()
		case "content":
			m.content = contentSet
			if r.Null() {
				m.content = contentNull
				continue
			}
			m.Content = llm.ReadContent(r)
		case "display":
			m.Display = r.Bool()
		case "details":
			m.Details = value(r)
		case "timestamp":
			m.Timestamp = r.Int()
		default:
			m.Extra = member(r, m.Extra, k)
		}
	}
	return m
}

func readBranchSummary(r *jsonwire.Reader) *BranchSummary {
	m := &BranchSummary{}
	for r.Object(); r.More(); {
		switch k := r.Key(); string(k) {
		case "role":
			r.Skip()
		case "summary":
			m.Summary = r.Text()
		case "fromId":
			m.FromID = r.Text()
		case "timestamp":
			m.Timestamp = r.Int()
		default:
			m.Extra = member(r, m.Extra, k)
		}
	}
	return m
}

func readCompactionSummary(r *jsonwire.Reader) *CompactionSummary {
	m := &CompactionSummary{}
	for r.Object(); r.More(); {
		switch k := r.Key(); string(k) {
		case "role":
			r.Skip()
		case "summary":
			m.Summary = r.Text()
		case "tokensBefore":
			m.TokensBefore = r.Int()
		case "timestamp":
			m.Timestamp = r.Int()
		default:
			m.Extra = member(r, m.Extra, k)
		}
	}
	return m
}

// AppendJSON implements agent.Message.
func (m *BashExecution) AppendJSON(dst []byte) []byte {
	o := jsonwire.Begin(dst)
	o.Text("role", string(RoleBashExecution))
	o.Text("command", m.Command)
	o.Text("output", m.Output)
	if m.ExitCode != nil {
		o.Int("exitCode", *m.ExitCode)
	}
	o.Bool("cancelled", m.Cancelled)
	o.Bool("truncated", m.Truncated)
	o.OptText("fullOutputPath", m.FullOutputPath)
	o.Int("timestamp", m.Timestamp)
	if m.ExcludeFromContext {
		o.Bool("excludeFromContext", true)
	}
	appendMembers(&o, m.Extra)
	return o.End()
}

// AppendJSON implements agent.Message.
func (m *Custom) AppendJSON(dst []byte) []byte {
	o := jsonwire.Begin(dst)
	o.Text("role", string(RoleCustom))
	o.Text("customType", m.CustomType)
	switch m.content {
	case contentSet:
		o.Key("content")
		o.B = m.Content.AppendJSON(o.B)
	case contentNull:
		o.Key("content")
		o.B = append(o.B, "null"...)
	case contentMissing:
	}
	o.Bool("display", m.Display)
	o.Raw("details", m.Details)
	o.Int("timestamp", m.Timestamp)
	appendMembers(&o, m.Extra)
	return o.End()
}

// AppendJSON implements agent.Message.
func (m *BranchSummary) AppendJSON(dst []byte) []byte {
	o := jsonwire.Begin(dst)
	o.Text("role", string(RoleBranchSummary))
	o.Text("summary", m.Summary)
	o.Text("fromId", m.FromID)
	o.Int("timestamp", m.Timestamp)
	appendMembers(&o, m.Extra)
	return o.End()
}

// AppendJSON implements agent.Message.
func (m *CompactionSummary) AppendJSON(dst []byte) []byte {
	o := jsonwire.Begin(dst)
	o.Text("role", string(RoleCompactionSummary))
	o.Text("summary", m.Summary)
	o.Int("tokensBefore", m.TokensBefore)
	o.Int("timestamp", m.Timestamp)
	appendMembers(&o, m.Extra)
	return o.End()
}

// AppendJSON implements agent.Message.
func (m *Unknown) AppendJSON(dst []byte) []byte {
	n := len(dst)
	dst, err := jsonwire.AppendCompact(dst, m.Raw)
	if err != nil {
		return append(dst[:n], `{"role":"unknown"}`...)
	}
	return dst
}
