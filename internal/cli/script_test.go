package cli

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pinch-agent/pinch/internal/packages/packagestest"
)

// runMain makes the test binary act as pinch.
const runMain = "PINCH_TEST_RUN_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(runMain) == "1" {
		os.Exit(Main(os.Args[1:]))
	}
	testscript.Main(m, map[string]func(){
		"pinch": func() { os.Exit(Main(os.Args[1:])) },
	})
}

func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:      filepath.Join("testdata", "script"),
		Deadline: time.Now().Add(8 * time.Minute),
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("USERPROFILE", filepath.Join(e.WorkDir, "home"))
			e.Setenv("PINCH_OFFLINE", "1")
			r := packagestest.New()
			e.Values[registryKey{}] = r
			e.Setenv("npm_config_registry", r.URL)
			e.Defer(func() {
				r.CloseClientConnections()
				r.Close()
			})
			for _, name := range []string{"GOCACHE", "GOPATH", "GOROOT"} {
				e.Setenv(name, goEnv(name))
			}
			return os.MkdirAll(filepath.Join(e.WorkDir, "home"), 0o755)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"provider": provider,
			"sessions": sessions,
			"status":   exitStatus,
			"publish":  publish,
		},
	})
}

func goEnv(name string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	if dir, err := os.UserCacheDir(); err == nil && name == "GOCACHE" {
		return filepath.Join(dir, "go-build")
	}
	return ""
}

// provider starts a server that answers every request in one way, and describes
// it in models.json as provider "local" with the models m (messages) and c
// (chat completions). Its address is in $PROVIDER_URL.
//
//	provider status 401 {"error":{"message":"bad key"}}
//	provider body <text>    200 with this body, \n in it for a line end, then the end
//	provider keepalive      200, then comments and pings for ever
//	provider closed         nobody listens
func provider(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: provider status N BODY | body TEXT | keepalive | closed")
	}
	rest := ""
	if len(args) > 1 {
		rest = args[len(args)-1]
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch args[0] {
		case "status":
			n, err := strconv.Atoi(args[1])
			if err != nil {
				panic(err)
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(n)
			fmt.Fprint(w, rest)
		case "body":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, strings.ReplaceAll(rest, `\n`, "\n"))
		case "keepalive":
			w.Header().Set("Content-Type", "text/event-stream")
			for r.Context().Err() == nil {
				fmt.Fprint(w, ": keep-alive\n\nevent: ping\ndata: {\"type\": \"ping\"}\n\n")
				if http.NewResponseController(w).Flush() != nil {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		}
	}))
	if args[0] == "closed" {
		srv.Close()
	} else {
		ts.Defer(func() {
			srv.CloseClientConnections()
			srv.Close()
		})
	}
	ts.Setenv("PROVIDER_URL", srv.URL)
	dir := filepath.Join(ts.Getenv("HOME"), ".pinch", "agent")
	ts.Check(os.MkdirAll(dir, 0o755))
	ts.Check(os.WriteFile(filepath.Join(dir, "models.json"), fmt.Appendf(nil, `{"providers": {
  "local": {"baseUrl": %[1]q, "apiKey": "local-secret-key", "api": "anthropic-messages",
    "models": [{"id": "m", "contextWindow": 100000, "maxTokens": 4000}]},
  "localc": {"baseUrl": %[1]q, "apiKey": "local-secret-key", "api": "openai-completions",
    "models": [{"id": "c", "contextWindow": 100000, "maxTokens": 4000}]}}}`, srv.URL), 0o644))
}

// publish makes a folder a version of an npm package, in a registry that pinch is
// told of.
//
//	publish NAME VERSION DIR
func publish(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: publish NAME VERSION DIR")
	}
	r, ok := ts.Value(registryKey{}).(*packagestest.Registry)
	if !ok {
		ts.Fatalf("no registry")
	}
	files := map[string]string{}
	dir := ts.MkAbs(args[2])
	ts.Check(filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		files[filepath.ToSlash(rel)] = string(b)
		return err
	}))
	ts.Check(r.Publish(args[0], args[1], files))
}

type registryKey struct{}

// exitStatus runs pinch and checks its exit status.
//
//	status 2 auth check
func exitStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N WORD...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec("pinch", args[1:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// sessions checks that there are n session files in the agent folder and that
// each is whole: lines of JSON behind a header.
func sessions(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: sessions N")
	}
	files, err := filepath.Glob(filepath.Join(ts.Getenv("HOME"), ".pinch", "agent", "sessions", "*", "*.jsonl"))
	ts.Check(err)
	if want, err := strconv.Atoi(args[0]); err != nil || len(files) != want {
		ts.Fatalf("%d session files, want %s", len(files), args[0])
	}
	for _, f := range files {
		if _, err := readSession(f); err != nil {
			ts.Fatalf("%s: %v", f, err)
		}
	}
}
