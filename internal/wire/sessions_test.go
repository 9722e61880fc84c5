package wire

import "testing"

func TestSessionsAreBounded(t *testing.T) {
	var s Sessions
	id := func(i int) string { return string(rune('a'+i%26)) + string(rune(0x4E00+i)) }
	for i := range maxSessions + 5 {
		forgotten := s.Add(id(i))
		if (forgotten != "") != (i >= maxSessions) {
			t.Fatalf("session %d: forgot %q", i, forgotten)
		}
	}
	if s.Has(id(4)) || !s.Has(id(5)) || len(s.ids) != maxSessions {
		t.Errorf("the oldest were not the ones to go: %d kept", len(s.ids))
	}
	s.Remove(id(9))
	if s.Has(id(9)) || s.Add("") != "" || s.Has("") {
		t.Error("removed and empty sessions are remembered")
	}
}

func TestExceedsStrictLimits(t *testing.T) {
	for message, want := range map[string]bool{
		"The compiled grammar is too large, which would cause performance issues.": true,
		"Too many strict tools (25). The maximum is 20.":                           true,
		"Schemas contains too many parameters with union types (20).":              true,
		"Input is too long for requested model.":                                   false,
		"":                                                                         false,
	} {
		if got := ExceedsStrictLimits(message); got != want {
			t.Errorf("%q: %v", message, got)
		}
	}
}
