package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pinch-agent/pinch/session/jsonl"
)

// Room in bytes below which sessions are in danger, and below which they are lost.
const (
	lowRoom = 500 << 20
	noRoom  = 10 << 20
)

// sessions looks at where sessions are kept and at what runs left there.
func (d *doctor) sessions(ctx context.Context) {
	r := d.p.sessionsOf("")
	folder := r.Root
	if r.Folder != "" {
		folder = r.Folder
	}
	files := r.Files("")
	var total uint64
	for _, path := range files {
		if info, err := os.Stat(path); err == nil {
			total += uint64(info.Size())
		}
	}
	d.ok("%s: %s, %s", folder, plural(len(files), "session file"), size(total))
	d.writable("Session folder", folder)
	if free, ok := freeSpace(existing(folder)); ok {
		switch {
		case free < noRoom:
			d.fail("make room; what is said is lost when the disk is full", "%s left for sessions", size(free))
		case free < lowRoom:
			d.warn("make room before the disk is full", "%s left for sessions", size(free))
		default:
			d.ok("%s left for sessions", size(free))
		}
	}
	d.leftovers(ctx, r, files)
}

// existing is the nearest folder above path, or path, that is there.
func existing(path string) string {
	for {
		if _, err := os.Stat(path); err == nil || filepath.Dir(path) == path {
			return path
		}
		path = filepath.Dir(path)
	}
}

// writable tries to write to a folder, or to where it would be made.
func (d *doctor) writable(what, folder string) {
	dir := existing(folder)
	f, err := os.CreateTemp(dir, ".pinch-doctor-*")
	if err != nil {
		d.fail("give yourself the right to write there, or name another folder", "%s: %s cannot be written: %v", what, dir, err)
		return
	}
	f.Close()
	os.Remove(f.Name())
}

// leftovers tells of files beside sessions that a program left that was killed.
func (d *doctor) leftovers(ctx context.Context, r *jsonl.Repository, files []string) {
	var journals, locks, originals, temporary []string
	var dirs []string
	for _, path := range files {
		if dir := filepath.Dir(path); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	for _, dir := range dirs {
		if ctx.Err() != nil {
			return
		}
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			switch file, ending, _ := strings.Cut(path, ".jsonl."); ending {
			case "run":
				if !r.InUse(file + ".jsonl") {
					journals = append(journals, path)
				}
			case "lock":
				if !r.InUse(file + ".jsonl") {
					locks = append(locks, path)
				}
			case "orig":
				originals = append(originals, path)
			default:
				info, err := e.Info()
				if err == nil && strings.HasSuffix(path, ".tmp") && time.Since(info.ModTime()) > time.Hour {
					temporary = append(temporary, path)
				}
			}
		}
	}
	if len(journals) > 0 {
		file := strings.TrimSuffix(journals[0], ".run")
		d.warn("pinch --session "+file+" -p goes on with the first; its results are there", "Runs that were cut off: %s", some(journals))
	}
	if len(locks) > 0 {
		d.ok("Locks of programs that were killed: %s. They hold nobody, and go when the session is opened again", some(locks))
	}
	if len(originals) > 0 {
		d.add(fine, "remove them once nothing is missing from the sessions", "Originals of sessions with lines that were too long to take over: %s", some(originals))
	}
	if len(temporary) > 0 {
		d.warn("remove them", "Files that were not finished: %s", some(temporary))
	}
}

// some is a list of paths in short.
func some(paths []string) string {
	const most = 3
	if len(paths) <= most {
		return strings.Join(paths, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(paths[:most], ", "), len(paths)-most)
}
