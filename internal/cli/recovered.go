package cli

import (
	"fmt"
	"strings"

	"github.com/pinch-agent/pinch/harness"
)

// recovered says on one line what was found of a run that was cut off, "" when
// there was none. goesOn says that it is continued, not followed by a prompt.
func recovered(r harness.Recovery, goesOn bool) string {
	if r.Err != nil {
		return "What the last run of this session did is not known: " + sentence(r.Err)
	}
	var parts []string
	count := func(n int, one, many string) {
		switch {
		case n == 1:
			parts = append(parts, "1 "+one)
		case n > 1:
			parts = append(parts, fmt.Sprint(n, " ", many))
		}
	}
	count(r.Results, "result recovered", "results recovered")
	count(r.Unknown, "outcome unknown", "outcomes unknown")
	count(r.NotStarted, "call not started", "calls not started")
	if goesOn {
		count(r.Again, "call runs again", "calls run again")
	} else {
		count(r.Again, "call given up", "calls given up")
	}
	count(r.Dropped, "result without a place in the conversation", "results without a place in the conversation")
	switch {
	case len(parts) > 0:
		return "The last run of this session was cut off: " + strings.Join(parts, ", ") + "."
	case r.CutOff:
		return "The last run of this session was cut off; all its results are here."
	}
	return ""
}
