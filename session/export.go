package session

import (
	"bufio"
	"io"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// Export writes the path from the root to the leaf as a session of its own,
// each entry below the one before it.
func (s *Session) Export(w io.Writer) error {
	s.rlockWhole()
	path := s.path(s.leaf)
	s.mu.RUnlock()
	return s.exportPath(w, path)
}

// ExportBranch is Export of the path to an entry; the leaf stays where it is.
func (s *Session) ExportBranch(w io.Writer, id string) error {
	s.rlockWhole()
	leaf := s.find(id)
	path := s.path(leaf)
	s.mu.RUnlock()
	if leaf == nil {
		return &Error{Kind: NotFound, Op: "export", Path: id}
	}
	return s.exportPath(w, path)
}

// ExportTree writes the whole session with all of its branches: the header and
// every entry, as they are in the log.
func (s *Session) ExportTree(w io.Writer) error {
	return s.export(w, s.header.Raw, s.Entries(), func(_ *Entry, raw []byte) []byte { return raw })
}

func (s *Session) exportPath(w io.Writer, path []*Entry) error {
	header := newHeader(s.header.ID, s.opts.now(), s.CWD(), "")
	parent := ""
	return s.export(w, header.Raw, path, func(e *Entry, raw []byte) []byte {
		if e.ParentID != parent || parent == "" {
			raw = setMember(raw, "parentId", optID(parent))
		}
		parent = e.ID
		return raw
	})
}

func (s *Session) export(w io.Writer, header []byte, list []*Entry, line func(e *Entry, raw []byte) []byte) error {
	b := bufio.NewWriter(w)
	b.Write(header)
	b.WriteByte('\n')
	for e, raw := range rawLines(list, defaultChunk, nil) {
		if raw == nil {
			return e.log.failed()
		}
		b.Write(line(e, raw))
		b.WriteByte('\n')
	}
	if err := b.Flush(); err != nil {
		return &Error{Kind: IO, Op: "export", Path: s.store.Path(), Err: err}
	}
	return nil
}

// WithCWD is the header of the same session in another working directory.
// Members that this version does not know stay.
func (h Header) WithCWD(cwd string) Header {
	h.CWD = cwd
	h.Raw = setMember(h.Raw, "cwd", jsonwire.AppendString(nil, cwd))
	return h
}
