package mistral

import (
	"strconv"

	"github.com/pinch-agent/pinch/llm/transcript"
)

// idLen is the length of every tool call id that the service takes.
const idLen = 9

// legalID reports whether the service takes a tool call id.
func legalID(id string) bool {
	return len(id) == idLen && len(alphanumeric(id)) == idLen
}

// shortID makes a legal id of any other. Ids that become alike are told apart
// by the number of the attempt, from 0.
func shortID(id string, attempt int) string {
	seed := alphanumeric(id)
	if attempt == 0 && len(seed) == idLen {
		return seed
	}
	if seed == "" {
		seed = id
	}
	for {
		s := seed
		if attempt > 0 {
			s += ":" + strconv.Itoa(attempt)
		}
		if hash := transcript.ShortHash(s); len(hash) >= idLen {
			return hash[:idLen]
		}
		attempt++ // a hash has no leading zeros
	}
}

// alphanumeric is what of s an id may hold.
func alphanumeric(s string) string {
	legal := func(c byte) bool { return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' }
	for i := range len(s) {
		if legal(s[i]) {
			continue
		}
		out := append(make([]byte, 0, len(s)), s[:i]...)
		for _, c := range []byte(s[i+1:]) {
			if legal(c) {
				out = append(out, c)
			}
		}
		return string(out)
	}
	return s
}
