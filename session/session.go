package session

import (
	"crypto/rand"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// Options say how to open a session. The zero value works.
type Options struct {
	// For a new session: its id ("" for a new one), working directory and the
	// path of the session that it continues ("" for none). CWD also stands in
	// for a header without one, and for one that could not spell it: a name that
	// is not UTF-8 is stored with replacement characters.
	ID            string
	CWD           string
	ParentSession string

	// ReadOnly opens without repairing or migrating the log, which has to be there;
	// appends fail.
	ReadOnly bool

	Now  func() time.Time // nil for time.Now
	Rand io.Reader        // source of ids; nil for crypto/rand
}

func (o *Options) now() time.Time {
	if o.Now != nil {
		return o.Now()
	}
	return time.Now()
}

func (o *Options) random() io.Reader {
	if o.Rand != nil {
		return o.Rand
	}
	return rand.Reader
}

// Session is a conversation that branches: a tree of entries over an
// append-only log, and a leaf at which it goes on. Its methods may be called
// from any number of goroutines; a session is the only writer of its log.
type Session struct {
	store Store
	opts  Options

	mu      sync.RWMutex
	header  Header
	log     *source  // that was loaded
	loaded  int      // entries at the start of order that are from it
	exact   bool     // all of their lines were read
	tooLong bool     // a line was passed over for its length
	order   []*Entry // in the order of the log
	ids     ids
	leaf    *Entry           // nil for the place before the first entry
	labels  map[string]label // by target
	labelNo int              // labels given so far
	name    string
	next    Position
	written bool // the log exists
	talks   bool // has a user or assistant message
	dirty   bool // written to since the last sync
	closed  bool

	trail trail // the path to the leaf
	view  view  // the projection at the leaf
	tally tally
}

type label struct {
	text  string
	entry *Entry // that set it
	no    int    // place in the order in which targets got a label
}

// Open opens the session in the store. A log that does not exist, or is empty,
// begins a new session; one without a valid header is refused as an
// InvalidFile and stays as it is.
//
// Opening repairs what a crash leaves: a last line without its line break gets
// one, so that the next append begins a line of its own. Lines that are no JSON
// are passed over and stay in the log. Logs of versions 1 and 2 are rewritten
// as version 3.
//
// The session owns the store from here on, also after an error: it is then closed.
func Open(store Store, o Options) (*Session, error) {
	s := &Session{store: store, opts: o}
	if err := s.open(); err != nil {
		store.Close()
		return nil, err
	}
	return s, nil
}

func (s *Session) open() error {
	log, err := s.store.Load()
	if err != nil {
		return err
	}
	s.next, s.written = log.Next, log.Exists
	if !log.Exists && s.opts.ReadOnly {
		return &Error{Kind: NotFound, Op: "open", Path: s.store.Path()}
	}
	if !log.Exists || log.Next == 0 {
		return s.begin(log.Exists)
	}
	s.log = newSource(&log, s.store.Path())
	header, version, ok, err := s.log.header()
	if err != nil {
		return err
	}
	if !ok {
		return &Error{Kind: InvalidFile, Op: "open", Path: s.store.Path(), Advice: "the file was left as it is"}
	}
	if needsMigration(version) {
		data, err := s.log.all()
		if err != nil {
			return err
		}
		if data, err = migrate(data, version, s.opts.random()); err != nil {
			return err
		}
		header, _, _ = findHeader(data)
		if !s.opts.ReadOnly {
			if s.next, err = s.store.Replace(s.next, data); err != nil {
				return err
			}
		}
		s.log = memorySource(data)
	} else if log.Torn && !s.opts.ReadOnly {
		if s.next, err = s.store.Append(s.next, []byte{'\n'}); err != nil {
			return err
		}
	}
	s.header = header
	return s.index()
}

// begin starts a new session, in an existing empty log at once.
func (s *Session) begin(exists bool) error {
	id := s.opts.ID
	switch {
	case id == "":
		var err error
		if id, err = NewID(s.opts.now(), s.opts.random()); err != nil {
			return err
		}
	case !ValidID(id):
		return &Error{Kind: BadID, Op: "create", Path: id}
	}
	s.header = newHeader(id, s.opts.now(), s.opts.CWD, s.opts.ParentSession)
	s.log, s.exact = memorySource(nil), true
	s.labels = map[string]label{}
	if !exists || s.opts.ReadOnly {
		return nil
	}
	next, err := s.store.Replace(s.next, append(slices.Clone(s.header.Raw), '\n'))
	if err != nil {
		return err
	}
	s.next, s.dirty = next, true
	return nil
}

// add puts an entry at the end of the list. One without an id is kept but has
// no place in the tree.
func (s *Session) add(e *Entry) {
	s.place(e)
	if e.ID != "" {
		s.ids.add(e, s.order)
	}
}

// place is add without the index of ids.
func (s *Session) place(e *Entry) {
	e.index = int32(len(s.order))
	s.order = append(s.order, e)
	if e.ID != "" {
		s.leaf = e
	}
	switch e.Type {
	case TypeMessage:
		s.talks = s.talks || talks(e)
	case TypeLabel:
		d := e.Data().(*LabelEntry)
		if d.Label == "" {
			delete(s.labels, d.TargetID)
			break
		}
		l, ok := s.labels[d.TargetID]
		if !ok {
			l.no = s.labelNo
			s.labelNo++
		}
		l.text, l.entry = d.Label, e
		s.labels[d.TargetID] = l
	case TypeInfo:
		s.name = jsonwire.Trim(e.Data().(*InfoEntry).Name)
	}
}

// Close makes the log durable and lets go of it. The session can still be read.
func (s *Session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	var err error
	if s.dirty {
		err = s.store.Sync()
	}
	if e := s.store.Close(); err == nil {
		err = e
	}
	return err
}

// Sync makes what was appended durable.
func (s *Session) Sync() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || !s.dirty {
		return nil
	}
	if err := s.store.Sync(); err != nil {
		return err
	}
	s.dirty = false
	return nil
}

// ID is the session's id.
func (s *Session) ID() string { return s.header.ID }

// Header is the first line of the log.
func (s *Session) Header() Header { return s.header }

// File is the path of the log, "" in memory. The file need not exist yet.
func (s *Session) File() string { return s.store.Path() }

// CWD is the working directory of the session.
func (s *Session) CWD() string {
	if s.header.CWD == "" || s.header.CWD == string(jsonwire.AppendUTF8(nil, s.opts.CWD)) {
		return s.opts.CWD
	}
	return s.header.CWD
}

// Saved reports whether the log exists: it begins with the first user or
// assistant message.
func (s *Session) Saved() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.written
}

// Name is the name that the user gave the session, "" for none.
func (s *Session) Name() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.name
}

// Err is the first failure to read a line of the log back, an *Error, nil as
// long as there was none. Entries whose lines could not be read say nothing, and
// the session takes no appends any more.
func (s *Session) Err() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.log.failed()
}

// Incomplete says what of the conversation could not be read, an *Error of the
// kind Damaged: entries above the first one of the branch at the leaf, or a line
// that is longer than the store reads. Nil when all of it is there. The log keeps
// what it has.
func (s *Session) Incomplete() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	e := &Error{Kind: Damaged, Op: "read", Path: s.store.Path()}
	if s.tooLong {
		e.Err = fmt.Errorf("a line is longer than %d MiB and was passed over", s.log.maxLine>>20)
	}
	var first *Entry
	for a := range s.up(s.leaf) {
		first = a
	}
	if first != nil && first.ParentID != "" && s.parent(first) == nil {
		if e.Err == nil {
			e.Err = fmt.Errorf("entry %s is missing or damaged", first.ParentID)
		}
		e.Advice = "the conversation begins behind it; the file keeps what was before"
	}
	if e.Err == nil {
		return nil
	}
	return e
}

// Entries lists all entries in the order of the log, of all branches.
func (s *Session) Entries() []*Entry {
	s.rlockWhole()
	defer s.mu.RUnlock()
	return slices.Clip(s.order)
}

// Entry is the entry with the id, nil when there is none.
func (s *Session) Entry(id string) *Entry {
	s.rlock()
	e := s.find(id)
	s.mu.RUnlock()
	if e == nil || !e.byHead || e.decoded.Load() != nil {
		return e
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.findSure(id)
}

// Leaf is the entry after which the session goes on, nil for the place before
// the first entry. After opening it is the last entry of the log.
func (s *Session) Leaf() *Entry {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.leaf
}

// LeafID is the id of the leaf, "" for the place before the first entry.
func (s *Session) LeafID() string {
	if e := s.Leaf(); e != nil {
		return e.ID
	}
	return ""
}

// Label is the label of an entry, "" for none.
func (s *Session) Label(id string) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.labels[id].text
}
