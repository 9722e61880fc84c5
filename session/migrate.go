package session

import (
	"io"
	"strconv"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

func needsMigration(version float64) bool { return version < Version }

// Migrate is a log of version 1 or 2 as one of version 3; other logs come back
// as they are. Members keep their order and form, lines that are no JSON stay
// where they are.
func Migrate(data []byte, random io.Reader) ([]byte, error) {
	_, version, ok := findHeader(data)
	if !ok {
		return nil, &Error{Kind: InvalidFile, Op: "migrate"}
	}
	if !needsMigration(version) {
		return data, nil
	}
	return migrate(data, version, random)
}

func migrate(data []byte, version float64, random io.Reader) ([]byte, error) {
	out := make([]byte, 0, len(data)+len(data)/4)
	ids := map[string]bool{}
	var numbered []string // by value: its new id, "" for headers
	parent := ""
	header := true
	s := newScanner(data)
	for s.line() {
		if !truthy(s.raw) {
			out = append(append(out, s.raw...), '\n')
			continue
		}
		isObject := s.object()
		line := s.raw
		id := ""
		switch {
		case !isObject:
		case header || s.typ == "session":
			line = setMember(line, "version", []byte(strconv.Itoa(Version)))
		default:
			if version < 2 {
				var err error
				if id, err = entryID(random, func(id string) bool { return ids[id] }); err != nil {
					return nil, err
				}
				ids[id] = true
				line = setMember(line, "id", jsonwire.AppendString(nil, id))
				line = setMember(line, "parentId", optID(parent))
				parent = id
			}
		}
		header = false
		numbered = append(numbered, id)
		if version < 2 && s.typ == TypeCompaction && id != "" {
			line = keptByIndex(line, numbered)
		}
		if isObject && s.typ == TypeMessage && s.role == "hookMessage" {
			message := setMember(jsonwire.Get(line, "message"), "role", []byte(`"custom"`))
			line = setMember(line, "message", message)
		}
		out = append(append(out, line...), '\n')
	}
	return out, nil
}

// keptByIndex turns the index of a compaction's first kept line into its id.
func keptByIndex(line []byte, numbered []string) []byte {
	v := jsonwire.Get(line, "firstKeptEntryIndex")
	var r jsonwire.Reader
	r.Reset(v)
	if r.Kind() != '0' {
		return line
	}
	f := r.Float()
	line = dropMember(line, "firstKeptEntryIndex")
	if i := int(f); float64(i) == f && i > 0 && i < len(numbered) && numbered[i] != "" {
		line = setMember(line, "firstKeptEntryId", jsonwire.AppendString(nil, numbered[i]))
	}
	return line
}

// Rehead is a log with the header of a new session in the place of its own; it
// is migrated on the way, and later headers are left out. Lines of entries stay
// as they are. The options must have an id.
func Rehead(data []byte, o Options) ([]byte, error) {
	data, err := Migrate(data, o.random())
	if err != nil {
		return nil, err
	}
	h := newHeader(o.ID, o.now(), o.CWD, o.ParentSession)
	out := append(append(make([]byte, 0, len(data)+len(h.Raw)), h.Raw...), '\n')
	first := true
	for s := newScanner(data); s.line(); {
		if first && truthy(s.raw) {
			first = false
			continue
		}
		if !first && (!s.object() || s.typ != "session") && len(s.raw) > 0 {
			out = append(append(out, s.raw...), '\n')
		}
	}
	return out, nil
}
