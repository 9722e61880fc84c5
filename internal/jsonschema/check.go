package jsonschema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Problem is one place of a value that does not fit.
type Problem struct {
	Path   string // dotted, items by index; root for the whole
	Reason string
}

// budget bounds the steps spent on one value. Alternatives inside alternatives
// can take a time that no caller wants to wait for.
type budget struct{ left int }

// newBudget is the budget of a value of n bytes.
func newBudget(n int) *budget { return &budget{left: 200_000 + 20*n} }

// spend takes a step and reports whether there was one left.
func (b *budget) spend() bool {
	b.left--
	return b.left > 0
}

// check is one walk of a value along a schema.
type check struct {
	quiet    bool // only the verdict counts: stop at the first problem
	problems []Problem
	path     []string
	budget   *budget
	active   []visit // references being followed, to stop at circles
}

type visit struct {
	schema *Schema
	value  *value
}

// fits reports whether v fits s.
func fits(s *Schema, v *value, b *budget) bool {
	c := check{quiet: true, budget: b}
	return c.schema(s, v)
}

func (c *check) fail(reason string) bool {
	if !c.quiet {
		p := Problem{Path: "root", Reason: reason}
		if len(c.path) > 0 {
			p.Path = strings.Join(c.path, ".")
		}
		for _, q := range c.problems {
			if p == q {
				return false
			}
		}
		c.problems = append(c.problems, p)
	}
	return false
}

func (c *check) failf(format string, args ...any) bool {
	if c.quiet {
		return false
	}
	return c.fail(fmt.Sprintf(format, args...))
}

// below checks v, which stands in its parent under name.
func (c *check) below(name string, s *Schema, v *value) bool {
	c.path = append(c.path, name)
	ok := c.schema(s, v)
	c.path = c.path[:len(c.path)-1]
	return ok
}

func (c *check) failBelow(name, reason string) bool {
	c.path = append(c.path, name)
	c.fail(reason)
	c.path = c.path[:len(c.path)-1]
	return false
}

// test is a verdict without problems, for keywords that ask about other schemas.
func (c *check) test(s *Schema, v *value) bool {
	t := check{quiet: true, budget: c.budget, active: c.active}
	return t.schema(s, v)
}

// schema checks v. Without quiet it goes on after a problem, except behind a
// wrong type, where the rest would only repeat it.
func (c *check) schema(s *Schema, v *value) bool {
	if !c.budget.spend() {
		return c.fail("too many alternatives to check")
	}
	if s.never {
		return c.fail("no value is allowed here")
	}
	if s.kinds != 0 && !s.accepts(v) {
		return c.failf("expected %s, got %s", strings.Join(s.types, " or "), v.typeName())
	}
	ok := true
	more := func(verdict bool) bool {
		ok = ok && verdict
		return ok || !c.quiet
	}
	if s.enum != nil && !contains(s.enum, v) && !more(c.failf("expected one of %s", s.enumText)) {
		return false
	}
	if s.constant != nil && !equal(s.constant, v) && !more(c.failf("expected %s", s.constant.append(nil))) {
		return false
	}
	switch v.kind {
	case isObject:
		more(c.object(s, v))
	case isArray:
		more(c.array(s, v))
	case isString:
		more(c.text(s, v))
	case isNumber:
		more(c.number(s, v))
	}
	if !more(true) {
		return false
	}
	for _, sub := range s.allOf {
		if !more(c.schema(sub, v)) {
			return false
		}
	}
	if s.anyOf != nil && !more(c.anyOf(s.anyOf, v)) {
		return false
	}
	if s.oneOf != nil && !more(c.oneOf(s.oneOf, v)) {
		return false
	}
	if s.not != nil && c.test(s.not, v) && !more(c.fail("must not match the schema in not")) {
		return false
	}
	if s.cond != nil {
		branch := s.otherwise
		if c.test(s.cond, v) {
			branch = s.then
		}
		if branch != nil && !more(c.schema(branch, v)) {
			return false
		}
	}
	if s.ref != nil && !more(c.follow(s.ref, v)) {
		return false
	}
	if s.unevaluated != nil && v.kind == isObject && ok && !more(c.unevaluatedProperties(s, v)) {
		return false
	}
	if s.unevaluatedItems != nil && v.kind == isArray && ok && !more(c.unevaluatedItems(s, v)) {
		return false
	}
	return ok
}

// accepts reports whether s names the type of v.
func (s *Schema) accepts(v *value) bool {
	return s.kinds&v.kind != 0 || v.kind == isNumber && s.kinds&isInteger != 0 && v.whole()
}

func contains(list []*value, v *value) bool {
	for _, e := range list {
		if equal(e, v) {
			return true
		}
	}
	return false
}

// follow checks v against the target of a reference, which a circle of
// references that never gets to another value does not fit.
func (c *check) follow(s *Schema, v *value) bool {
	for _, a := range c.active {
		if a.schema == s && a.value == v {
			return c.fail("cannot be checked: the schema refers to itself")
		}
	}
	c.active = append(c.active, visit{s, v})
	ok := c.schema(s, v)
	c.active = c.active[:len(c.active)-1]
	return ok
}

func (c *check) object(s *Schema, v *value) bool {
	ok := true
	for _, name := range s.required {
		if v.member(name) == nil {
			ok = c.failBelow(name, "missing")
		}
	}
	// In the order of the schema, whatever order the value has.
	for i := range s.properties {
		if !ok && c.quiet {
			return false
		}
		own := &s.properties[i]
		if !own.listed {
			continue
		}
		if m := v.member(own.name); m != nil {
			ok = c.below(own.name, own.schema, m) && ok
		}
	}
	if s.patterns != nil || s.additional != nil || s.names != nil {
		for _, m := range v.members {
			if !ok && c.quiet {
				return false
			}
			ok = c.otherMember(s, m) && ok
		}
	}
	if len(v.members) < s.minProps {
		ok = c.failf("expected at least %d properties", s.minProps)
	}
	if s.maxProps >= 0 && len(v.members) > s.maxProps {
		ok = c.failf("expected at most %d properties", s.maxProps)
	}
	for _, d := range s.dependents {
		if v.member(d.name) == nil {
			continue
		}
		for _, name := range d.required {
			if v.member(name) == nil {
				ok = c.failBelow(name, "required when "+d.name+" is present")
			}
		}
		if d.schema != nil {
			ok = c.schema(d.schema, v) && ok
		}
	}
	return ok
}

// otherMember checks a member by what is not said of its name alone.
func (c *check) otherMember(s *Schema, m member) bool {
	ok := true
	for _, p := range s.patterns {
		if p.re != nil && p.re.MatchString(m.name) {
			ok = c.below(m.name, p.schema, m.value) && ok
		}
	}
	switch {
	case s.additional == nil, s.knows(m.name):
	case s.additional.never:
		ok = c.failBelow(m.name, "unknown field")
	default:
		ok = c.below(m.name, s.additional, m.value) && ok
	}
	if s.names != nil && !c.test(s.names, &value{kind: isString, text: m.name}) {
		ok = c.failBelow(m.name, "invalid property name")
	}
	return ok
}

// knows reports whether a member is described by its name or by a pattern.
func (s *Schema) knows(name string) bool {
	if own := s.property(name); own != nil && own.listed {
		return true
	}
	for _, p := range s.patterns {
		if p.re != nil && p.re.MatchString(name) {
			return true
		}
	}
	return false
}

func (c *check) array(s *Schema, v *value) bool {
	ok := true
	for i, item := range v.items {
		if !ok && c.quiet {
			return false
		}
		sub := s.items
		if i < len(s.prefix) {
			sub = s.prefix[i]
		}
		if sub != nil {
			ok = c.below(strconv.Itoa(i), sub, item) && ok
		}
	}
	if len(v.items) < s.minItems {
		ok = c.failf("expected at least %d items", s.minItems)
	}
	if s.maxItems >= 0 && len(v.items) > s.maxItems {
		ok = c.failf("expected at most %d items", s.maxItems)
	}
	if s.unique && !unique(v.items) {
		ok = c.fail("expected unique items")
	}
	if s.contains == nil {
		return ok
	}
	n := 0
	for _, item := range v.items {
		if c.test(s.contains, item) {
			n++
		}
	}
	switch {
	case n >= s.minContains && (s.maxContains < 0 || n <= s.maxContains):
		return ok
	case s.maxContains < 0 && s.minContains == 1:
		return c.fail("expected at least 1 matching item")
	case s.maxContains < 0:
		return c.failf("expected at least %d matching items", s.minContains)
	case s.minContains == 0:
		return c.failf("expected at most %d matching items", s.maxContains)
	}
	return c.failf("expected between %d and %d matching items", s.minContains, s.maxContains)
}

func unique(items []*value) bool {
	texts := map[string]bool{}
	for i, v := range items {
		if v.kind == isString {
			if texts[v.text] {
				return false
			}
			texts[v.text] = true
			continue
		}
		for _, w := range items[:i] {
			if equal(v, w) {
				return false
			}
		}
	}
	return true
}

func (c *check) text(s *Schema, v *value) bool {
	ok := true
	if s.maxLength >= 0 || s.minLength > 0 {
		n := 0
		for i := range len(v.text) {
			if v.text[i]&0xC0 != 0x80 {
				n++
			}
		}
		if n < s.minLength {
			ok = c.failf("expected at least %d characters", s.minLength)
		}
		if s.maxLength >= 0 && n > s.maxLength {
			ok = c.failf("expected at most %d characters", s.maxLength)
		}
	}
	if s.pattern != nil && !s.pattern.MatchString(v.text) {
		ok = c.failf("expected to match %s", s.pattern)
	}
	if s.format != "" && !fitsFormat(s.format, v.text) {
		ok = c.failf("expected format %s", s.format)
	}
	return ok
}

func (c *check) number(s *Schema, v *value) bool {
	ok := true
	if s.minimum != nil && compare(v, s.minimum) < 0 {
		ok = c.failf("expected >= %s", s.minimum.text)
	}
	if s.maximum != nil && compare(v, s.maximum) > 0 {
		ok = c.failf("expected <= %s", s.maximum.text)
	}
	if s.above != nil && compare(v, s.above) <= 0 {
		ok = c.failf("expected > %s", s.above.text)
	}
	if s.below != nil && compare(v, s.below) >= 0 {
		ok = c.failf("expected < %s", s.below.text)
	}
	if s.multiple != nil && !multipleOf(v, s.multiple) {
		ok = c.failf("expected a multiple of %s", s.multiple.text)
	}
	return ok
}

func (c *check) anyOf(branches []*Schema, v *value) bool {
	for _, b := range branches {
		if c.test(b, v) {
			return true
		}
	}
	return c.noBranch(branches, v)
}

func (c *check) oneOf(branches []*Schema, v *value) bool {
	n := 0
	for _, b := range branches {
		if c.test(b, v) {
			n++
		}
	}
	switch n {
	case 0:
		return c.noBranch(branches, v)
	case 1:
		return true
	}
	return c.fail("matches more than one alternative")
}

// noBranch says why v fits no branch, in the way that helps most: the allowed
// values or types when the branches are only such, the problems of the one
// branch that v was meant for when its type tells, else those of the branch that
// names most of its members, or whose first problem is deepest.
func (c *check) noBranch(branches []*Schema, v *value) bool {
	if c.quiet {
		return false
	}
	var values, types []string
	var meant []*Schema
	plain := true // each branch has a type or values
	for _, branch := range branches {
		b := branch.target()
		switch {
		case b.constant != nil:
			values = append(values, string(b.constant.append(nil)))
		case b.enum != nil:
			for _, e := range b.enum {
				values = append(values, string(e.append(nil)))
			}
		default:
			for _, t := range b.types {
				if !slices.Contains(types, t) {
					types = append(types, t)
				}
			}
			plain = plain && b.types != nil
		}
		if b.kinds != 0 && b.accepts(v) {
			meant = append(meant, branch)
		}
	}
	switch {
	case len(meant) == 1:
		return c.schema(meant[0], v) // which does not fit, as no branch does
	case len(types) == 0 && plain:
		return c.failf("expected one of [%s]", strings.Join(values, ","))
	case len(meant) == 0 && len(values) == 0 && plain:
		return c.failf("expected %s, got %s", strings.Join(types, " or "), v.typeName())
	}
	var best []Problem
	named := -1
	for _, branch := range branches {
		t := check{path: c.path, budget: c.budget, active: c.active}
		if t.schema(branch, v) || len(t.problems) == 0 {
			continue
		}
		n := 0
		b := branch.target()
		for _, m := range v.members {
			if own := b.property(m.name); own != nil && own.listed {
				n++
			}
		}
		if n > named || n == named && len(t.problems[0].Path) > len(best[0].Path) {
			best, named = t.problems, n
		}
	}
	c.problems = append(c.problems, best...)
	return false
}

// target is what s stands for when it is only a reference.
func (s *Schema) target() *Schema {
	for range 8 {
		if s.ref == nil {
			break
		}
		s = s.ref
	}
	return s
}
