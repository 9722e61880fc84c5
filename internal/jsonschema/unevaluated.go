package jsonschema

import "strconv"

// unevaluatedProperties checks the members that no other keyword of s, or of
// schemas beside it that v fits, has looked at.
func (c *check) unevaluatedProperties(s *Schema, v *value) bool {
	seen := map[string]bool{}
	c.evaluatedProperties(s, v, seen, false)
	ok := true
	for _, m := range v.members {
		switch {
		case seen[m.name]:
		case s.unevaluated.never:
			ok = c.failBelow(m.name, "unknown field")
		default:
			ok = c.below(m.name, s.unevaluated, m.value) && ok
		}
	}
	return ok
}

func (c *check) evaluatedProperties(s *Schema, v *value, seen map[string]bool, own bool) {
	for _, m := range v.members {
		p := s.property(m.name)
		known := p != nil && p.listed
		for _, p := range s.patterns {
			known = known || p.re != nil && p.re.MatchString(m.name)
		}
		if known || s.additional != nil || own && s.unevaluated != nil {
			seen[m.name] = true
		}
	}
	for _, d := range s.dependents {
		if d.schema != nil && v.member(d.name) != nil {
			c.evaluatedProperties(d.schema, v, seen, true)
		}
	}
	c.beside(s, v, func(sub *Schema) { c.evaluatedProperties(sub, v, seen, true) })
}

// unevaluatedItems does the same for items.
func (c *check) unevaluatedItems(s *Schema, v *value) bool {
	seen := make([]bool, len(v.items))
	c.evaluatedItems(s, v, seen, false)
	ok := true
	for i, item := range v.items {
		if !seen[i] {
			ok = c.below(strconv.Itoa(i), s.unevaluatedItems, item) && ok
		}
	}
	return ok
}

func (c *check) evaluatedItems(s *Schema, v *value, seen []bool, own bool) {
	for i, item := range v.items {
		if i < len(s.prefix) || s.items != nil || own && s.unevaluatedItems != nil ||
			s.contains != nil && c.test(s.contains, item) {
			seen[i] = true
		}
	}
	c.beside(s, v, func(sub *Schema) { c.evaluatedItems(sub, v, seen, true) })
}

// beside visits the schemas that apply to the same value as s and that it fits.
func (c *check) beside(s *Schema, v *value, visitSchema func(*Schema)) {
	if !c.budget.spend() {
		return
	}
	if s.ref != nil {
		circle := false
		for _, a := range c.active {
			circle = circle || a.schema == s.ref && a.value == v
		}
		if !circle {
			c.active = append(c.active, visit{s.ref, v})
			visitSchema(s.ref)
			c.active = c.active[:len(c.active)-1]
		}
	}
	for _, sub := range s.allOf {
		visitSchema(sub)
	}
	for _, list := range [][]*Schema{s.anyOf, s.oneOf} {
		for _, sub := range list {
			if c.test(sub, v) {
				visitSchema(sub)
			}
		}
	}
	if s.cond != nil {
		branch := s.otherwise
		if c.test(s.cond, v) {
			visitSchema(s.cond)
			branch = s.then
		}
		if branch != nil {
			visitSchema(branch)
		}
	}
}
