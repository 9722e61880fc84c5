package jsonl

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/pinch-agent/pinch/internal/regular"
	"github.com/pinch-agent/pinch/session"
)

// reader reads a file in pieces, also when it was closed, as long as the file is
// where it was. It keeps the file open until then, so that one that is deleted
// meanwhile can be read on.
type reader struct {
	path string
	info fs.FileInfo

	mu   sync.RWMutex
	file *os.File // nil once it was closed
}

func openReader(path string) (*reader, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	return &reader{path: path, info: info, file: f}, nil
}

// log is what the file holds.
func (r *reader) log(maxLine int64) (session.Log, error) {
	log := session.Log{Reader: r, Size: r.info.Size(), MaxLine: maxLine, Next: session.Position(r.info.Size()), Exists: true}
	if log.Size > 0 {
		var last [1]byte
		if _, err := r.ReadAt(last[:], log.Size-1); err != nil && err != io.EOF {
			return log, err
		}
		log.Torn = last[0] != '\n'
	}
	return log, nil
}

// ReadAt implements io.ReaderAt.
func (r *reader) ReadAt(b []byte, at int64) (int, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.file != nil {
		n, err := r.file.ReadAt(b, at)
		return n, r.failed(err)
	}
	f, err := regular.Open(r.path)
	if err != nil {
		return 0, r.failed(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, r.failed(err)
	}
	if !os.SameFile(info, r.info) {
		return 0, &session.Error{Kind: session.Conflict, Op: "read", Path: r.path,
			Err: errors.New("another file was put in the place of the session that is read"), Advice: "open the session again"}
	}
	n, err := f.ReadAt(b, at)
	return n, r.failed(err)
}

func (r *reader) failed(err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return fail("read", r.path, err)
}

// close lets go of the file; a reader that is nil has none.
func (r *reader) close() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file != nil {
		r.file.Close()
		r.file = nil
	}
}

// hasLonger reports whether a file has a line longer than limit.
func hasLonger(path string, limit int64) (bool, error) {
	info, err := os.Stat(path)
	if err != nil || info.Size() <= limit {
		return false, err
	}
	f, err := regular.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	in := bufio.NewReader(f)
	for n := int64(0); ; {
		part, err := in.ReadSlice('\n')
		if n += int64(len(part)); n > limit {
			return true, nil
		}
		switch err {
		case nil:
			n = 0
		case io.EOF:
			return false, nil
		case bufio.ErrBufferFull:
		default:
			return false, err
		}
	}
}
