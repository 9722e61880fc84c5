package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(childMain())
	}
	goleak.VerifyTestMain(m)
}

func TestResolve(t *testing.T) {
	env := Env{
		Scoped:  map[string]string{"A": "scoped", "EMPTY": ""},
		Process: func(n string) string { return map[string]string{"A": "process", "B": "b", "EMPTY": "x"}[n] },
	}
	run := func(_ context.Context, command string) (string, error) {
		switch command {
		case "key":
			return "  from command\n", nil
		case "marked":
			return "\uFEFFkey\r\n", nil
		case "blank":
			return " \n", nil
		}
		return "ignored", errors.New("exit status 1")
	}
	const runIt = "run it by itself: it has to print the value within 10s and to end with status 0"
	for _, c := range []struct{ value, want, err string }{
		{"plain", "plain", ""},
		{"NAME", "NAME", ""},
		{"", "", ""},
		{"$A", "scoped", ""},
		{"${B}", "b", ""},
		{"$EMPTY", "x", ""},
		{"x${A}y$B.z", "xscopedyb.z", ""},
		{"$$A$!x$", "$A!x$", ""},
		{"$1 ${1} ${} ${A", "$1 ${1} ${} ${A", ""},
		{"${no name}${-$A}$B", "${no name}${-$A}b", ""},
		{"!marked", "key", ""},
		{"$A$GONE", "", "Failed to resolve value from environment variable: GONE"},
		{"$GONE${LOST}", "", "Failed to resolve value from environment variables: GONE, LOST"},
		{"!key", "from command", ""},
		{"!blank", "", "Failed to resolve value from shell command \"blank\" (" + runIt + "): the command printed nothing"},
		{"!fail", "", "Failed to resolve value from shell command \"fail\" (" + runIt + "): exit status 1"},
		{"!fail --password=hunter2", "", "Failed to resolve value from shell command \"fail …\" (" + runIt + "): exit status 1"},
		{"!TOKEN=hunter2 fail", "", "Failed to resolve value from shell command \"TOKEN=…\" (" + runIt + "): exit status 1"},
		{"!", "", "Failed to resolve value from shell command \"\" (" + runIt + "): exit status 1"},
	} {
		got, err := Resolve(t.Context(), c.value, env, run)
		if got != c.want || c.err == "" && err != nil || c.err != "" && (err == nil || err.Error() != c.err) {
			t.Errorf("Resolve(%q) = %q, %v; want %q, %s", c.value, got, err, c.want, c.err)
		}
	}
	_, err := ResolveFor(t.Context(), `API key for provider "x"`, "$GONE", env, run)
	if want := `Failed to resolve API key for provider "x" from environment variable: GONE`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestRunCommand(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands are for a POSIX shell")
	}
	if out, err := RunCommand(t.Context(), "echo one; echo two >&2"); out != "one\n" || err != nil {
		t.Errorf("got %q, %v", out, err)
	}
	if _, err := RunCommand(t.Context(), "exit 3"); err == nil {
		t.Error("a failed command succeeds")
	}
	if _, err := RunCommand(t.Context(), "head -c 2000000 /dev/zero"); err == nil {
		t.Error("endless output is accepted")
	}
	// The children of the shell end with it.
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	mark := filepath.Join(t.TempDir(), "mark")
	start := time.Now()
	_, err := RunCommand(ctx, fmt.Sprintf("(sleep 1; echo late > '%s') & wait", mark))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	time.Sleep(1200*time.Millisecond - time.Since(start))
	if _, err := os.Stat(mark); err == nil {
		t.Error("a child outlived the command")
	}
}

// What a command leaves running when it ends by itself ends with it.
func TestCommandLeavesNothingRunning(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("processes have no groups there")
	}
	mark := filepath.Join(t.TempDir(), "mark")
	out, err := RunCommand(t.Context(), fmt.Sprintf("(sleep 0.5; echo late > '%s') >/dev/null & echo key", mark))
	if out != "key\n" || err != nil {
		t.Errorf("got %q, %v", out, err)
	}
	time.Sleep(800 * time.Millisecond)
	if _, err := os.Stat(mark); err == nil {
		t.Error("a child outlived the command")
	}
}

func TestRemember(t *testing.T) {
	var runs atomic.Int32
	run := Remember(func(ctx context.Context, command string) (string, error) {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		runs.Add(1)
		if command == "bad" {
			return "", errors.New("bad")
		}
		return command, nil
	})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := run(ended, "a"); err == nil {
		t.Error("an ended context is ignored")
	}
	done := make(chan bool)
	for range 4 {
		go func() {
			out, err := run(context.Background(), "a")
			_, bad := run(context.Background(), "bad")
			done <- out == "a" && err == nil && bad != nil
		}()
	}
	for range 4 {
		if !<-done {
			t.Error("wrong outcome")
		}
	}
	if n := runs.Load(); n != 2 {
		t.Errorf("%d runs, want one for each command", n)
	}
}

func TestSecretHides(t *testing.T) {
	type inner struct{ key Secret }
	s := NewSecret("hunter2")
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("m", "key", s)
	encoded, err := json.Marshal(map[string]any{"key": s, "in": APIKey{Key: s}})
	if err != nil {
		t.Fatal(err)
	}
	out := []string{log.String(), string(encoded), fmt.Sprint(s), fmt.Sprint(inner{s}), fmt.Sprintf("%+v %#v", inner{s}, inner{s})}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%T"} {
		out = append(out, fmt.Sprintf(verb, s), fmt.Sprintf(verb, &s))
	}
	for _, o := range out {
		if strings.Contains(o, "hunter") || strings.Contains(o, fmt.Sprintf("%x", "hunter")) {
			t.Errorf("shown: %s", o)
		}
	}
	if s.Reveal() != "hunter2" || s.IsEmpty() || !NewSecret("").IsEmpty() {
		t.Error("the text is lost")
	}
}

func newStore(t *testing.T, content string) *Store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agent", "auth.json")
	if content != "" {
		os.MkdirAll(filepath.Dir(path), 0o700)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return OpenStore(path, StoreOptions{Now: func() time.Time { return time.UnixMilli(1_000_000) }})
}

func TestStoreWrites(t *testing.T) {
	const old = "\uFEFF" + `{"other":{"type":"new-kind","x":[1, 2]},"a":{"type":"api_key","key":"old","note":"keep"}}`
	s := newStore(t, old)
	if err := s.Set(t.Context(), "a", &APIKey{Key: NewSecret("new")}); err != nil {
		t.Fatal(err)
	}
	if err := s.Set(t.Context(), "b", &OAuth{Access: NewSecret("acc"), Refresh: NewSecret("ref"), Expires: time.UnixMilli(5), Raw: []byte(`{"type":"oauth","accountId":"id"}`)}); err != nil {
		t.Fatal(err)
	}
	want := `{"other":{"type":"new-kind","x":[1, 2]},"a":{"type":"api_key","key":"new","note":"keep"}, "b": {"type":"oauth","access":"acc","refresh":"ref","expires":5,"accountId":"id"}}`
	if b, _ := os.ReadFile(s.Path()); string(b) != want {
		t.Errorf("got %s", b)
	}
	if info, _ := os.Stat(s.Path()); runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	if removed, err := s.Remove(t.Context(), "a"); !removed || err != nil {
		t.Error(removed, err)
	}
	if removed, err := s.Remove(t.Context(), "a"); removed || err != nil {
		t.Error(removed, err)
	}
	if c, err := s.Get("b"); err != nil || c.(*OAuth).Access.Reveal() != "acc" {
		t.Error(c, err)
	}
	if files, _ := os.ReadDir(filepath.Dir(s.Path())); len(files) != 1 {
		t.Errorf("left behind: %v", files)
	}
}

func TestStoreCreatesFile(t *testing.T) {
	s := newStore(t, "")
	if c, err := s.Get("a"); c != nil || err != nil {
		t.Error(c, err)
	}
	if err := s.Set(t.Context(), "a", &APIKey{Key: NewSecret("k"), Env: map[string]string{"Y": "2", "X": "1"}}); err != nil {
		t.Fatal(err)
	}
	again := OpenStore(s.Path(), StoreOptions{})
	c, err := again.Get("a")
	if k, ok := c.(*APIKey); !ok || err != nil || k.Key.Reveal() != "k" || k.Env["X"] != "1" {
		t.Error(c, err)
	}
}

func TestStoreKeepsLastGood(t *testing.T) {
	s := newStore(t, `{"a":{"type":"api_key","key":"good"}}`)
	if _, err := s.Get("a"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.Path(), []byte(`{"a":{"key":"secret-half`), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := s.Get("a")
	if k, ok := c.(*APIKey); !ok || err != nil || k.Key.Reveal() != "good" {
		t.Errorf("%v, %v", c, err)
	}
	problem := s.Problem()
	if problem == nil || strings.Contains(problem.Error(), "secret") {
		t.Errorf("problem: %v", problem)
	}
	if err := s.Set(t.Context(), "b", &APIKey{}); err == nil {
		t.Error("a broken file was written over")
	}
	if b, _ := os.ReadFile(s.Path()); !strings.Contains(string(b), "secret-half") {
		t.Errorf("the file changed: %s", b)
	}
	if _, err := OpenStore(s.Path(), StoreOptions{}).Get("a"); err == nil {
		t.Error("a store that never was good has no error")
	}
	// Once repaired, the file counts again.
	os.WriteFile(s.Path(), []byte(`{"a":{"type":"api_key","key":"repaired"}}`), 0o600)
	if c, err := s.Get("a"); err != nil || c.(*APIKey).Key.Reveal() != "repaired" || s.Problem() != nil {
		t.Error(c, err, s.Problem())
	}
}

func TestFind(t *testing.T) {
	store := newStore(t, `{
		"literal": {"type": "api_key", "key": "stored"},
		"template": {"type": "api_key", "key": "$OWN-$P", "env": {"OWN": "o"}},
		"command": {"type": "api_key", "key": "!vault"},
		"gone": {"type": "api_key", "key": "$GONE"},
		"variables": {"type": "api_key", "env": {"FIRST": " ", "SECOND": "own"}},
		"empty": {"type": "api_key", "env": {"OTHER": "own"}},
		"live": {"type": "oauth", "access": "token", "refresh": "r", "expires": 2000000},
		"dead": {"type": "oauth", "access": "token", "refresh": "r", "expires": 1000000},
		"permanent": {"type": "oauth", "access": "token", "refresh": "", "expires": 9007199254740991},
		"odd": {"type": "later"}
	}`)
	store.run = Remember(func(context.Context, string) (string, error) { return "vault-key", nil })
	process := map[string]string{"P": "p", "FIRST": "  ", "SECOND": "env-key"}
	q := func(provider string) Query {
		return Query{
			Provider: provider, Store: store, EnvNames: []string{"FIRST", "SECOND"},
			Env: Env{Process: func(n string) string { return process[n] }},
			Run: func(context.Context, string) (string, error) { return "file-key", nil },
		}
	}
	with := func(q Query, change func(*Query)) Query { change(&q); return q }
	for _, c := range []struct {
		name   string
		q      Query
		source Source
		look   Source
		key    string
		failed bool
	}{
		{"runtime first", with(q("literal"), func(q *Query) { q.Runtime = NewSecret("flag") }), Runtime, Runtime, "flag", false},
		{"stored", q("literal"), Stored, Stored, "stored", false},
		{"stored before file", with(q("literal"), func(q *Query) { q.Configured = "file" }), Stored, Stored, "stored", false},
		{"template with own variables", q("template"), Stored, Stored, "o-p", false},
		{"command", q("command"), Stored, Stored, "vault-key", false},
		{"variables in place of a key", q("variables"), Stored, Stored, "own", false},
		{"no key owns the provider", q("empty"), Stored, None, "", false},
		{"unresolved owns the provider", q("gone"), None, None, "", true},
		{"token", q("live"), StoredOAuth, StoredOAuth, "token", false},
		{"permanent token", q("permanent"), StoredOAuth, StoredOAuth, "token", false},
		{"expired token", q("dead"), None, StoredOAuth, "", true},
		{"unknown type", q("odd"), None, None, "", true},
		{"file before environment", with(q("x"), func(q *Query) { q.Configured = "!c" }), ModelsFile, ModelsFile, "file-key", false},
		{"environment, blank skipped", q("x"), Environment, Environment, "env-key", false},
		{"nothing", with(q("x"), func(q *Query) { q.EnvNames = nil }), None, None, "", false},
		{"no store", with(q("x"), func(q *Query) { q.Store = nil }), Environment, Environment, "env-key", false},
	} {
		got, err := Find(t.Context(), c.q)
		if got.Source != c.source || got.Key.Reveal() != c.key || (err != nil) != c.failed {
			t.Errorf("%s: %v %q %v", c.name, got.Source, got.Key.Reveal(), err)
		}
		if look := Look(c.q); look != c.look {
			t.Errorf("%s: Look says %q, want %q", c.name, look, c.look)
		}
	}
}

func ExampleResolve() {
	env := Env{Scoped: map[string]string{"TOKEN": "t0k"}}
	key, err := Resolve(context.Background(), "Bearer ${TOKEN}", env, nil)
	fmt.Println(key, err)
	// Output: Bearer t0k <nil>
}
