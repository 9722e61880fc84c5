package wire

import (
	"net/http"
	"strings"
	"sync"
)

// maxSessions bounds what is remembered of sessions.
const maxSessions = 10_000

// Sessions is a bounded set of session ids; the oldest is forgotten first. It is
// safe for concurrent use; the zero value is ready.
type Sessions struct {
	mu    sync.Mutex
	ids   map[string]struct{}
	order []string // a ring once full
	next  int
}

// Has reports whether id is remembered. The empty id never is.
func (s *Sessions) Has(id string) bool {
	if id == "" {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.ids[id]
	return ok
}

// Add remembers id and returns the one that had to be forgotten for it, if
// any. Requests without a session are not remembered.
func (s *Sessions) Add(id string) (forgotten string) {
	if id == "" {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.ids[id]; ok {
		return ""
	}
	if s.ids == nil {
		s.ids = map[string]struct{}{}
	}
	s.ids[id] = struct{}{}
	if len(s.order) < maxSessions {
		s.order = append(s.order, id)
		return ""
	}
	forgotten = s.order[s.next]
	delete(s.ids, forgotten)
	s.order[s.next] = id
	s.next = (s.next + 1) % maxSessions
	return forgotten
}

// Remove takes id out; its place in the order is used up later.
func (s *Sessions) Remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ids, id)
}

// WantsTools reports whether a service refuses a request because its history
// has tool calls or results and it declares no tools.
func WantsTools(err *StatusError) bool {
	return err.Status == http.StatusBadRequest &&
		(strings.Contains(err.Message, "toolConfig field must be defined") || strings.Contains(err.Message, "blocks must define tools"))
}

// ExceedsStrictLimits reports whether an error's message says that Claude does
// not take what the strict tools of a request ask for together.
func ExceedsStrictLimits(message string) bool {
	for _, part := range []string{
		"The compiled grammar is too large",
		"Too many strict tools (",
		"Schemas contains too many parameters with union types (",
	} {
		if strings.Contains(message, part) {
			return true
		}
	}
	return false
}
