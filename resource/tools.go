package resource

import (
	"path"
	"slices"
	"strings"
)

// DefaultTools are the tools of a session for which nothing else was said.
func DefaultTools() []string { return []string{"read", "bash", "edit", "write"} }

// ToolSelection says which tools a session gets.
type ToolSelection struct {
	Builtin []string // names of all built-in tools
	Others  []string // names of tools of extensions and MCP servers, active unless something says otherwise
	Hidden  []string // those of them that no pattern means, only their whole name

	Allow     []string // entries of --tools; nil when the flag is absent
	Exclude   []string // names and patterns of --exclude-tools
	NoTools   bool     // --no-tools: none but those that Allow names
	NoBuiltin bool     // --no-builtin-tools: no built-in ones but those
	Default   []string // entries of the defaultTools setting; nil when unset
	Session   []string // names of the tools that the session had so far, in the place of Default; nil for a new one
}

// SelectionError says that entries of --tools contradict each other.
type SelectionError struct {
	Entry string // the offending entry; "" for the mix of kinds
}

func (e *SelectionError) Error() string {
	if e.Entry != "" {
		return "--tools: +name and -name entries take exact tool names, not patterns: " + e.Entry
	}
	return "--tools: tool names cannot be mixed with +name or -name entries"
}

// SelectTools names the tools of a session, in the order in which they are
// declared. Plain names and * patterns are an allowlist, which leaves MCP tools
// alone unless it names some itself; a list of only +name and -name changes the
// default selection. Unknown names are ignored. Exclusions come last.
func SelectTools(s ToolSelection) ([]string, error) {
	kind, err := entryKind(s.Allow)
	if err != nil {
		return nil, err
	}
	all := slices.Concat(s.Builtin, s.Others)
	standard := slices.Concat(s.defaults(), s.Others)
	if s.NoTools {
		standard = nil
	}
	var chosen []string
	switch {
	case s.Allow == nil:
		chosen = standard
	case kind == modifierEntries:
		chosen = modify(standard, s.Allow)
	default:
		chosen = s.allow(all)
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(chosen, func(name string) bool {
		drop := seen[name] || !slices.Contains(all, name) ||
			slices.ContainsFunc(s.Exclude, func(p string) bool { return matchTool(p, name) })
		seen[name] = true
		return drop
	}), nil
}

// defaults is the selection among the built-in tools without --tools: that of the
// session, else of the setting. Its entries are whole names: plain ones replace the
// standard, and changes apply to what there is then.
func (s ToolSelection) defaults() []string {
	if s.NoTools || s.NoBuiltin {
		return nil
	}
	if s.Session != nil {
		return s.builtin(slices.Clone(s.Session))
	}
	if s.Default == nil {
		return DefaultTools()
	}
	var plain, changes []string
	for _, e := range s.Default {
		if isModifier(e) {
			changes = append(changes, e)
		} else {
			plain = append(plain, e)
		}
	}
	if plain == nil && changes != nil {
		plain = DefaultTools()
	}
	return s.builtin(modify(plain, changes))
}

func (s ToolSelection) builtin(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(s.Builtin, name) })
}

type entries int

const (
	plainEntries entries = iota
	modifierEntries
)

func entryKind(list []string) (entries, error) {
	modifiers := 0
	for _, e := range list {
		if !isModifier(e) {
			continue
		}
		modifiers++
		if strings.Contains(e, "*") {
			return 0, &SelectionError{Entry: e}
		}
	}
	switch {
	case modifiers == 0:
		return plainEntries, nil
	case modifiers == len(list):
		return modifierEntries, nil
	}
	return 0, &SelectionError{}
}

func isModifier(entry string) bool {
	return strings.HasPrefix(entry, "+") || strings.HasPrefix(entry, "-")
}

// modify adds and removes single tools.
func modify(base, list []string) []string {
	out := slices.Clone(base)
	for _, e := range list {
		name := e[1:]
		at := slices.Index(out, name)
		switch {
		case e[0] == '+' && at < 0:
			out = append(out, name)
		case e[0] == '-' && at >= 0:
			out = slices.Delete(out, at, at+1)
		}
	}
	return out
}

// allow keeps what the entries name, in the order of the entries.
func (s ToolSelection) allow(all []string) []string {
	mcp := slices.ContainsFunc(s.Allow, func(e string) bool { return strings.HasPrefix(e, mcpPrefix) })
	var out []string
	for _, e := range s.Allow {
		for _, name := range all {
			if matchTool(e, name) && (e == name || !slices.Contains(s.Hidden, name)) {
				out = append(out, name)
			}
		}
	}
	if !mcp {
		for _, name := range all {
			if strings.HasPrefix(name, mcpPrefix) {
				out = append(out, name)
			}
		}
	}
	return out
}

const mcpPrefix = "mcp__"

func matchTool(pattern, name string) bool {
	if !strings.Contains(pattern, "*") {
		return pattern == name
	}
	// Only the star is special in tool patterns.
	escaped := strings.NewReplacer(`\`, `\\`, "?", `\?`, "[", `\[`).Replace(pattern)
	ok, err := path.Match(escaped, name)
	return err == nil && ok
}
