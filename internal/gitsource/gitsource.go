// Package gitsource reads the source of a repository once for both who say where
// its package is and who fetch it, so that they never mean two repositories.
package gitsource

import "strings"

// Source is the source of a repository in its parts. Nothing in them is checked.
type Source struct {
	Scheme string // small letters; https for HOST/PATH, ssh for HOST:PATH
	User   string // with the password that may stand behind a colon
	Host   string // small letters
	Port   string
	Path   string // without slashes around it
	Ref    string // "" for the default branch
}

// Parse reads [git:]SCHEME://[USER@]HOST[:PORT]/PATH, git:[USER@]HOST/PATH and
// git:[USER@]HOST:PATH, whose user is git when none is named, each with an @REF or
// a #REF behind it. The ref begins at the first @ or # of the path. ok is false
// where no path is named.
func Parse(source string) (s Source, ok bool) {
	if !strings.HasPrefix(source, "git://") {
		source = strings.TrimPrefix(source, "git:")
	}
	var authority, path string
	if scheme, rest, isAddress := strings.Cut(source, "://"); isAddress {
		s.Scheme = strings.ToLower(scheme)
		authority, path, ok = strings.Cut(rest, "/")
	} else if authority, path, ok = strings.Cut(source, ":"); ok && !strings.Contains(authority, "/") {
		s.Scheme, s.User = "ssh", "git"
	} else {
		s.Scheme = "https"
		authority, path, ok = strings.Cut(source, "/")
	}
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		s.User, authority = authority[:at], authority[at+1:]
	}
	s.Host, s.Port, _ = strings.Cut(strings.ToLower(authority), ":")
	if i := strings.IndexAny(path, "@#"); i >= 0 {
		path, s.Ref = path[:i], path[i+1:]
	}
	s.Path = strings.Trim(path, "/")
	return s, ok
}

// Repository is HOST/PATH, the same for all sources of one repository.
func (s Source) Repository() string {
	return s.Host + "/" + strings.TrimSuffix(s.Path, ".git")
}

// Address is the source without its ref, as git takes it.
func (s Source) Address() string {
	address := s.Scheme + "://"
	if s.User != "" {
		address += s.User + "@"
	}
	address += s.Host
	if s.Port != "" {
		address += ":" + s.Port
	}
	return address + "/" + s.Path
}
