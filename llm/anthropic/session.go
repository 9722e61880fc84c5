package anthropic

import (
	"strings"
	"sync"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
)

const maxSessions = 10_000

// sessions is a bounded set of session ids; the oldest is forgotten first.
type sessions struct {
	mu    sync.Mutex
	ids   map[string]struct{}
	order []string // a ring once full
	next  int
}

func (s *sessions) has(id string) bool {
	if id == "" {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.ids[id]
	return ok
}

// add remembers id and returns the one that had to be forgotten for it, if
// any. Requests without a session are not remembered.
func (s *sessions) add(id string) (forgotten string) {
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

// remove takes id out; its place in the order is used up later.
func (s *sessions) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ids, id)
}

// exceedsStrictLimits reports whether a service refuses a request because of
// what its strict tools ask for together.
func exceedsStrictLimits(err *wire.StatusError) bool {
	obj := err.ErrorObject()
	typ, _ := jsonwire.StringValue(jsonwire.Get(obj, "type"))
	if err.Status != 400 || typ != "invalid_request_error" {
		return false
	}
	msg, _ := jsonwire.StringValue(jsonwire.Get(obj, "message"))
	for _, part := range []string{
		"The compiled grammar is too large",
		"Too many strict tools (",
		"Schemas contains too many parameters with union types (",
	} {
		if strings.Contains(msg, part) {
			return true
		}
	}
	return false
}
