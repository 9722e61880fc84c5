package responses

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/transcript"
)

// The protocol has two ids for a tool call: that of the call, which its result
// names, and that of the item. Messages hold both in one, with a | between.

// maxID is the longest id that the service takes, in bytes.
const maxID = 64

// splitID parts a tool call id into that of the call and that of the item, ""
// for none.
func splitID(id string) (call, item string) {
	call, item, _ = strings.Cut(id, "|")
	item, _, _ = strings.Cut(item, "|")
	return call, item
}

// legalID reports whether the service takes a tool call id.
func legalID(id string) bool {
	call, item := splitID(id)
	return call != "" && len(call) <= maxID && (len(item) <= maxID || !isItemID(item))
}

// callKey is the id of the call in a tool call id.
func callKey(id string) string {
	call, _ := splitID(id)
	return call
}

// isItemID reports whether an item's id is one that is sent.
func isItemID(item string) bool {
	return strings.HasPrefix(item, functionItem) || strings.HasPrefix(item, customItem)
}

// How ids of the items of calls begin.
const (
	functionItem = "fc_"
	customItem   = "ctc_"
)

// normalizeID makes a legal id of one from another model, or of one that the
// service refuses.
func normalizeID(d *dialect, m *llm.Model, id string, from *llm.Assistant) string {
	call, item := splitID(id)
	kin := from.Provider == m.Provider && from.API == m.API
	if kin && from.Model == m.ID {
		if len(call) > maxID {
			call = plainID(call)
		}
		return call // without an item the service makes one
	}
	if !strings.Contains(id, "|") || !slices.Contains(d.callIDs, m.Provider) {
		return plainID(id)
	}
	call = plainID(call)
	if !kin {
		return call + "|" + functionItem + transcript.ShortHash(item)
	}
	if item = plainID(item); !strings.HasPrefix(item, functionItem) {
		item = plainID(functionItem + item)
	}
	return call + "|" + item
}

// variantID is another id for a call whose id is taken. The service wants items
// to have ids of their own too, so this one names none.
func variantID(id string, n int) string {
	call, _ := splitID(id)
	suffix := "_" + strconv.Itoa(n)
	if call == "" {
		call = "call"
	}
	return call[:min(len(call), maxID-len(suffix))] + suffix
}

// plainID is id with all but letters, digits, - and _ replaced, within the
// longest length, without _ at its end.
func plainID(id string) string {
	plain := make([]byte, 0, min(len(id), maxID))
	for _, r := range id {
		if len(plain) == maxID {
			break
		}
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			plain = append(plain, byte(r))
		case r > 0xFFFF && len(plain)+1 < maxID:
			plain = append(plain, "__"...) // two UTF-16 units
		default:
			plain = append(plain, '_')
		}
	}
	return strings.TrimRight(string(plain), "_")
}

// The signature of a text is a JSON object with the id of its item and the
// phase of the answer; that of old sessions is the id alone.

// textSignature is the signature of an item's text, nil when it has no id.
func textSignature(id, phase string) *string {
	if id == "" {
		return nil
	}
	b := append([]byte(nil), `{"v":1,"id":`...)
	b = jsonwire.AppendString(b, id)
	if legalPhase(phase) {
		b = append(b, `,"phase":`...)
		b = jsonwire.AppendString(b, phase)
	}
	return new(string(append(b, '}')))
}

// readTextSignature is the id and the phase that a signature tells, "" for
// what it does not.
func readTextSignature(signature *string) (id, phase string) {
	if signature == nil {
		return "", ""
	}
	s := *signature
	if !jsonwire.IsObject([]byte(s)) {
		return s, ""
	}
	if id, _ = jsonwire.StringValue(jsonwire.Get([]byte(s), "id")); id == "" {
		return "", ""
	}
	if phase, _ = jsonwire.StringValue(jsonwire.Get([]byte(s), "phase")); !legalPhase(phase) {
		phase = ""
	}
	return id, phase
}

func legalPhase(phase string) bool { return phase == "commentary" || phase == phaseFinal }

const phaseFinal = "final_answer"
