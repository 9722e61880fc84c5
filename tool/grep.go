package tool

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/env"
	"github.com/pinch-agent/pinch/internal/ignore"
	"github.com/pinch-agent/pinch/internal/lineregex"
)

//go:embed grep.md
var grepText string

// Grep is the tool that searches the text of files.
func Grep(opts GrepOptions) *agent.Tool {
	t := declare("grep", grepText,
		param{name: "pattern", typ: "string", required: true},
		param{name: "path", typ: "string"},
		param{name: "glob", typ: "string"},
		param{name: "ignoreCase", typ: "boolean"},
		param{name: "literal", typ: "boolean"},
		param{name: "context", typ: "number"},
		param{name: "limit", typ: "number"})
	t.ConstrainedSampling = nil
	t.ReplaySafe = true
	t.Execute = func(ctx context.Context, call agent.Call) (agent.Result, error) {
		r, err := opts.grep(ctx, call.Args)
		return r, systemError(err)
	}
	return t
}

// defaultGrepLimit is how many matches are shown when the model does not say.
const defaultGrepLimit = 100

func (o *GrepOptions) grep(ctx context.Context, args jsontext.Value) (agent.Result, error) {
	root := resolvePath(o.Env, pathOrHere(args))
	folder, err := isDir(ctx, o.Env, root)
	if env.CodeOf(err) == env.Aborted {
		return agent.Result{}, err
	} else if err != nil {
		return agent.Result{}, errors.New("Path not found: " + root)
	}
	re, err := lineregex.Compile(textArg(args, "pattern"), lineregex.Options{
		IgnoreCase: boolArg(args, "ignoreCase"), Literal: boolArg(args, "literal"),
	})
	if err != nil {
		return agent.Result{}, patternError(err)
	}
	g := &grep{
		fs: o.Env, re: re, context: numberArg(args, "context", 0),
		limit: limitArg(args, defaultGrepLimit),
	}
	if folder {
		w := newWalk(ctx, o.Env, root, o.ConfigDir, ".rgignore", true)
		if w.choose, err = globChoice(textArg(args, "glob")); err != nil {
			return agent.Result{}, err
		}
		err = g.tree(ctx, w)
	} else {
		err = g.file(ctx, root)
	}
	if err != nil {
		return agent.Result{}, err
	}
	return g.result(), nil
}

// patternError is the problem of a pattern with the advice that ripgrep gives,
// which models know.
func patternError(err error) error {
	e, ok := errors.AsType[*lineregex.SyntaxError](err)
	switch {
	case errors.Is(err, lineregex.ErrLineFeed):
		return fmt.Errorf("%w\n\nConsider enabling multiline mode with the --multiline flag (or -U for short).\nWhen multiline mode is enabled, new line characters can be matched.", err)
	case ok && e.Unsupported():
		return fmt.Errorf("%w\n\nConsider enabling PCRE2 with the --pcre2 flag, which can handle backreferences\nand look-around.", err)
	}
	return err
}

// globChoice is what a glob says about files: without ! in front, that all
// others are left out.
func globChoice(pattern string) (func(rel string, isDir bool) ignore.Verdict, error) {
	negated := strings.HasPrefix(pattern, "!")
	pattern = strings.TrimPrefix(strings.TrimPrefix(pattern, "!"), "./")
	if pattern == "" {
		return nil, nil
	}
	var rules ignore.Rules
	if err := rules.AddPattern(pattern); err != nil {
		return nil, err
	}
	return func(rel string, isDir bool) ignore.Verdict {
		matches := rules.Match(rel, isDir) != ignore.None
		switch {
		case matches && negated, !matches && !negated && !isDir:
			return ignore.Ignored
		case matches:
			return ignore.Included
		}
		return ignore.None
	}, nil
}

// grep is one search.
type grep struct {
	fs      env.FileSystem
	re      *lineregex.Regexp
	context int
	limit   int

	list    listing
	matches int
	more    bool // there are more matches than the limit
	clipped bool // a line was too long to be shown whole
}

// take adds what was found in a file. It must be no more than what is left of
// the limit.
func (g *grep) take(r *fileMatches) {
	if r.matches > 0 {
		g.list.add(r.list.text, r.list.whole)
	}
	g.matches += r.matches
	g.more = g.more || r.more
	g.clipped = g.clipped || r.clipped
}

// file searches a single file, which is shown by its base name.
func (g *grep) file(ctx context.Context, file string) error {
	s := newFileSearch(g, g.re.Searcher())
	r, err := s.search(ctx, file, filepath.Base(file), g.limit, true)
	if err != nil {
		return err
	}
	g.take(r)
	return nil
}

// batch is a row of files that one worker searches.
type batch struct {
	files   []string // relative paths
	results []*fileMatches
	done    chan struct{}
}

const batchSize = 16

// tree searches all files of a walk. Workers search ahead, and what they found
// is taken in the order of the walk, so that the result is always the same.
func (g *grep) tree(ctx context.Context, w *walk) error {
	outer := ctx
	ctx, cancel := context.WithCancel(ctx)
	workers := min(runtime.GOMAXPROCS(0), 8)
	inOrder := make(chan *batch, 4*workers)
	work := make(chan *batch)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() {
		defer close(inOrder)
		defer close(work)
		b := &batch{done: make(chan struct{})}
		send := func() bool {
			for _, to := range [...]chan *batch{inOrder, work} {
				select {
				case to <- b:
				case <-ctx.Done():
					return false
				}
			}
			b = &batch{done: make(chan struct{})}
			return true
		}
		err := w.run(ctx, func(f found) bool {
			if f.kind != env.KindFile {
				return true
			}
			b.files = append(b.files, f.rel)
			return len(b.files) < batchSize || send()
		})
		if err == nil && len(b.files) > 0 {
			send()
		}
	})
	for range workers {
		running.Go(func() {
			s := newFileSearch(g, g.re.Searcher())
			for b := range work {
				for _, rel := range b.files {
					// A file that cannot be read has no matches.
					if r, err := s.search(ctx, w.path(rel), rel, g.limit, false); err == nil && r.matches > 0 {
						b.results = append(b.results, r)
					}
				}
				close(b.done)
			}
		})
	}
	again := newFileSearch(g, nil)
	for b := range inOrder {
		select {
		case <-b.done:
		case <-ctx.Done():
		}
		if err := outer.Err(); err != nil {
			return err
		}
		for _, r := range b.results {
			left := g.limit - g.matches
			if left == 0 {
				g.more = true
			} else if r.matches > left || r.more && left < g.limit {
				// The limit is reached inside of this file.
				if again.searcher == nil {
					again.searcher = g.re.Searcher()
				}
				cut, err := again.search(ctx, w.path(r.name), r.name, left, false)
				if err != nil {
					return err
				}
				r = cut
			}
			if !g.more {
				g.take(r)
			}
			if g.more {
				return nil
			}
		}
	}
	return outer.Err()
}

func (g *grep) result() agent.Result {
	if g.matches == 0 {
		return agent.TextResult("No matches found")
	}
	var before, after []note
	if g.more {
		before = append(before, limitNote(g.limit, "matches", ", or refine pattern", "matchLimitReached"))
	}
	if g.clipped {
		after = append(after, note{"Some lines truncated to " + strconv.Itoa(maxShownLine) + " chars. Use read tool to see full lines", "linesTruncated", "true"})
	}
	return g.list.result(before, after)
}
