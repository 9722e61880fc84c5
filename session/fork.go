package session

import (
	"slices"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// Fork makes a new session in the store of the path from the root to an entry;
// "" makes an empty one. To clone a session, fork it at its leaf.
//
// Labels are taken off the path, which is chained anew, and put behind its end,
// those set on other branches too. The new session names this one as its
// parent, unless this one is only in memory. It is written at once when it has
// a user or assistant message. Of the options CWD and ParentSession default to
// those of this session.
//
// The new session owns the store, which is closed after an error.
func (s *Session) Fork(store Store, id string, o Options) (*Session, error) {
	f, err := s.fork(store, id, o)
	if err != nil {
		store.Close()
		return nil, err
	}
	return f, nil
}

func (s *Session) fork(store Store, id string, o Options) (*Session, error) {
	s.rlockWhole()
	defer s.mu.RUnlock()
	leaf := s.find(id)
	if leaf == nil && id != "" {
		return nil, &Error{Kind: NotFound, Op: "fork", Path: id}
	}
	if o.CWD == "" {
		o.CWD = s.CWD()
	}
	if o.ParentSession == "" {
		o.ParentSession = s.store.Path()
	}
	if o.Now == nil {
		o.Now = s.opts.Now
	}
	if o.Rand == nil {
		o.Rand = s.opts.Rand
	}
	f := &Session{store: store, opts: o}
	log, err := store.Load()
	if err != nil {
		return nil, err
	}
	if log.Exists {
		return nil, &Error{Kind: Exists, Op: "fork", Path: store.Path()}
	}
	if err := f.begin(false); err != nil {
		return nil, err
	}
	if err := f.take(s.path(leaf)); err != nil {
		return nil, err
	}
	if err := s.relabel(f); err != nil {
		return nil, err
	}
	if !f.talks {
		return f, nil
	}
	return f, f.flush(nil)
}

// take adds the entries of a path of another session, each below the one before.
// Their content is shared, except for a compaction whose kept tail began at a
// label.
func (s *Session) take(path []*Entry) error {
	size := 0
	for _, e := range path {
		size += int(e.size) + len(`"parentId":""`) + 64
	}
	log := memorySource(make([]byte, 0, size))
	for e, raw := range rawLines(path, defaultChunk, func(e *Entry) bool { return e.Type != TypeLabel }) {
		if raw == nil {
			return e.log.failed()
		}
		n := &Entry{ID: e.ID, Type: e.Type, role: e.role, log: log, at: log.size}
		if s.leaf != nil {
			n.ParentID = s.leaf.ID
		}
		if n.ParentID != e.ParentID {
			raw = setMember(raw, "parentId", optID(n.ParentID))
		}
		kept := keptBehindLabel(e, path)
		if kept != "" {
			raw = setMember(raw, "firstKeptEntryId", jsonwire.AppendString(nil, kept))
		} else {
			n.decoded.Store(e.decoded.Load())
		}
		n.size = uint32(len(raw))
		log.data = append(log.data, raw...)
		log.size = int64(len(log.data))
		s.add(n)
	}
	return nil
}

// keptBehindLabel is the entry from which a compaction keeps when the one that
// it names is a label; "" for others.
func keptBehindLabel(e *Entry, path []*Entry) string {
	if e.Type != TypeCompaction {
		return ""
	}
	d := e.Data().(*CompactionEntry)
	at := slices.IndexFunc(path, func(p *Entry) bool { return p.ID == d.FirstKept })
	if at < 0 || path[at].Type != TypeLabel {
		return ""
	}
	for _, p := range path[at:] {
		if p.Type != TypeLabel {
			return p.ID
		}
	}
	return ""
}

// relabel gives the entries of a fork the labels that they have here, in the
// order in which they first got one.
func (s *Session) relabel(f *Session) error {
	var kept []label
	for target, l := range s.labels {
		if f.find(target) != nil {
			kept = append(kept, l)
		}
	}
	slices.SortFunc(kept, func(a, b label) int { return a.no - b.no })
	for _, l := range kept {
		id, err := entryID(f.opts.random(), func(id string) bool { return f.find(id) != nil })
		if err != nil {
			return err
		}
		d := &LabelEntry{TargetID: l.entry.Data().(*LabelEntry).TargetID, Label: l.text}
		e := &Entry{ID: id, Type: TypeLabel}
		if f.leaf != nil {
			e.ParentID = f.leaf.ID
		}
		e.hold(line(e, d, l.entry.Timestamp()))
		e.decoded.Store(decodedOf(d, e.Time().UnixMilli()))
		f.add(e)
	}
	return nil
}
