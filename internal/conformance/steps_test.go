package conformance

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var (
	steps   = flag.Int("steps", 0, "random steps to make; 0 for twelve thousand, with -long for a million")
	episode = flag.Int("episode", -1, "the one episode of random steps to make")
)

// TestRandomSteps makes random steps against the harness, whatever order they
// come in: prompts, steering, follow-ups, aborts at every event, failures of
// tools, providers, hooks, listeners and the disk, model switches, compactions,
// moves in the tree, forks, crashes. After each of them: no request that a wire
// format's service would refuse, no message lost or said twice, events paired,
// each run settled once, a session file that says what memory does, and no
// goroutine left.
//
// The steps come in episodes, each the life of one conversation in a bubble of
// its own: time passes only when everything waits, and the bubble tells of
// goroutines that are left. A failure names the seed and the episode, and
//
//	go test ./internal/conformance -run TestRandomSteps -seed S -episode N
//
// makes that one again. Every decision is drawn from a generator for its place
// (the events of a harness, the requests, the calls of a tool, …), seeded by the
// episode, so that the same events meet the same decisions; times, ids and the
// order in which delays end are those of the bubble. What is left to chance is
// the order of goroutines that are ready at the same instant, as after an abort
// that several of them wait for: TestStepsRepeat says how seldom that counts. A
// replay that passes is therefore worth some more (-count 100).
func TestRandomSteps(t *testing.T) {
	want, s := int64(12_000), *seed
	switch {
	case *steps > 0:
		want = int64(*steps)
	case *long:
		want = 1_000_000
	case testing.Short():
		want = 1_000
	}
	if s == 0 {
		s = 20261130
	}
	places := newPlaces()
	if *episode >= 0 {
		w := runEpisode(t, places, t.TempDir(), s, *episode)
		t.Logf("seed %d, episode %d: %d steps\n%s", s, *episode, w.steps.Load(), w.trace())
		return
	}
	begun := time.Now()
	var done, episodes, next atomic.Int64
	var all tally
	t.Run("workers", func(t *testing.T) {
		for range min(runtime.GOMAXPROCS(0), 4) {
			t.Run("worker", func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				for done.Load() < want && !t.Failed() {
					w := runEpisode(t, places, dir, s, int(next.Add(1)-1))
					episodes.Add(1)
					all.add(&w.tally)
					if n := done.Add(w.steps.Load()); n/100_000 != (n-w.steps.Load())/100_000 {
						t.Logf("%d steps, %d episodes, %s", n, episodes.Load(), time.Since(begun).Round(time.Second))
					}
				}
			})
		}
	})
	t.Logf("seed %d: %d steps in %d episodes, %s\n%s", s, done.Load(), episodes.Load(), time.Since(begun).Round(time.Millisecond), all.String())
	if !t.Failed() {
		all.covered(t)
	}
}

// TestStepsRepeat replays episodes and compares what happened in them.
func TestStepsRepeat(t *testing.T) {
	n := 24
	if testing.Short() {
		n = 6
	}
	places, dir := newPlaces(), t.TempDir()
	other := 0
	for i := range n {
		first, second := runEpisode(t, places, dir, 7, i), runEpisode(t, places, dir, 7, i)
		if first.trace() != second.trace() {
			other++
		}
	}
	t.Logf("%d of %d episodes went another way the second time", other, n)
	// On a busy machine goroutines that are ready at one instant often take turns.
	if other > n*3/4 {
		t.Errorf("%d of %d episodes went another way the second time: a decision depends on more than the seed", other, n)
	}
}

// runEpisode makes one episode and fails t when something is wrong with it.
func runEpisode(t *testing.T, places []place, dir string, seed uint64, n int) *trial {
	dir, err := os.MkdirTemp(dir, "episode")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	w := newTrial(places, dir, seed, n)
	// A hang is no deadlock of the bubble when it waits for a mutex.
	stuck := time.AfterFunc(5*time.Minute, func() {
		buf := make([]byte, 1<<20)
		panic(fmt.Sprintf("seed %d, episode %d hangs\n%s\n%s", seed, n, w.trace(), buf[:runtime.Stack(buf, true)]))
	})
	defer stuck.Stop()
	func() {
		defer w.caught()
		synctest.Test(t, func(*testing.T) {
			defer w.caught()
			w.live()
		})
	}()
	if w.failure != "" {
		lines := strings.Split(w.trace(), "\n")
		t.Fatalf("seed %d, episode %d: %s\nthe last steps and events:\n%s", seed, n, w.failure, strings.Join(lines[max(0, len(lines)-80):], "\n"))
	}
	return w
}
