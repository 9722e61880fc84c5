package session

import (
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
)

// Type names what an entry is about by its JSON name.
type Type string

// The types of entries.
const (
	TypeMessage       Type = "message"
	TypeModelChange   Type = "model_change"
	TypeThinkingLevel Type = "thinking_level_change"
	TypeCompaction    Type = "compaction"
	TypeBranchSummary Type = "branch_summary"
	TypeCustom        Type = "custom"
	TypeCustomMessage Type = "custom_message"
	TypeContextEdit   Type = "context_edit"
	TypeUsage         Type = "usage"
	TypeLabel         Type = "label"
	TypeInfo          Type = "session_info"
	TypeLeaf          Type = "leaf"
)

// Entry is one line of a session's log and one node of its tree. Entries are
// immutable and live as long as their session; the same entry is always the
// same pointer. They are safe for concurrent use.
type Entry struct {
	ID       string // unique, except in files that somebody edited; "" for a line without one
	ParentID string // "" for a root
	Type     Type

	log     *source  // where its line is
	at      int64    // offset of the line in the log
	size    uint32   // bytes of the line
	index   int32    // in the list of entries
	message uint16   // where the message begins in the line; 0 when that is not known
	byHead  bool     // only the beginning of the line was looked at
	role    llm.Role // of a message entry, else ""
	decoded atomic.Pointer[decoded]
}

// decoded is what an entry says, once somebody asked.
type decoded struct {
	data   Data
	*shown // nil for a message entry, which shows its message
}

// shown is what an entry that is no message does to the context.
type shown struct {
	messages []agent.Message // that it puts there, without edits
	edited   atomic.Pointer[edited]
}

// decodedMessage is the decoded form of a message entry in one piece: a long
// session has many.
type decodedMessage struct {
	decoded
	entry MessageEntry
}

// edited is a target's message with the content of an edit, kept at the edit.
type edited struct {
	target  *Entry
	message agent.Message
}

// Raw is the entry's line as it is in the log, a JSON object. Nobody may change
// it. It may be read from the log, and is nil when that fails: Session.Err.
func (e *Entry) Raw() jsontext.Value {
	raw, err := e.log.read(e.at, int(e.size))
	if err != nil {
		return nil
	}
	return raw
}

// hold gives a new entry its line.
func (e *Entry) hold(raw []byte) {
	e.log, e.at, e.size = memorySource(raw), 0, uint32(len(raw))
}

// Timestamp is the time of the append as it is in the log, ISO 8601 in UTC. It
// is read from the line.
func (e *Entry) Timestamp() string { return textMember(e.Raw(), "timestamp") }

// Time is the time of the append, zero when the log has none that can be read.
func (e *Entry) Time() time.Time { return parseTime(e.Timestamp()) }

// Role is the role of a message entry's message, "" for other entries. It costs
// no decoding.
func (e *Entry) Role() llm.Role { return e.role }

// Data is what the entry says: one of the …Entry types. It is decoded at the
// first call and kept; nobody may change it. Its texts and values share the
// memory of the line, or of the log where that is in memory. An entry whose line
// cannot be read says nothing: Session.Err.
func (e *Entry) Data() Data { return e.load().data }

// Message is the message of a message entry, nil for other entries.
func (e *Entry) Message() agent.Message {
	if m, ok := e.Data().(*MessageEntry); ok {
		return m.Message
	}
	return nil
}

// Data is the content of an entry: a *MessageEntry, *ModelChangeEntry,
// *ThinkingLevelEntry, *CompactionEntry, *BranchSummaryEntry, *CustomEntry,
// *CustomMessageEntry, *ContextEditEntry, *UsageEntry, *LabelEntry, *InfoEntry,
// *LeafEntry or *UnknownEntry.
type Data interface {
	// EntryType is the JSON name of the type.
	EntryType() Type
	// append appends the type's own members.
	append(o *jsonwire.Object)
}

// MessageEntry stores a message of the conversation.
type MessageEntry struct {
	Message agent.Message
}

// ModelChangeEntry records which model answers from here on.
type ModelChangeEntry struct {
	Provider string
	ModelID  string
}

// ThinkingLevelEntry records how hard models think from here on.
type ThinkingLevelEntry struct {
	Level llm.ThinkingLevel
}

// CompactionEntry takes the conversation before an entry out of the context and
// puts a summary in its place.
type CompactionEntry struct {
	Summary string
	// FirstKept is the entry at which the kept tail begins; the compaction's
	// own id keeps nothing. In an append "" means nothing is kept.
	FirstKept    string
	TokensBefore int64          // size of the context before
	Details      jsontext.Value // such as the files that were read and changed; nil for none
	Usage        *llm.Usage     // what the summary took; nil when unknown
	FromHook     *bool          // an extension wrote the summary; nil when not recorded
	// System is the folded system prompt at this place. In an append nil lets
	// the session fold it; old files have none.
	System *llm.System
}

// BranchSummaryEntry sums up a branch that the user left.
type BranchSummaryEntry struct {
	FromID   string // leaf of that branch; "root" for none. Branch summaries fill it in
	Summary  string
	Details  jsontext.Value
	Usage    *llm.Usage
	FromHook *bool
}

// CustomEntry keeps state of an extension. Models never see it.
type CustomEntry struct {
	CustomType string
	Value      jsontext.Value // nil for none
}

// CustomMessageEntry puts a message of an extension into the context.
type CustomMessageEntry struct {
	CustomType string
	Content    llm.Content
	Display    bool           // show it to the user
	Details    jsontext.Value // never sent to a model; nil for none
}

// ContextEditEntry changes what the context shows of an earlier entry.
type ContextEditEntry struct {
	TargetID string
	// Replacement is the new content; nil takes the target out of the context.
	Replacement *llm.Content
}

// UsageEntry books tokens that were spent beside the conversation.
type UsageEntry struct {
	Purpose  string // JSON name "kind"
	Provider string
	Model    string
	Usage    llm.Usage
	Note     string // "" for none
}

// LabelEntry names an entry; an empty label takes the name away.
type LabelEntry struct {
	TargetID string
	Label    string
}

// InfoEntry names the session; an empty name takes the name away.
type InfoEntry struct {
	Name string
}

// LeafEntry records a move of the leaf, in sessions that the engine of a program
// writes (Options.Embedded of package harness). To all others it is an entry like
// any other.
type LeafEntry struct {
	TargetID string // "" for the place before the first entry
}

// UnknownEntry is an entry of a type that this version does not know. It keeps
// its place in the tree and says nothing.
type UnknownEntry struct {
	Type Type
	Raw  jsontext.Value // in an append: an object; its type, id, parentId and timestamp are set
}

// EntryType implements Data.
func (*MessageEntry) EntryType() Type       { return TypeMessage }
func (*ModelChangeEntry) EntryType() Type   { return TypeModelChange }
func (*ThinkingLevelEntry) EntryType() Type { return TypeThinkingLevel }
func (*CompactionEntry) EntryType() Type    { return TypeCompaction }
func (*BranchSummaryEntry) EntryType() Type { return TypeBranchSummary }
func (*CustomEntry) EntryType() Type        { return TypeCustom }
func (*CustomMessageEntry) EntryType() Type { return TypeCustomMessage }
func (*ContextEditEntry) EntryType() Type   { return TypeContextEdit }
func (*UsageEntry) EntryType() Type         { return TypeUsage }
func (*LabelEntry) EntryType() Type         { return TypeLabel }
func (*InfoEntry) EntryType() Type          { return TypeInfo }
func (*LeafEntry) EntryType() Type          { return TypeLeaf }
func (d *UnknownEntry) EntryType() Type     { return d.Type }
