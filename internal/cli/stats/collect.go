package stats

import (
	"cmp"
	"context"
	"hash/maphash"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pinch-agent/pinch/internal/regular"
)

// Query says what counts and how it is split. The zero Query sums up everything
// in one row.
type Query struct {
	By      []Dimension
	Since   time.Time // the first moment that counts; zero for all
	Until   time.Time // the first that does not any more; zero for all
	Project string    // folder: sessions that work in it or below; "" for all
	// Location is where days begin; nil for the local one.
	Location *time.Location
}

func (q *Query) location() *time.Location { return cmp.Or(q.Location, time.Local) }

// time reports whether a time counts. What has none counts where all does.
func (q *Query) time(at int64) bool {
	if at <= 0 {
		return q.Since.IsZero() && q.Until.IsZero()
	}
	return (q.Since.IsZero() || at >= q.Since.UnixMilli()) && (q.Until.IsZero() || at < q.Until.UnixMilli())
}

// project reports whether a working folder counts.
func (q *Query) project(cwd string) bool {
	rest, inside := strings.CutPrefix(cwd, strings.TrimSuffix(q.Project, string(filepath.Separator)))
	return q.Project == "" || inside && (rest == "" || os.IsPathSeparator(rest[0]))
}

// Report is what was found.
type Report struct {
	Rows       []Row
	Total      Sum
	Sessions   int     // that have a part in the total
	Unreadable []error // files that could not be read
}

// parsed is what one file gave.
type parsed struct {
	file    file
	ok      bool
	records []record
	err     error
}

// Collect reads the session files at some paths. An entry that is in several of
// them, as forks copy them, counts where it is first: in the file whose name, which
// begins with a time, is the lowest. progress may be nil; it hears how many files
// were read.
func Collect(ctx context.Context, paths []string, q Query, progress func(read, total int)) (*Report, error) {
	paths = slices.Clone(paths)
	slices.SortFunc(paths, func(a, b string) int {
		return cmp.Or(strings.Compare(filepath.Base(a), filepath.Base(b)), strings.Compare(a, b))
	})
	type job struct {
		path string
		out  chan parsed
	}
	workers := runtime.GOMAXPROCS(0)
	jobs := make(chan job)
	// The window bounds how many files wait for a slow one before them.
	window := make(chan chan parsed, 2*workers)
	seed := maphash.MakeSeed()
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for range workers {
		wg.Go(func() {
			rd := newReader(seed)
			for j := range jobs {
				j.out <- rd.parse(ctx, j.path, &q)
			}
		})
	}
	wg.Go(func() {
		defer close(jobs)
		defer close(window)
		for _, path := range paths {
			j := job{path, make(chan parsed, 1)}
			select {
			case window <- j.out:
			case <-ctx.Done():
				return
			}
			jobs <- j // a worker takes it soon: it waits for nobody
		}
	})
	s := newSums(&q)
	rep := &Report{}
	n := 0
	for out := range window {
		p := <-out
		n++
		if progress != nil {
			progress(n, len(paths))
		}
		switch {
		case p.err != nil:
			rep.Unreadable = append(rep.Unreadable, p.err)
		case p.ok:
			s.add(&p.file, p.records)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	rep.Rows, rep.Total, rep.Sessions = s.report(), s.total, s.sessions
	return rep, nil
}

// parse reads a file.
func (rd *reader) parse(ctx context.Context, path string, q *Query) (p parsed) {
	f, err := regular.Open(path)
	if err != nil {
		return parsed{err: err}
	}
	defer f.Close()
	// Files only grow, so that one which was not written to for long holds nothing
	// new. The day is for clocks that are off.
	if st, err := f.Stat(); err == nil && st.ModTime().Before(q.Since.Add(-24*time.Hour)) {
		return parsed{}
	}
	p.file, p.ok, p.err = rd.read(until{ctx, f}, func(r *record) {
		if q.time(r.at) {
			p.records = append(p.records, *r)
		}
	})
	p.file.path = path
	return p
}

// until is a file that ends with a context.
type until struct {
	ctx context.Context
	f   io.Reader
}

func (u until) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.f.Read(p)
}
