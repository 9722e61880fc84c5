package session

import (
	"regexp"
	"slices"
	"strings"
)

// Query is what somebody looks for in a list of sessions.
type Query struct {
	tokens []token
	re     *regexp.Regexp
}

type token struct {
	text   string // in lower case
	phrase bool
}

// ParseQuery reads a query: words that must all be found, "phrases", or after
// re: a regular expression. Case does not matter. Quotes that do not pair are
// ordinary characters. It fails on a bad regular expression.
func ParseQuery(s string) (Query, error) {
	s = strings.TrimSpace(s)
	if pattern, ok := strings.CutPrefix(s, "re:"); ok {
		if pattern = strings.TrimSpace(pattern); pattern == "" {
			return Query{}, nil
		}
		re, err := regexp.Compile("(?i)" + pattern)
		if err != nil {
			return Query{}, &Error{Kind: BadEntry, Op: "search", Err: err, Advice: "correct the regular expression"}
		}
		return Query{re: re}, nil
	}
	var q Query
	if strings.Count(s, `"`)%2 != 0 {
		for _, word := range strings.Fields(s) {
			q.tokens = append(q.tokens, token{text: strings.ToLower(word)})
		}
		return q, nil
	}
	for i, part := range strings.Split(s, `"`) {
		if i%2 == 1 {
			if phrase := strings.Join(strings.Fields(strings.ToLower(part)), " "); phrase != "" {
				q.tokens = append(q.tokens, token{text: phrase, phrase: true})
			}
			continue
		}
		for _, word := range strings.Fields(part) {
			q.tokens = append(q.tokens, token{text: strings.ToLower(word)})
		}
	}
	return q, nil
}

// Empty reports whether the query finds everything.
func (q Query) Empty() bool { return q.re == nil && len(q.tokens) == 0 }

// The ranks of a match, best first: where a token was found.
const (
	inName = iota
	inID
	inText
	inCWD
	nearName // the characters of the token in their order
	nearCWD
	nowhere
)

// Match reports whether a session is found and how well: lower ranks are
// better. Words and phrases rank by their worst place.
func (q Query) Match(info *Info) (rank int, ok bool) {
	if q.re != nil {
		for rank, field := range []string{info.Name, info.ID, info.Text, info.CWD} {
			if q.re.MatchString(field) {
				return rank, true
			}
		}
		return nowhere, false
	}
	f := fields{name: strings.ToLower(info.Name), id: strings.ToLower(info.ID), cwd: strings.ToLower(info.CWD), said: info.Text}
	for _, t := range q.tokens {
		r := f.place(t)
		if r == nowhere {
			return nowhere, false
		}
		rank = max(rank, r)
	}
	return rank, true
}

// fields are what a session is found by. The long text is looked at only when
// the short ones do not have a token.
type fields struct {
	name, id, cwd string
	said          string
	text          string // said in lower case, its white space in single spaces
}

func (f *fields) place(t token) int {
	switch {
	case strings.Contains(f.name, t.text):
		return inName
	case strings.Contains(f.id, t.text):
		return inID
	}
	if f.text == "" && f.said != "" {
		f.text = strings.Join(strings.Fields(strings.ToLower(f.said)), " ")
	}
	switch {
	case strings.Contains(f.text, t.text):
		return inText
	case strings.Contains(f.cwd, t.text):
		return inCWD
	case t.phrase:
		return nowhere
	case inOrder(f.name, t.text):
		return nearName
	case inOrder(f.cwd, t.text):
		return nearCWD
	}
	return nowhere
}

// inOrder reports whether s holds the characters of sub in their order.
func inOrder(s, sub string) bool {
	rest := []rune(sub)
	for _, r := range s {
		if r == rest[0] {
			if rest = rest[1:]; len(rest) == 0 {
				return true
			}
		}
	}
	return false
}

// Search picks the sessions that a query finds, best first; sessions that match
// equally well keep their order. With recent the order of the list stays.
func Search(list []Info, q Query, recent bool) []Info {
	if q.Empty() {
		return list
	}
	type hit struct {
		rank int
		info *Info
	}
	var hits []hit
	for i := range list {
		if rank, ok := q.Match(&list[i]); ok {
			hits = append(hits, hit{rank, &list[i]})
		}
	}
	if !recent {
		slices.SortStableFunc(hits, func(a, b hit) int { return a.rank - b.rank })
	}
	out := make([]Info, len(hits))
	for i, h := range hits {
		out[i] = *h.info
	}
	return out
}
