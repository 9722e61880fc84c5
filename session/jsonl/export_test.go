package jsonl

import "os"

// File lets tests put their own file under a store.
type File = file

// OpenWith replaces how a store opens its file.
func (s *Store) OpenWith(wrap func(f *os.File) File) {
	s.open = func(name string, flag int) (file, error) {
		f, err := os.OpenFile(name, flag, 0o600)
		if err != nil {
			return nil, err
		}
		return wrap(f), nil
	}
}
