package session

// Journal is what a Store may be besides: a place beside the log for the notes
// of a run that is under way, which the log itself has no form for. A program
// with a store of its own takes part by having these methods; sessions of other
// stores keep no journal, and what a crash cuts off in them is not known.
//
// As the methods of Store these are called from one goroutine at a time, between
// Load and Close, never for a session that was opened for reading. They report
// *Error values.
type Journal interface {
	// LoadJournal reads what there is: JSON lines, the last one possibly torn;
	// nothing where there is no journal.
	LoadJournal() ([]byte, error)
	// AppendJournal adds whole lines in one write, behind a line break where the
	// last line was torn. fresh says that what was there is of no more use and
	// may go, at once or later. The memory of lines is used again afterwards.
	// After an error the journal is as it was.
	AppendJournal(lines []byte, fresh bool) error
	// RemoveJournal takes the journal away. One that is not there is no error.
	RemoveJournal() error
}

// HasJournal reports whether the store keeps a journal for this session.
func (s *Session) HasJournal() bool {
	_, ok := s.store.(Journal)
	return ok && !s.opts.ReadOnly
}

// LoadJournal reads the notes that a run left which did not end.
func (s *Session) LoadJournal() (data []byte, err error) {
	err = s.withJournal("load journal", func(j Journal) error {
		data, err = j.LoadJournal()
		return err
	})
	return data, err
}

// AppendJournal adds whole lines to the notes of the run, see Journal. A log that
// was held back so far is written first: a journal stands beside one.
func (s *Session) AppendJournal(lines []byte, fresh bool) error {
	return s.withJournal("append to journal", func(j Journal) error {
		if !s.written {
			if err := s.flush(nil); err != nil {
				return err
			}
		}
		return j.AppendJournal(lines, fresh)
	})
}

// RemoveJournal takes the notes away: the run is over.
func (s *Session) RemoveJournal() error {
	return s.withJournal("remove journal", Journal.RemoveJournal)
}

// withJournal calls do where there is a journal.
func (s *Session) withJournal(op string, do func(Journal) error) error {
	if !s.HasJournal() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return &Error{Kind: Closed, Op: op, Path: s.store.Path()}
	}
	return do(s.store.(Journal))
}
