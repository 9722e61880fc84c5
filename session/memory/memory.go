// Package memory keeps sessions in memory: for tests, for one-off questions and
// for programs that store sessions in their own way.
package memory

import (
	"bytes"
	"slices"
	"sync"

	"github.com/pinch-agent/pinch/session"
)

// Store is a session.Store without a file. The zero Store is an empty log.
type Store struct {
	mu     sync.Mutex
	data   []byte
	exists bool
}

// New is an empty store.
func New() *Store { return &Store{} }

// NewFrom is a store that holds a log.
func NewFrom(data []byte) *Store { return &Store{data: slices.Clone(data), exists: true} }

// Open is a session in memory that begins empty.
func Open(o session.Options) (*session.Session, error) { return session.Open(New(), o) }

// Path implements session.Store.
func (*Store) Path() string { return "" }

// Load implements session.Store.
func (s *Store) Load() (session.Log, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return session.Log{
		Data:   slices.Clone(s.data),
		Torn:   len(s.data) > 0 && s.data[len(s.data)-1] != '\n',
		Next:   session.Position(len(s.data)),
		Exists: s.exists,
	}, nil
}

// Append implements session.Store.
func (s *Store) Append(at session.Position, lines []byte) (session.Position, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at == 0 && s.exists {
		return 0, &session.Error{Kind: session.Exists, Op: "append"}
	}
	if int(at) != len(s.data) {
		return 0, &session.Error{Kind: session.Conflict, Op: "append"}
	}
	s.data = append(s.data, lines...)
	s.exists = true
	return session.Position(len(s.data)), nil
}

// Replace implements session.Store.
func (s *Store) Replace(at session.Position, data []byte) (session.Position, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if int(at) != len(s.data) {
		return 0, &session.Error{Kind: session.Conflict, Op: "replace"}
	}
	s.data, s.exists = slices.Clone(data), true
	return session.Position(len(s.data)), nil
}

// Sync implements session.Store.
func (*Store) Sync() error { return nil }

// Close implements session.Store. The log stays readable.
func (*Store) Close() error { return nil }

// Bytes is the log as it stands.
func (s *Store) Bytes() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.data)
}
