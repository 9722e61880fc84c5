package transcript

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/pinch-agent/pinch/llm"
)

// ShortHash is a hash of s for derived ids: at most 14 lower-case letters and
// digits. Stored sessions hold such ids, so it must never change.
func ShortHash(s string) string {
	h1, h2 := uint32(0xdeadbeef), uint32(0x41c6ce57)
	mix := func(c uint32) {
		h1 = (h1 ^ c) * 2654435761
		h2 = (h2 ^ c) * 1597334677
	}
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1 && i+2 < len(s) && s[i] == 0xED && s[i+1] >= 0xA0:
			// Half of a surrogate pair.
			mix(0xD000 | uint32(s[i+1]&0x3F)<<6 | uint32(s[i+2]&0x3F))
			n = 3
		case r > 0xFFFF:
			hi, lo := utf16.EncodeRune(r)
			mix(uint32(hi))
			mix(uint32(lo))
		default:
			mix(uint32(r))
		}
		i += n
	}
	h1 = ((h1 ^ h1>>16) * 2246822507) ^ ((h2 ^ h2>>13) * 3266489909)
	h2 = ((h2 ^ h2>>16) * 2246822507) ^ ((h1 ^ h1>>13) * 3266489909)
	return strconv.FormatUint(uint64(h2), 36) + strconv.FormatUint(uint64(h1), 36)
}

// WordID makes a tool call id of letters, digits, underscore and hyphen, at most
// 64 of them, as the protocols of Claude want it: for Rules.NormalizeID.
func WordID(id string, _ *llm.Assistant) string {
	out := make([]byte, 0, min(len(id), maxIDLen))
	for _, r := range id {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			out = append(out, byte(r))
		case r > 0xFFFF: // two UTF-16 units, as peers count
			out = append(out, '_', '_')
		default:
			out = append(out, '_')
		}
		if len(out) >= maxIDLen {
			return string(out[:maxIDLen])
		}
	}
	return string(out)
}

// IsWordID reports whether WordID keeps an id as it is: for Rules.LegalID.
func IsWordID(id string) bool {
	for i := range len(id) {
		switch c := id[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return len(id) <= maxIDLen
}

// PromptCacheKey is the cache key of a session: its id, cut to 64 characters.
func PromptCacheKey(sessionID string) string {
	n := 0
	for i := range sessionID {
		if n == 64 {
			return sessionID[:i]
		}
		n++
	}
	return sessionID
}
