package tool

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/env"
)

// FileQueue makes changes to one file happen one after another, in the order of
// the calls that make them, so that two edits in one answer both work on what
// the one before left. The zero value is ready; a set of tools shares one.
type FileQueue struct {
	mu     sync.Mutex
	tails  map[string]*place   // last place of each file that has one
	places map[string][]*place // places reserved for calls that have not begun, by call and paths
}

// place is one turn at the files of a call.
type place struct {
	keys   []string
	before []<-chan struct{} // closed when the places ahead have left
	left   chan struct{}
	once   sync.Once
}

// join takes the last place at files, at all of them in one step: calls that want
// the same ones in different orders must not wait for each other.
func (q *FileQueue) join(keys []string) *place {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.tails == nil {
		q.tails, q.places = map[string]*place{}, map[string][]*place{}
	}
	slices.Sort(keys)
	p := &place{keys: slices.Compact(keys), left: make(chan struct{})}
	for _, key := range p.keys {
		if ahead := q.tails[key]; ahead != nil {
			p.before = append(p.before, ahead.left)
		}
		q.tails[key] = p
	}
	return p
}

// leave gives the place up, waiting or not. Whoever is behind still waits for
// those ahead.
func (q *FileQueue) leave(p *place) {
	p.once.Do(func() {
		if !slices.ContainsFunc(p.before, isOpen) {
			q.pass(p)
			return
		}
		go func() {
			for _, before := range p.before {
				<-before
			}
			q.pass(p)
		}()
	})
}

// pass lets the next one in.
func (q *FileQueue) pass(p *place) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range p.keys {
		if q.tails[key] == p {
			delete(q.tails, key)
		}
	}
	close(p.left)
}

func isOpen(c <-chan struct{}) bool {
	select {
	case <-c:
		return false
	default:
		return true
	}
}

// reserve takes a call's place before the call begins. It suits
// agent.Tool.Reserve.
func (q *FileQueue) reserve(ctx context.Context, fs env.FileSystem, id string, paths ...string) (done func()) {
	p := q.join(queueKeys(ctx, fs, paths))
	call := callKey(id, paths)
	q.mu.Lock()
	q.places[call] = append(q.places[call], p)
	q.mu.Unlock()
	return func() {
		if q.claim(call, func(c *place) bool { return c == p }) != nil {
			q.leave(p) // the call never ran
		}
	}
}

// claim takes a reserved place that suits out of the reserved ones.
func (q *FileQueue) claim(call string, suits func(*place) bool) *place {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.places[call]
	i := slices.IndexFunc(list, suits)
	if i < 0 {
		return nil
	}
	p := list[i]
	if list = slices.Delete(list, i, i+1); len(list) == 0 {
		delete(q.places, call)
	} else {
		q.places[call] = list
	}
	return p
}

// callKey names a call. Models do repeat ids.
func callKey(id string, paths []string) string { return id + "\x00" + strings.Join(paths, "\x00") }

// enter waits for the turn of a call at the files behind paths and returns what
// ends it. It fails only when ctx ends first.
func (q *FileQueue) enter(ctx context.Context, fs env.FileSystem, id string, paths ...string) (done func(), err error) {
	p := q.claim(callKey(id, paths), func(*place) bool { return true })
	if p == nil {
		p = q.join(queueKeys(ctx, fs, paths))
	}
	for _, before := range p.before {
		select {
		case <-before:
		case <-ctx.Done():
			q.leave(p)
			return nil, errAborted
		}
	}
	return func() { q.leave(p) }, nil
}

// queueKeys name the files behind paths: their real paths, or the path itself
// when there is no such file yet.
func queueKeys(ctx context.Context, fs env.FileSystem, paths []string) []string {
	keys := slices.Clone(paths)
	for i, path := range paths {
		if real, err := fs.Canonical(ctx, path); err == nil {
			keys[i] = real
		}
	}
	return keys
}

// reserver is the Reserve function of a tool whose calls name a path.
func (q *FileQueue) reserver(fs env.FileSystem) func(agent.Call) func() {
	return func(call agent.Call) func() {
		path, _ := pathArg(call.Args)
		return q.reserve(context.Background(), fs, call.ID, resolvePath(fs, path))
	}
}
