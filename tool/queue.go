package tool

import (
	"context"
	"slices"
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
	places map[string][]*place // places reserved for calls that have not begun, by call and path
}

// place is one turn at a file.
type place struct {
	key    string
	before <-chan struct{} // closed when the place ahead has left; nil for none
	left   chan struct{}
	once   sync.Once
}

// join takes the last place at a file.
func (q *FileQueue) join(key string) *place {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.tails == nil {
		q.tails, q.places = map[string]*place{}, map[string][]*place{}
	}
	p := &place{key: key, left: make(chan struct{})}
	if ahead := q.tails[key]; ahead != nil {
		p.before = ahead.left
	}
	q.tails[key] = p
	return p
}

// leave gives the place up, waiting or not. Whoever is behind still waits for
// those ahead.
func (q *FileQueue) leave(p *place) {
	p.once.Do(func() {
		if p.before != nil && !isClosed(p.before) {
			go func() { <-p.before; q.pass(p) }()
			return
		}
		q.pass(p)
	})
}

// pass lets the next one in.
func (q *FileQueue) pass(p *place) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.tails[p.key] == p {
		delete(q.tails, p.key)
	}
	close(p.left)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// reserve takes a call's place before the call begins. It suits
// agent.Tool.Reserve.
func (q *FileQueue) reserve(ctx context.Context, fs env.FileSystem, id, path string) (done func()) {
	p := q.join(queueKey(ctx, fs, path))
	call := callKey(id, path)
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
func callKey(id, path string) string { return id + "\x00" + path }

// enter waits for the turn of a call at the file behind path and returns what
// ends it. It fails only when ctx ends first.
func (q *FileQueue) enter(ctx context.Context, fs env.FileSystem, id, path string) (done func(), err error) {
	p := q.claim(callKey(id, path), func(*place) bool { return true })
	if p == nil {
		p = q.join(queueKey(ctx, fs, path))
	}
	if p.before != nil {
		select {
		case <-p.before:
		case <-ctx.Done():
			q.leave(p)
			return nil, errAborted
		}
	}
	return func() { q.leave(p) }, nil
}

// queueKey names the file behind path: its real path, or the path itself when
// there is no such file yet.
func queueKey(ctx context.Context, fs env.FileSystem, path string) string {
	if real, err := fs.Canonical(ctx, path); err == nil {
		return real
	}
	return path
}

// reserver is the Reserve function of a tool whose calls name a path.
func (q *FileQueue) reserver(fs env.FileSystem) func(agent.Call) func() {
	return func(call agent.Call) func() {
		path, _ := pathArg(call.Args)
		return q.reserve(context.Background(), fs, call.ID, resolvePath(fs, path))
	}
}
