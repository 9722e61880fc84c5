package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pinch-agent/pinch/internal/cli/stats"
	"github.com/pinch-agent/pinch/session/jsonl"
)

const statsUsage = `Usage: pinch stats [--by day|model|project|session[,...]] [--days N | --since DAY] [--until DAY]
                   [--project DIR] [--session-dir DIR] [--json]

Tokens and cost of the sessions that are kept, by day when nothing else is said.
DAY is 2026-03-31, and counts as a whole; --project . is the current folder and
those below it. What forks share counts once, summaries and tools count too.
`

// runStats is "pinch stats".
func runStats(ctx context.Context, p *program, words []string) error {
	if asksHelp(words) {
		_, err := io.WriteString(p.out, statsUsage)
		return err
	}
	q, o, err := p.statsQuery(words, time.Now())
	if err != nil {
		return err
	}
	report, err := stats.Collect(ctx, p.sessionsOf(o.sessionDir).Files(""), q, p.progress("Reading sessions"))
	if err != nil {
		return err
	}
	for _, err := range report.Unreadable {
		if !errors.Is(err, fs.ErrNotExist) { // it went in the meantime
			p.warn("Not counted: %v", err)
		}
	}
	if o.json {
		_, err = fmt.Fprintf(p.out, "%s\n", report.JSON(&q))
	} else {
		_, err = io.WriteString(p.out, report.Table(q.By, p.home))
	}
	return err
}

type statsOptions struct {
	json       bool
	sessionDir string
}

// statsQuery reads the words behind "pinch stats".
func (p *program) statsQuery(words []string, now time.Time) (q stats.Query, o statsOptions, err error) {
	q.By = []stats.Dimension{stats.Day}
	days := 0
	for i := 0; i < len(words); i++ {
		word := words[i]
		if word == "--json" {
			o.json = true
			continue
		}
		if !slices.Contains([]string{"--by", "--days", "--since", "--until", "--project", "--session-dir"}, word) {
			return q, o, fmt.Errorf("Unknown word for pinch stats: %s (pinch stats --help says how it is used)", word)
		}
		if i++; i == len(words) || words[i] == "" {
			return q, o, fmt.Errorf("%s requires a value", word)
		}
		value := words[i]
		switch word {
		case "--by":
			q.By = nil
			for _, name := range splitList(value) {
				d := stats.Dimension(name)
				if !slices.Contains(stats.Dimensions(), d) {
					return q, o, fmt.Errorf("--by is one or several of day, model, project and session, separated by commas, and not %q", name)
				}
				if !slices.Contains(q.By, d) {
					q.By = append(q.By, d)
				}
			}
		case "--days":
			if days, err = strconv.Atoi(value); err != nil || days < 1 || days > 1e5 {
				return q, o, errors.New("--days is a number of days, today included")
			}
		case "--since":
			q.Since, err = day(value, now.Location())
		case "--until":
			if q.Until, err = day(value, now.Location()); err == nil {
				q.Until = q.Until.AddDate(0, 0, 1)
			}
		case "--project":
			q.Project = p.path(value)
		case "--session-dir":
			o.sessionDir = value
		}
		if err != nil {
			return q, o, fmt.Errorf("%s is a day such as %s", word, now.Format(time.DateOnly))
		}
	}
	switch {
	case days > 0 && !q.Since.IsZero():
		return q, o, errors.New("--days cannot be combined with --since")
	case days > 0:
		y, m, d := now.Date()
		q.Since = time.Date(y, m, d+1-days, 0, 0, 0, 0, now.Location())
	}
	return q, o, nil
}

// day is the beginning of a day.
func day(text string, where *time.Location) (time.Time, error) {
	return time.ParseInLocation(time.DateOnly, strings.TrimSpace(text), where)
}

// sessionsOf is where sessions are when a command names the folder dir, "" for
// where they always are.
func (p *program) sessionsOf(dir string) *jsonl.Repository {
	agentFolder, setting := p.sessionDirSetting()
	return p.repository(&Args{SessionDir: dir}, agentFolder, setting)
}

// progress shows on a terminal how far a long reading is, and takes it away at its
// end; nil where nobody looks on.
func (p *program) progress(what string) func(read, total int) {
	if !p.errTerminal {
		return nil
	}
	var last time.Time
	began := time.Now()
	shown := false
	return func(read, total int) {
		switch {
		case read == total && shown:
			fmt.Fprint(p.errs, "\r\x1b[K")
		case read < total && time.Since(began) > 300*time.Millisecond && time.Since(last) > 100*time.Millisecond:
			last, shown = time.Now(), true
			fmt.Fprintf(p.errs, "\r%s: %d of %d", what, read, total)
		}
	}
}
