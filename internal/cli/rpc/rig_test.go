package rpc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pinch-agent/pinch/env"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/internal/cli/record"
	"github.com/pinch-agent/pinch/llm/catalog"
	"github.com/pinch-agent/pinch/llm/faux"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/jsonl"
	"github.com/pinch-agent/pinch/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testHost makes conversations with a scripted model in a folder of its own.
type testHost struct {
	dir   string
	model *faux.API

	mu     sync.Mutex
	saved  map[string]any
	closed int
	last   *harness.Harness
	broken error // of conversations to come
	large  bool  // pictures of prompts are not scaled
}

func newTestHost(t *testing.T, script ...faux.Response) *testHost {
	h := &testHost{dir: t.TempDir(), model: faux.New(faux.Options{}), saved: map[string]any{}}
	h.model.Script(script...)
	return h
}

func (h *testHost) sessions() *jsonl.Repository {
	return &jsonl.Repository{Folder: filepath.Join(h.dir, "s")}
}

func (h *testHost) converse(sess *session.Session, err error) (*Conversation, error) {
	if err == nil {
		err = h.broken
	}
	if err != nil {
		return nil, err
	}
	hs, err := harness.New(harness.Options{Model: h.model.Model(), Stream: h.model.Stream, Session: sess, Retry: harness.Retry{BaseDelay: time.Millisecond}})
	if err != nil {
		return nil, err
	}
	h.last = hs
	return &Conversation{
		Harness: hs, Dir: h.dir, FitImages: !h.large, Models: catalog.New(catalog.Options{}),
		Shell: tool.UserShell{Env: &env.Local{Dir: h.dir, Temp: h.dir}},
		Save: func(_ context.Context, name string, value any) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.saved[name] = value
			return nil
		},
		Close: func() {
			hs.Close()
			h.mu.Lock()
			defer h.mu.Unlock()
			h.closed++
		},
	}, nil
}

func (h *testHost) settings() map[string]any {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.saved)
}

func (h *testHost) New(_ context.Context, _ *Conversation, parent string) (*Conversation, error) {
	return h.converse(h.sessions().Create(session.Options{CWD: h.dir, ParentSession: parent}))
}

func (h *testHost) Open(_ context.Context, _ *Conversation, path string) (*Conversation, error) {
	return h.converse(h.sessions().Open(path, h.dir))
}

func (h *testHost) Fork(_ context.Context, c *Conversation, id string) (*Conversation, error) {
	return h.converse(h.sessions().Fork(c.Harness.Session(), id, session.Options{}))
}

// rig is RPC mode in this process.
type rig struct {
	t      *testing.T
	host   *testHost
	in     *io.PipeWriter
	cancel context.CancelFunc
	ended  chan error
	ui     chan *UI

	patience time.Duration

	mu      sync.Mutex
	records []map[string]any
	changed chan struct{}
}

func start(t *testing.T, script ...faux.Response) *rig {
	t.Helper()
	return startAt(t, newTestHost(t, script...))
}

func startAt(t *testing.T, host *testHost) *rig {
	t.Helper()
	r, out := newRig(t, host), (*io.PipeReader)(nil)
	in, inW := io.Pipe()
	out, outW := io.Pipe()
	r.in = inW
	r.run(t, in, outW, func() { outW.Close() })
	go func() {
		for b := bufio.NewReader(out); ; {
			line, err := b.ReadBytes('\n')
			if err != nil {
				return
			}
			r.take(line)
		}
	}()
	return r
}

func newRig(t *testing.T, host *testHost) *rig {
	return &rig{t: t, host: host, changed: make(chan struct{}), ended: make(chan error, 1), ui: make(chan *UI, 1)}
}

// run runs the mode; after is called when it has ended.
func (r *rig) run(t *testing.T, in io.Reader, out io.Writer, after func()) {
	t.Helper()
	first, err := r.host.New(t.Context(), nil, "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() {
		err := Run(ctx, first, Options{In: in, Out: out, Host: r.host, Wire: record.Current, Ending: func() {}, Warn: t.Logf, Patience: r.patience, UI: func(u *UI) { r.ui <- u }})
		after()
		r.ended <- err
	}()
	t.Cleanup(func() {
		cancel()
		if c, ok := in.(io.Closer); ok {
			c.Close()
		}
		if c, ok := out.(io.Closer); ok {
			c.Close()
		}
	})
}

func (r *rig) take(line []byte) {
	var v map[string]any
	if err := json.Unmarshal(line, &v); err != nil {
		r.t.Errorf("%v: %q", err, line)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records = append(r.records, v)
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *rig) write(text string) {
	r.t.Helper()
	if _, err := io.WriteString(r.in, text); err != nil {
		r.t.Fatal(err)
	}
}

// wait is the n-th record, from 1, that fits.
func (r *rig) wait(n int, fits func(map[string]any) bool) map[string]any {
	r.t.Helper()
	deadline := time.After(60 * time.Second)
	for {
		r.mu.Lock()
		left := n
		for _, rec := range r.records {
			if fits(rec) {
				if left--; left == 0 {
					r.mu.Unlock()
					return rec
				}
			}
		}
		changed, have := r.changed, len(r.records)
		r.mu.Unlock()
		select {
		case <-changed:
		case <-deadline:
			r.t.Fatalf("no such record among %d", have)
		}
	}
}

func typed(typ string) func(map[string]any) bool {
	return func(r map[string]any) bool { return r["type"] == typ }
}

func answers(id any) func(map[string]any) bool {
	return func(r map[string]any) bool { return r["type"] == "response" && r["id"] == id }
}

// call sends a command, members in pairs, and waits for its answer.
func (r *rig) call(typ string, members ...any) map[string]any {
	r.t.Helper()
	r.mu.Lock()
	id := fmt.Sprintf("%s-%d", typ, len(r.records))
	r.mu.Unlock()
	c := map[string]any{"id": id, "type": typ}
	for i := 0; i < len(members); i += 2 {
		c[members[i].(string)] = members[i+1]
	}
	b, err := json.Marshal(c)
	if err != nil {
		r.t.Fatal(err)
	}
	r.write(string(b) + "\n")
	return r.wait(1, answers(id))
}

// data is the data of a command that succeeds.
func (r *rig) data(typ string, members ...any) map[string]any {
	r.t.Helper()
	a := r.call(typ, members...)
	if a["success"] != true {
		r.t.Fatalf("%s: %v", typ, a)
	}
	d, _ := a["data"].(map[string]any)
	return d
}

// end closes the input and waits.
func (r *rig) end() error {
	r.t.Helper()
	r.in.Close()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(60 * time.Second):
		r.t.Fatal("it does not end")
		return nil
	}
}

func (r *rig) types() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, rec := range r.records {
		s := fmt.Sprint(rec["type"])
		if c, ok := rec["command"]; ok {
			s += ":" + fmt.Sprint(c)
		}
		out = append(out, s)
	}
	return out
}

var errTest = errors.New("as the test wants it")
