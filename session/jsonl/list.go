package jsonl

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pinch-agent/pinch/session"
)

// Progress hears how many of the files of a listing were read.
type Progress func(read, total int)

// List lists the sessions of a working directory, newest first. Files that are
// no sessions, or cannot be read, are left out. progress may be nil; it is
// called from one goroutine at a time.
func (r *Repository) List(ctx context.Context, cwd string, progress Progress) ([]session.Info, error) {
	list, err := r.read(ctx, files(r.Dir(cwd)), progress)
	return slices.DeleteFunc(list, func(i session.Info) bool { return !r.holds(cwd, i.CWD) }), err
}

// ListAll lists the sessions of all working directories, newest first.
func (r *Repository) ListAll(ctx context.Context, progress Progress) ([]session.Info, error) {
	return r.read(ctx, r.allFiles(), progress)
}

// Files lists the paths of the session files of a working directory, "" for all,
// by name. With Folder set, which all share, it lists that whole folder. Nothing is
// read: a file may turn out to be no session.
func (r *Repository) Files(cwd string) []string {
	if cwd == "" {
		return r.allFiles()
	}
	return files(r.Dir(cwd))
}

func (r *Repository) allFiles() []string {
	if r.Folder != "" {
		return files(r.Folder)
	}
	var all []string
	dirs, _ := os.ReadDir(r.Root)
	for _, d := range dirs {
		all = append(all, files(filepath.Join(r.Root, d.Name()))...)
	}
	return all
}

// files lists the session files of a folder by name. A folder that is not there
// has none.
func files(dir string) []string {
	entries, _ := os.ReadDir(dir)
	var out []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), extension) && !e.IsDir() {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out
}

// read reads the infos of files, newest first.
func (r *Repository) read(ctx context.Context, paths []string, progress Progress) ([]session.Info, error) {
	infos := make([]session.Info, len(paths))
	err := r.scan(ctx, paths, session.InfoReader{}, progress, func(i int, info session.Info) { infos[i] = info })
	if err != nil {
		return nil, err
	}
	list := slices.DeleteFunc(infos, func(i session.Info) bool { return i.Path == "" })
	slices.SortStableFunc(list, newest)
	return list, nil
}

func newest(a, b session.Info) int { return b.Modified.Compare(a.Modified) }

// scan reads the infos of files as a reader says, several at a time, and hands
// over those of sessions.
func (r *Repository) scan(ctx context.Context, paths []string, how session.InfoReader, progress Progress, found func(i int, info session.Info)) error {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		next int
		done int
	)
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		if next == len(paths) || ctx.Err() != nil {
			return 0, false
		}
		next++
		return next - 1, true
	}
	for range min(len(paths), runtime.GOMAXPROCS(0)+2) {
		wg.Go(func() {
			ir := how
			ir.MaxLine = int(r.Options.MaxLine)
			for {
				i, more := take()
				if !more {
					return
				}
				if info, ok := readInfo(ctx, &ir, paths[i]); ok {
					found(i, info)
				}
				if progress != nil {
					mu.Lock()
					done++
					progress(done, len(paths))
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return &session.Error{Kind: session.IO, Op: "list", Err: err}
	}
	return nil
}

// until is a file that ends with a context.
type until struct {
	ctx context.Context
	f   *os.File
}

func (u until) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.f.Read(p)
}

func readInfo(ctx context.Context, ir *session.InfoReader, path string) (session.Info, bool) {
	f, err := openRegular("list", path)
	if err != nil {
		return session.Info{}, false
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return session.Info{}, false
	}
	info, ok, err := ir.Read(until{ctx, f}, st.ModTime())
	info.Path = path
	return info, ok && err == nil
}

// maxHeader is how far into a file a listing looks for its header.
const maxHeader = 1 << 20

// readHeader reads the first line of a session file.
func readHeader(path string) (h session.Header, modified time.Time, ok bool) {
	f, err := openRegular("list", path)
	if err != nil {
		return h, modified, false
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return h, modified, false
	}
	var buf []byte
	for size := 4 << 10; size <= maxHeader; size *= 16 {
		buf = make([]byte, size)
		n, err := f.ReadAt(buf, 0)
		if err != nil && err != io.EOF {
			return h, modified, false
		}
		if line, found := firstLine(bytes.TrimPrefix(buf[:n], []byte("\uFEFF")), err == io.EOF); found {
			h, ok = session.ParseHeader(line)
			return h, st.ModTime(), ok
		}
		if err == io.EOF {
			break
		}
	}
	return h, modified, false
}

// firstLine is the first complete line of b that counts.
func firstLine(b []byte, whole bool) ([]byte, bool) {
	for len(b) > 0 {
		line, rest, complete := bytes.Cut(b, []byte{'\n'})
		if !complete && !whole {
			return nil, false
		}
		if line = bytes.TrimSpace(line); session.Counts(line) {
			return line, true
		}
		b = rest
	}
	return nil, false
}

// Newest is the path of the file that was written to last among the sessions of
// a working directory, "" when there is none.
func (r *Repository) Newest(cwd string) (string, error) {
	var list []string
	entries, err := os.ReadDir(r.Dir(cwd))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fail("list", r.Dir(cwd), err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), extension) {
			list = append(list, filepath.Join(r.Dir(cwd), e.Name()))
		}
	}
	for _, path := range newestFirst(list) {
		if h, _, ok := readHeader(path); ok && r.holds(cwd, h.CWD) {
			return path, nil
		}
	}
	return "", nil
}

// newestFirst sorts files by the time of their last change. Those that are gone
// are left out.
func newestFirst(paths []string) []string {
	type candidate struct {
		path     string
		modified time.Time
	}
	var list []candidate
	for _, path := range paths {
		if st, err := os.Stat(path); err == nil {
			list = append(list, candidate{path, st.ModTime()})
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return b.modified.Compare(a.modified) })
	out := make([]string, len(list))
	for i, c := range list {
		out[i] = c.path
	}
	return out
}
