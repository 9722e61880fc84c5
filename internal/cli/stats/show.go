package stats

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pinch-agent/pinch/internal/cli/print"
	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// Table is the report for people. home is written as ~; "" leaves folders as they
// are.
func (r *Report) Table(by []Dimension, home string) string {
	if r.Sessions == 0 {
		return "Nothing was used.\n"
	}
	var head []string
	for _, d := range by {
		head = append(head, strings.ToUpper(string(d)))
		if d == Session {
			head = append(head, "NAME")
		}
	}
	left := len(head)
	if left == 0 {
		head, left = []string{""}, 1
	}
	rows := [][]string{append(head, "ANSWERS", "INPUT", "OUTPUT", "CACHE READ", "CACHE WRITE", "COST")}
	if len(by) > 0 {
		for _, row := range r.Rows {
			rows = append(rows, append(row.names(by, home), row.Sum.cells()...))
		}
	}
	total := make([]string, left)
	total[0] = "total"
	rows = append(rows, append(total, r.Total.cells()...))
	text := columns(rows, left)
	if r.Total.Unpriced > 0 {
		text += "\n? and +: answers of models without a price; what they cost is not known.\n"
	}
	return text
}

func (row *Row) names(by []Dimension, home string) []string {
	var out []string
	for _, d := range by {
		switch d {
		case Day:
			out = append(out, orWord(row.Day, "(no time)"))
		case Model:
			out = append(out, orWord(row.Model, "(not recorded)"))
		case Project:
			out = append(out, Folder(row.Project, home))
		case Session:
			out = append(out, orWord(row.ID, "-"), orWord(row.Name, "-"))
		}
	}
	return out
}

// Folder is a folder as people write it.
func Folder(path, home string) string {
	if rest, ok := strings.CutPrefix(path, home); ok && home != "" && (rest == "" || rest[0] == '/' || rest[0] == '\\') {
		path = "~" + rest
	}
	return orWord(path, "(no folder)")
}

func orWord(text, word string) string {
	if text = print.OneLine(text); text == "" {
		return word
	}
	return text
}

func (s *Sum) cells() []string {
	return []string{
		grouped(s.Answers), grouped(s.Input), grouped(s.Output), grouped(s.CacheRead), grouped(s.CacheWrite), s.cost(),
	}
}

// cost is the money, with a mark where some of it is not known.
func (s *Sum) cost() string {
	digits := 2
	if s.Cost > 0 && s.Cost < 0.1 {
		digits = 4
	}
	money := fmt.Sprintf("$%.*f", digits, s.Cost)
	switch {
	case s.Unpriced == 0:
		return money
	case s.Cost == 0:
		return "?"
	}
	return money + "+"
}

// grouped is a number with a comma at each thousand.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// columns pads a table: the first columns to the right, the others to the left.
func columns(rows [][]string, left int) string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, c := range row {
			if i > 0 {
				line.WriteString("  ")
			}
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			if i < left {
				line.WriteString(c + pad)
			} else {
				line.WriteString(pad + c)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// JSON is the report for programs, one object.
func (r *Report) JSON(q *Query) []byte {
	o := jsonwire.Begin(nil)
	if !q.Since.IsZero() {
		o.Text("since", q.Since.Format("2006-01-02T15:04:05Z07:00"))
	}
	if !q.Until.IsZero() {
		o.Text("until", q.Until.Format("2006-01-02T15:04:05Z07:00"))
	}
	o.OptText("project", q.Project)
	o.Key("by")
	o.B = jsonwire.AppendStrings(o.B, q.By)
	o.Int("sessions", int64(r.Sessions))
	o.Key("rows")
	o.B = jsonwire.AppendArray(o.B, r.Rows, func(row Row, b []byte) []byte { return row.appendJSON(b, q.By) })
	o.Key("total")
	t := jsonwire.Begin(o.B)
	r.Total.members(&t)
	o.B = t.End()
	return o.End()
}

func (row *Row) appendJSON(dst []byte, by []Dimension) []byte {
	o := jsonwire.Begin(dst)
	for _, d := range Dimensions() {
		if !slices.Contains(by, d) {
			continue
		}
		switch d {
		case Day:
			o.Text("day", row.Day)
		case Model:
			o.Text("model", row.Model)
		case Project:
			o.Text("project", row.Project)
		case Session:
			o.Text("session", row.ID)
			o.OptText("name", row.Name)
			o.Text("path", row.Session)
		}
	}
	row.Sum.members(&o)
	return o.End()
}

func (s *Sum) members(o *jsonwire.Object) {
	o.Int("answers", s.Answers)
	o.Int("input", s.Input)
	o.Int("output", s.Output)
	o.Int("cacheRead", s.CacheRead)
	o.Int("cacheWrite", s.CacheWrite)
	o.Int("totalTokens", s.Total)
	o.Float("cost", s.Cost)
	o.Int("unpriced", s.Unpriced)
}
