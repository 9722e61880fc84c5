package jsonl

import (
	"context"
	"iter"
	"path/filepath"
	"slices"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/session"
)

// SearchOptions say where Search looks and in which order it lists. The zero
// value searches everywhere.
type SearchOptions struct {
	CWD      string   // sessions of this working directory alone; "" for all
	Recent   bool     // newest first; otherwise what matches best, then newest
	Progress Progress // called from one goroutine at a time; nil for none
}

// maxFirst is how much of a first message a list without texts shows, in bytes.
const maxFirst = 4 << 10

// Search lists the sessions that a query finds; the zero query finds all. It
// holds the texts of no more sessions than are read at once: Info.Text is empty
// and Info.FirstMessage cut at 4 KiB. For a list that is searched again and
// again there are List and session.Search.
func (r *Repository) Search(ctx context.Context, q session.Query, o SearchOptions) ([]session.Info, error) {
	type hit struct {
		info session.Info
		rank int
	}
	paths := r.filesOf(o.CWD)
	hits := make([]hit, len(paths))
	err := r.scan(ctx, paths, session.InfoReader{NoText: q.Empty(), MaxFirst: maxFirst}, o.Progress, func(i int, info session.Info) {
		if !r.holds(o.CWD, info.CWD) {
			return
		}
		if rank, ok := q.Match(&info); ok {
			info.Text = ""
			hits[i] = hit{info, rank}
		}
	})
	if err != nil {
		return nil, err
	}
	hits = slices.DeleteFunc(hits, func(h hit) bool { return h.info.Path == "" })
	slices.SortStableFunc(hits, func(a, b hit) int {
		if a.rank != b.rank && !o.Recent {
			return a.rank - b.rank
		}
		return newest(a.info, b.info)
	})
	list := make([]session.Info, len(hits))
	for i, h := range hits {
		list[i] = h.info
	}
	return list, nil
}

// Recent reads the sessions of a working directory, "" for all, one after the
// other as they are asked for: the file first that was written to last. A list
// can so be shown while it grows. Infos are as those of Search. When ctx ends so
// does the sequence.
func (r *Repository) Recent(ctx context.Context, cwd string) iter.Seq[session.Info] {
	return func(yield func(session.Info) bool) {
		ir := session.InfoReader{MaxLine: int(r.Options.MaxLine), NoText: true, MaxFirst: maxFirst}
		for _, path := range newestFirst(r.filesOf(cwd)) {
			info, ok := readInfo(ctx, &ir, path)
			if ctx.Err() != nil {
				return
			}
			if ok && r.holds(cwd, info.CWD) && !yield(info) {
				return
			}
		}
	}
}

// filesOf lists the files where sessions of a working directory are, "" for all.
func (r *Repository) filesOf(cwd string) []string {
	if cwd == "" {
		return r.allFiles()
	}
	return files(r.Dir(cwd))
}

// holds reports whether a session whose header names a working directory belongs
// to cwd, "" for any. A folder with the sessions of all of them says so only in
// headers, and others may write the same directory in other words.
func (r *Repository) holds(cwd, named string) bool {
	if cwd == "" || r.Folder == "" || named == cwd {
		return true
	}
	cwd = string(jsonwire.AppendUTF8(nil, cwd)) // as headers spell it
	return named != "" && filepath.Clean(named) == filepath.Clean(cwd)
}
