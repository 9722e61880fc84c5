package sharedfile

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

// Version tells versions of a file apart, so that a reader looks at the content
// only when it has changed.
type Version struct {
	Info    fs.FileInfo // nil for no file
	settled bool        // old enough that a change shows in the time
}

// settleTime is longer than the step of any file system's clock that matters.
const settleTime = 50 * time.Millisecond

// VersionOf looks at a file without reading it. It is taken before the content
// is read. A missing file has a version too.
func VersionOf(path string) (Version, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Version{}, nil
	}
	if err != nil {
		return Version{}, err
	}
	age := time.Since(info.ModTime())
	return Version{Info: info, settled: age > settleTime || age < -settleTime}, nil
}

// Same reports whether a file is the one seen. A file that changed while, or just
// before, it was read may have changed again within the precision of its time.
func (v Version) Same(other Version) bool {
	if v.Info == nil || other.Info == nil {
		return v.Info == nil && other.Info == nil
	}
	return v.settled && os.SameFile(v.Info, other.Info) && v.Info.Size() == other.Info.Size() &&
		v.Info.ModTime().Equal(other.Info.ModTime()) && v.Info.Mode() == other.Info.Mode()
}
