package google

import (
	"strconv"
	"strings"
)

// Rules are what follows from the id of a model.
type Rules struct {
	// ThinkingLevel says that thinking is asked for by a level. Other models
	// take a budget of tokens.
	ThinkingLevel bool
	// CallIDs says that calls and their results carry ids. Other models match
	// them by name and order.
	CallIDs bool
	// StrictTools says that tools can be enforced to follow their schema.
	StrictTools bool
	// ResultImages says that the result of a tool can hold pictures. Other models
	// get them in a message behind it.
	ResultImages bool
}

// RulesOf tells the rules of a model by its id, in any case.
func RulesOf(id string) Rules {
	id = strings.ToLower(id)
	major, known := majorVersion(id)
	newer := known && major >= 3
	return Rules{
		ThinkingLevel: takesLevel(id),
		CallIDs:       newer || strings.HasPrefix(id, "claude-") || strings.HasPrefix(id, "gpt-oss-"),
		StrictTools:   newer,
		ResultImages:  newer || !known,
	}
}

// majorVersion is the number behind gemini- or gemini-live-. Ids without one,
// such as gemini-flash-latest, have none.
func majorVersion(id string) (major int, ok bool) {
	rest, ok := strings.CutPrefix(id, "gemini-")
	if !ok {
		return 0, false
	}
	rest = strings.TrimPrefix(rest, "live-")
	digits, _ := splitDigits(rest)
	major, err := strconv.Atoi(digits)
	return major, err == nil
}

// takesLevel reports whether a model takes a thinking level: Gemini 3 Pro and
// Flash, every Gemini from 4 on, the two names for the latest Flash, and Gemma 4.
// A name with a version may stand inside an id, as gateways put things before it.
func takesLevel(id string) bool {
	switch id {
	case "gemini-flash-latest", "gemini-flash-lite-latest":
		return true
	}
	if strings.Contains(id, "gemma-4") || strings.Contains(id, "gemma4") {
		return true
	}
	const name = "gemini-"
	for rest := id; ; {
		_, after, found := strings.Cut(rest, name)
		if !found {
			return false
		}
		rest = after
		digits, tail := splitDigits(after)
		if len(digits) == 2 && digits[0] != '0' || digits >= "4" && len(digits) == 1 {
			return true
		}
		if digits != "3" {
			continue
		}
		if minor, ok := strings.CutPrefix(tail, "."); ok {
			if d, t := splitDigits(minor); d != "" {
				tail = t
			}
		}
		if strings.HasPrefix(tail, "-pro") || strings.HasPrefix(tail, "-flash") {
			return true
		}
	}
}

// splitDigits cuts s behind the digits that begin it.
func splitDigits(s string) (digits, rest string) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return s[:i], s[i:]
}
