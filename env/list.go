package env

import (
	"context"
	"io/fs"
	"os"
)

// Entry is a name in a directory.
type Entry struct {
	Name string
	Kind Kind
}

// EntryLister is a FileSystem that can list a directory without describing each
// of its entries, which costs much more.
type EntryLister interface {
	// Entries names the entries of a directory, sorted by name.
	Entries(ctx context.Context, path string) ([]Entry, error)
}

// Entries names the entries of a directory, sorted by name, in the cheapest way
// that fs has.
func Entries(ctx context.Context, fs FileSystem, path string) ([]Entry, error) {
	if l, ok := fs.(EntryLister); ok {
		return l.Entries(ctx, path)
	}
	infos, err := fs.List(ctx, path)
	if err != nil {
		return nil, err
	}
	out := make([]Entry, len(infos))
	for i, info := range infos {
		out[i] = Entry{info.Name, info.Kind}
	}
	return out, nil
}

var _ EntryLister = (*Local)(nil)

// Entries implements EntryLister.
func (l *Local) Entries(ctx context.Context, path string) ([]Entry, error) {
	path = l.Abs(path)
	if err := start(ctx, "scandir", path); err != nil {
		return nil, err
	}
	list, err := os.ReadDir(path)
	if err != nil {
		return nil, fault(ctx, "scandir", path, err)
	}
	out := make([]Entry, len(list))
	for i, e := range list {
		out[i] = Entry{e.Name(), kindOf(e.Type())}
	}
	return out, nil
}

func kindOf(m fs.FileMode) Kind {
	switch {
	case m.IsRegular():
		return KindFile
	case m.IsDir():
		return KindDirectory
	case m&fs.ModeSymlink != 0:
		return KindSymlink
	}
	return KindOther
}
