package llm

import "slices"

// PatchSections applies the sections of a later system message to those so far,
// whose memory it uses: a removed section goes, a known one keeps its place, a
// new one comes last.
func PatchSections(have, patch []Section) []Section {
	for _, p := range patch {
		i := indexSection(have, p.Name)
		switch {
		case p.Removed && i >= 0:
			have = slices.Delete(have, i, i+1)
		case p.Removed:
		case i >= 0:
			have[i] = p
		default:
			have = append(have, p)
		}
	}
	return have
}

// DiffSections is the patch that leads from have to want: what is new or
// changed, then what is removed; nil when nothing changed.
func DiffSections(have, want []Section) []Section {
	var patch []Section
	for _, s := range want {
		if i := indexSection(have, s.Name); i < 0 || have[i].Text != s.Text {
			patch = append(patch, s)
		}
	}
	for _, s := range have {
		if indexSection(want, s.Name) < 0 {
			patch = append(patch, Section{Name: s.Name, Removed: true})
		}
	}
	return patch
}

func indexSection(list []Section, name string) int {
	return slices.IndexFunc(list, func(s Section) bool { return s.Name == name })
}

// PatchTools applies the tool changes of a system message to the tools declared
// so far, whose memory it uses: first the removals, then the additions, where a
// name that is still declared keeps its place.
func PatchTools(have []Tool, s *System) []Tool {
	if len(s.ToolsRemoved) > 0 {
		have = slices.DeleteFunc(have, func(t Tool) bool { return slices.Contains(s.ToolsRemoved, t.Name) })
	}
	for _, t := range s.ToolsAdded {
		if i := slices.IndexFunc(have, func(h Tool) bool { return h.Name == t.Name }); i >= 0 {
			have[i] = t
		} else {
			have = append(have, t)
		}
	}
	return have
}
