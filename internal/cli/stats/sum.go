package stats

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/pinch-agent/pinch/llm"
)

// Sum is tokens and money.
type Sum struct {
	Answers    int64 // of models, without summaries and tools
	Input      int64 // without cached tokens
	Output     int64
	CacheRead  int64
	CacheWrite int64
	Total      int64
	Cost       float64 // US dollars
	// Unpriced is how many of the usages in the sum have tokens and no price: what
	// they cost is not known.
	Unpriced int64
}

func sumOf(u *llm.Usage, answer bool) Sum {
	s := Sum{
		Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite,
		Total: u.Context(), Cost: u.Cost.Total,
	}
	if answer {
		s.Answers = 1
	}
	billed := u.Cost.TotalFromProvider != nil && *u.Cost.TotalFromProvider
	if s.Cost == 0 && s.Total > 0 && !billed {
		s.Unpriced = 1
	}
	return s
}

func (s *Sum) add(o *Sum) {
	s.Answers += o.Answers
	s.Input += o.Input
	s.Output += o.Output
	s.CacheRead += o.CacheRead
	s.CacheWrite += o.CacheWrite
	s.Total += o.Total
	s.Cost += o.Cost
	s.Unpriced += o.Unpriced
}

// Dimension is what sums are split by.
type Dimension string

// The dimensions.
const (
	Day     Dimension = "day"     // of the local time
	Model   Dimension = "model"   // provider/model
	Project Dimension = "project" // working folder of the session
	Session Dimension = "session"
)

// Dimensions lists all of them.
func Dimensions() []Dimension { return []Dimension{Day, Model, Project, Session} }

// Group is one row of a report. Of its names those are set that the report is
// split by.
type Group struct {
	Day     string // 2006-01-02; "" for entries without a time
	Model   string // "" for usages whose model is not recorded, such as those of tools
	Project string
	Session string // path of the file
}

// Row is a group, with its sum.
type Row struct {
	Group
	ID, Name string // of a session
	Sum      Sum
}

// sums adds up records.
type sums struct {
	by    []Dimension
	query *Query
	seen  map[uint64]struct{}
	rows  map[Group]*Row
	total Sum

	sessions int // that have something in the sum
}

func newSums(q *Query) *sums {
	return &sums{by: q.By, query: q, seen: map[uint64]struct{}{}, rows: map[Group]*Row{}}
}

// add adds the records of a file that no earlier file had.
func (s *sums) add(f *file, records []record) {
	counts := s.query.project(f.cwd)
	found := false
	for i := range records {
		rec := &records[i]
		// Forks begin with a copy of another session. Those come later in the
		// order of the files, also when the original does not count here.
		if _, again := s.seen[rec.key]; again {
			continue
		}
		s.seen[rec.key] = struct{}{}
		if !counts {
			continue
		}
		found = true
		var g Group
		for _, d := range s.by {
			switch d {
			case Day:
				if rec.at > 0 {
					g.Day = time.UnixMilli(rec.at).In(s.query.location()).Format(time.DateOnly)
				}
			case Model:
				g.Model = rec.model
			case Project:
				g.Project = f.cwd
			case Session:
				g.Session = f.path
			}
		}
		row := s.rows[g]
		if row == nil {
			row = &Row{Group: g}
			if g.Session != "" {
				row.ID, row.Name = f.id, f.name
			}
			s.rows[g] = row
		}
		row.Sum.add(&rec.sum)
		s.total.add(&rec.sum)
	}
	if found {
		s.sessions++
	}
}

// report is the rows by day where they have one, then what cost most first.
func (s *sums) report() []Row {
	var rows []Row
	for _, r := range s.rows {
		rows = append(rows, *r)
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(
			strings.Compare(a.Day, b.Day),
			cmp.Compare(b.Sum.Cost, a.Sum.Cost),
			cmp.Compare(b.Sum.Total, a.Sum.Total),
			strings.Compare(a.Model, b.Model),
			strings.Compare(a.Project, b.Project),
			strings.Compare(a.Session, b.Session),
		)
	})
	return rows
}
