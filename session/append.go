package session

import (
	"strings"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// Append adds an entry below the leaf and makes it the leaf. The session keeps
// data, which must not change afterwards. After an error, which tells what to
// do, the session is as it was.
//
// Each type has its rules: a label's target must exist; a name is put on one
// line; the target of a context edit must be a message with content on the
// active branch; a compaction gets the system prompt of its place. Nothing is
// written before the first user or assistant message.
func (s *Session) Append(data Data) (*Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.append(data)
}

// AppendMessage adds a message: a *Custom one as a CustomMessageEntry, others
// as a MessageEntry. Summaries are no messages of a log.
func (s *Session) AppendMessage(m agent.Message) (*Entry, error) {
	return s.Append(&MessageEntry{Message: m})
}

// SetName names the session: each run of line breaks becomes a space, blanks
// around are cut, and an empty name takes the name away.
func (s *Session) SetName(name string) (*Entry, error) { return s.Append(&InfoEntry{Name: name}) }

// SetLabel labels an entry; an empty label takes the label away.
func (s *Session) SetLabel(target, label string) (*Entry, error) {
	return s.Append(&LabelEntry{TargetID: target, Label: label})
}

// Branch moves the leaf to an entry, "" for the place before the first one.
// Nothing is written: to make the move outlast the program something must be
// appended.
func (s *Session) Branch(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.findSure(id)
	if e == nil && id != "" {
		return &Error{Kind: NotFound, Op: "branch", Path: id}
	}
	s.leaf = e
	return nil
}

// ResetLeaf moves the leaf to the place before the first entry.
func (s *Session) ResetLeaf() { s.Branch("") }

// BranchWithSummary moves the leaf to an entry, "" for the place before the
// first one, and appends a summary of the branch that was left. FromID of the
// summary is set to the old leaf.
func (s *Session) BranchWithSummary(id string, summary BranchSummaryEntry) (*Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to := s.findSure(id)
	if to == nil && id != "" {
		return nil, &Error{Kind: NotFound, Op: "branch", Path: id}
	}
	old := s.leaf
	summary.FromID = "root"
	if old != nil {
		summary.FromID = old.ID
	}
	s.leaf = to
	e, err := s.append(&summary)
	if err != nil {
		s.leaf = old
	}
	return e, err
}

func (s *Session) append(data Data) (*Entry, error) {
	if s.closed {
		return nil, &Error{Kind: Closed, Op: "append", Path: s.store.Path()}
	}
	if s.opts.ReadOnly {
		return nil, &Error{Kind: ReadOnly, Op: "append", Path: s.store.Path(), Advice: "the session was opened for reading"}
	}
	if err := s.log.failed(); err != nil {
		return nil, err
	}
	now := s.opts.now()
	id, err := entryID(s.opts.random(), func(id string) bool { return s.find(id) != nil })
	if err != nil {
		return nil, err
	}
	if data, err = s.prepare(data, id, now.UnixMilli()); err != nil {
		return nil, err
	}
	e := &Entry{ID: id, Type: data.EntryType(), role: roleOf(data)}
	if s.leaf != nil {
		e.ParentID = s.leaf.ID
	}
	buf := append(line(e, data, timestamp(now)), '\n')
	e.hold(buf[: len(buf)-1 : len(buf)-1])
	e.decoded.Store(decodedOf(data, now.UnixMilli()))
	if err := s.write(e, buf); err != nil {
		return nil, err
	}
	parent := s.leaf
	s.add(e)
	s.view.extend(parent, e)
	return e, nil
}

// write puts the line of a new entry into the log, or holds it back until the
// conversation begins; then all lines so far go out in one write.
func (s *Session) write(e *Entry, buf []byte) error {
	if !s.written {
		if s.talks || talks(e) {
			return s.flush(buf)
		}
		return nil
	}
	return s.put(buf)
}

// flush begins the log with all that was held back, and more.
func (s *Session) flush(more []byte) error {
	n := len(s.header.Raw) + 1 + len(more)
	for _, e := range s.order {
		n += int(e.size) + 1
	}
	buf := append(append(make([]byte, 0, n), s.header.Raw...), '\n')
	for _, e := range s.order {
		buf = append(append(buf, e.Raw()...), '\n')
	}
	return s.put(append(buf, more...))
}

func (s *Session) put(buf []byte) error {
	next, err := s.store.Append(s.next, buf)
	if err != nil {
		return err
	}
	s.next, s.written, s.dirty = next, true, true
	return nil
}

// talks reports whether an entry begins a conversation that is worth a file.
func talks(e *Entry) bool { return e.role == llm.RoleUser || e.role == llm.RoleAssistant }

// prepare checks and completes what is appended as the entry id.
func (s *Session) prepare(data Data, id string, millis int64) (Data, error) {
	bad := func(why string) error {
		return &Error{Kind: BadEntry, Op: "append", Path: string(data.EntryType()), Advice: why}
	}
	switch d := data.(type) {
	case *MessageEntry:
		switch m := d.Message.(type) {
		case nil:
			return nil, bad("a message is needed")
		case *Custom:
			return &CustomMessageEntry{CustomType: m.CustomType, Content: m.Content, Display: m.Display, Details: m.Details}, nil
		case *BranchSummary, *CompactionSummary:
			return nil, bad("summaries have entry types of their own")
		}
	case *CompactionEntry:
		c := *d
		if c.FirstKept == "" {
			c.FirstKept = id
		}
		if c.System == nil {
			if c.System = FoldSystem(s.context().Messages); c.System != nil {
				c.System.Timestamp = millis
			}
		}
		return &c, nil
	case *LabelEntry:
		if s.findSure(d.TargetID) == nil {
			return nil, &Error{Kind: NotFound, Op: "label", Path: d.TargetID}
		}
	case *InfoEntry:
		return &InfoEntry{Name: oneLine(d.Name)}, nil
	case *ContextEditEntry:
		return s.prepareEdit(d)
	case *UnknownEntry:
		if d.Type == "" || d.Type == "session" {
			return nil, bad("a type is needed")
		}
	}
	return data, nil
}

func (s *Session) prepareEdit(d *ContextEditEntry) (Data, error) {
	target := s.findSure(d.TargetID)
	if target == nil {
		return nil, &Error{Kind: NotFound, Op: "edit context", Path: d.TargetID}
	}
	onPath := false
	for e := range s.up(s.leaf) {
		if onPath = e == target; onPath {
			break
		}
	}
	if !onPath {
		return nil, &Error{Kind: NotOnBranch, Op: "edit context", Path: d.TargetID}
	}
	if d.Replacement == nil || d.Replacement.Blocks != nil {
		if editable(target) {
			return d, nil
		}
	} else if editable(target) {
		if target.role == llm.RoleAssistant || target.role == llm.RoleToolResult {
			content := llm.Blocks(&llm.Text{Text: d.Replacement.Text})
			return &ContextEditEntry{TargetID: d.TargetID, Replacement: &content}, nil
		}
		return d, nil
	}
	return nil, &Error{Kind: NotEditable, Op: "edit context", Path: d.TargetID}
}

// editable reports whether an entry has content that an edit can replace.
func editable(e *Entry) bool {
	if e.Type == TypeCustomMessage {
		return true
	}
	return e.role == llm.RoleUser || e.role == llm.RoleAssistant || e.role == llm.RoleToolResult
}

// oneLine puts a name on one line.
func oneLine(s string) string {
	if strings.ContainsAny(s, "\r\n") {
		var b strings.Builder
		inBreak := false
		for i := range len(s) {
			if s[i] == '\r' || s[i] == '\n' {
				if !inBreak {
					b.WriteByte(' ')
				}
				inBreak = true
				continue
			}
			inBreak = false
			b.WriteByte(s[i])
		}
		s = b.String()
	}
	return jsonwire.Trim(s)
}
