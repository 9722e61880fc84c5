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

const statsText = `By day when nothing else is said. DAY is 2026-03-31, and counts as a whole;
--project . is the current folder and those below it. What forks share counts
once, summaries and tools count too.
`

// runStats is "pinch stats".
func runStats(ctx context.Context, p *program, c *command, words []string) error {
	g, ok, err := c.parseOptions(p, words)
	if !ok {
		return err
	}
	q, err := p.statsQuery(g, time.Now())
	if err != nil {
		return err
	}
	report, err := stats.Collect(ctx, p.sessionsOf(g.options["--session-dir"]).Files(""), q, p.progress("Reading sessions"))
	if err != nil {
		return err
	}
	for _, err := range report.Unreadable {
		if !errors.Is(err, fs.ErrNotExist) { // it went in the meantime
			p.warn("Not counted: %v", err)
		}
	}
	if g.has("--json") {
		_, err = fmt.Fprintf(p.out, "%s\n", report.JSON(&q))
	} else {
		_, err = io.WriteString(p.out, report.Table(q.By, p.home))
	}
	return err
}

// statsQuery is what the options of "pinch stats" ask for.
func (p *program) statsQuery(g *given, now time.Time) (q stats.Query, err error) {
	q.By = []stats.Dimension{stats.Day}
	if by := splitList(g.options["--by"]); by != nil {
		q.By = nil
		for _, name := range by {
			d := stats.Dimension(name)
			if !slices.Contains(stats.Dimensions(), d) {
				return q, fmt.Errorf("--by is one or several of day, model, project and session, separated by commas, and not %q", name)
			}
			if !slices.Contains(q.By, d) {
				q.By = append(q.By, d)
			}
		}
	}
	for option, to := range map[string]*time.Time{"--since": &q.Since, "--until": &q.Until} {
		if !g.has(option) {
			continue
		}
		if *to, err = day(g.options[option], now.Location()); err != nil {
			return q, fmt.Errorf("%s is a day such as %s", option, now.Format(time.DateOnly))
		}
	}
	if !q.Until.IsZero() {
		q.Until = q.Until.AddDate(0, 0, 1)
	}
	if g.has("--project") {
		q.Project = p.path(g.options["--project"])
	}
	switch days, err := strconv.Atoi(g.options["--days"]); {
	case !g.has("--days"):
	case err != nil || days < 1 || days > 1e5:
		return q, errors.New("--days is a number of days, today included")
	case !q.Since.IsZero():
		return q, errors.New("--days cannot be combined with --since")
	default:
		y, m, d := now.Date()
		q.Since = time.Date(y, m, d+1-days, 0, 0, 0, 0, now.Location())
	}
	return q, nil
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
