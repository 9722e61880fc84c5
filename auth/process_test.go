package auth

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var long = flag.Bool("long", false, "run the long proofs")

// The tests here run real processes: this test binary, started again with
// childVariable, which makes it refresh one token of a shared file.
const childVariable = "PINCH_AUTH_TEST_CHILD"

// childStale is how old a lock has to be for processes that are killed.
const childStale = 2500 * time.Millisecond

// issuer hands out tokens, over HTTP, and honours each refresh token once. One
// that is used twice ends the whole family, as issuers do that take it for
// stolen.
type issuer struct {
	lenient bool // honours a refresh token again whose successor was never used
	life    time.Duration
	hold    chan bool // when set: a refresh says that it has come, and hangs

	mu      sync.Mutex
	current int // number of the newest refresh token
	revoked string
	used    int // access tokens shown
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	kind, number, _ := strings.Cut(string(body), "-")
	n, _ := strconv.Atoi(number)
	i.mu.Lock()
	hold := i.hold
	i.hold = nil
	i.mu.Unlock()
	if kind == "refresh" && hold != nil {
		hold <- true
		<-r.Context().Done() // until the process that asked is dead
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	again := i.lenient && n == i.current-1
	switch {
	case i.revoked != "":
		http.Error(w, "invalid_grant", http.StatusBadRequest)
	case kind == "access" && n > i.current:
		i.revoked = fmt.Sprintf("a made-up access token: %s", body)
	case kind == "access":
		i.used++
	case kind != "refresh" || n != i.current && !again:
		i.revoked = fmt.Sprintf("refresh token %d was used when %d was due", n, i.current)
		http.Error(w, "invalid_grant", http.StatusBadRequest)
	default:
		i.current = n + 1
		fmt.Fprintf(w, "%d %d", i.current, time.Now().Add(i.life).UnixMilli())
	}
}

func (i *issuer) issued() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.current
}

// post sends one line to the issuer.
func post(ctx context.Context, url, body string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %w", strings.TrimSpace(string(b)), ErrSignInEnded)
	}
	return string(b), err
}

// issuedBy is a RefreshFunc for an issuer.
func issuedBy(url string) RefreshFunc {
	return func(ctx context.Context, _ string, c *OAuth) (*OAuth, error) {
		answer, err := post(ctx, url, c.Refresh.Reveal())
		if err != nil {
			return nil, err
		}
		var n int
		var expires int64
		if _, err := fmt.Sscan(answer, &n, &expires); err != nil {
			return nil, err
		}
		next := new(*c)
		next.Access, next.Refresh = NewSecret(fmt.Sprintf("access-%d", n)), NewSecret(fmt.Sprintf("refresh-%d", n))
		next.Expires = time.UnixMilli(expires)
		return next, nil
	}
}

// childMain takes tokens, and shows each to the issuer, until the issuer has
// issued enough of them.
func childMain() int {
	url, path := os.Getenv("PINCH_AUTH_TEST_URL"), os.Getenv(childVariable)
	enough, _ := strconv.Atoi(os.Getenv("PINCH_AUTH_TEST_ENOUGH"))
	stale, _ := time.ParseDuration(os.Getenv("PINCH_AUTH_TEST_STALE"))
	s := OpenStore(path, StoreOptions{Refresh: issuedBy(url), LockStale: stale})
	fmt.Println("started")
	for {
		got, err := s.Token(context.Background(), "acme", MinLife)
		if err == nil && got.Warning != nil {
			err = got.Warning
		}
		if err == nil {
			_, err = post(context.Background(), url, got.Key.Reveal())
		}
		if err != nil {
			fmt.Println("failed:", err)
			return 1
		}
		if n, _ := strconv.Atoi(strings.TrimPrefix(got.Key.Reveal(), "access-")); n >= enough {
			return 0
		}
		time.Sleep(time.Millisecond)
	}
}

// child is a process of the tests.
type child struct {
	cmd *exec.Cmd
	out *bufio.Reader
}

func startChild(t *testing.T, url, path string, enough int, stale time.Duration) *child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childVariable+"="+path, "PINCH_AUTH_TEST_URL="+url,
		fmt.Sprintf("PINCH_AUTH_TEST_ENOUGH=%d", enough), "PINCH_AUTH_TEST_STALE="+stale.String())
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: cmd, out: bufio.NewReader(out)}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if line, err := c.out.ReadString('\n'); line != "started\n" {
		t.Fatalf("the process said %q, %v", line, err)
	}
	return c
}

// end waits for the process and gives what it said.
func (c *child) end() (string, error) {
	said, _ := io.ReadAll(c.out)
	return string(said), c.cmd.Wait()
}

// shared is a file with the sign-in that the processes use.
func shared(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agent", "auth.json")
	os.Mkdir(filepath.Dir(path), 0o700)
	const content = `{
  "before": {"type":"later",  "n": 1e2},
  "acme": {
    "type": "oauth",
    "access": "access-0",
    "refresh": "refresh-0",
    "expires": 0,
    "accountId": "id"
  },
  "after": {"type":"api_key","key":"k"}
}
`
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// checkShared checks that the file is whole, and gives the number of its refresh
// token.
func checkShared(t *testing.T, path string) int {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]map[string]any
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	acme := all["acme"]
	refresh, _ := acme["refresh"].(string)
	n, err := strconv.Atoi(strings.TrimPrefix(refresh, "refresh-"))
	if err != nil || acme["access"] != fmt.Sprintf("access-%d", n) || acme["accountId"] != "id" ||
		!strings.Contains(string(b), `{"type":"later",  "n": 1e2}`) || all["after"]["key"] != "k" {
		t.Fatalf("the file holds %s", b)
	}
	return n
}

// Processes renew one token again and again: no refresh token is used twice, and
// none is lost.
func TestProcessesShareATokensRefresh(t *testing.T) {
	processes, refreshes := 3, 60
	if *long {
		processes, refreshes = 4, 1000
	}
	is := &issuer{life: MinLife + 15*time.Millisecond}
	server := httptest.NewServer(is)
	defer server.Close()
	path := shared(t)
	var children []*child
	for range processes {
		children = append(children, startChild(t, server.URL, path, refreshes, 0))
	}
	for _, c := range children {
		if said, err := c.end(); err != nil {
			t.Errorf("%v: %s", err, said)
		}
	}
	if is.revoked != "" {
		t.Errorf("the family is revoked: %s", is.revoked)
	}
	if n := checkShared(t, path); n != is.current || n < refreshes {
		t.Errorf("the file has refresh token %d, the issuer %d", n, is.current)
	}
	t.Logf("%d refreshes by %d processes, %d tokens shown", is.current, processes, is.used)
	if beside, _ := os.ReadDir(filepath.Dir(path)); len(beside) != 1 {
		t.Errorf("left: %v", beside)
	}
}

// A process is killed while it renews. Its lock is taken over when it is old,
// not before, and the file is whole.
func TestKilledWhileRefreshing(t *testing.T) {
	hold := make(chan bool)
	is := &issuer{life: time.Hour, hold: hold}
	server := httptest.NewServer(is)
	defer server.Close()
	path := shared(t)
	c := startChild(t, server.URL, path, 1, childStale)
	select {
	case <-hold:
	case <-time.After(20 * time.Second):
		t.Fatal("the process does not ask")
	}
	// While it lives its lock holds, however old it is.
	s := OpenStore(path, StoreOptions{Refresh: issuedBy(server.URL), LockStale: childStale})
	_, err := s.Token(within(t, 2*childStale), "acme", MinLife)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	c.end()
	if n := checkShared(t, path); n != 0 {
		t.Errorf("refresh token %d", n)
	}
	if _, err := os.Lstat(path + ".lock"); err != nil {
		t.Fatalf("the dead process left no lock: %v", err)
	}
	got, err := s.Token(t.Context(), "acme", MinLife)
	if err != nil || got.Warning != nil || got.Key.Reveal() != "access-1" {
		t.Fatalf("%q, %v, %v", got.Key.Reveal(), got.Warning, err)
	}
	if waited := time.Since(killed); waited > 2*childStale+60*time.Second {
		t.Errorf("waited %v", waited)
	}
	if n := checkShared(t, path); n != 1 || is.revoked != "" {
		t.Errorf("refresh token %d, %s", n, is.revoked)
	}
	if _, err := os.Lstat(path + ".lock"); err == nil {
		t.Error("the lock is left")
	}
}

// Processes are killed at any moment. The file is whole each time. The issuer
// honours a refresh token again whose answer may have been lost: with one that
// does not, a process that dies between the answer and the file takes the
// sign-in with it.
func TestKilledAtAnyMoment(t *testing.T) {
	kills := 6
	if *long {
		kills = 200
	}
	is := &issuer{life: MinLife + 5*time.Millisecond, lenient: true}
	server := httptest.NewServer(is)
	defer server.Close()
	path := shared(t)
	for i := range kills {
		c := startChild(t, server.URL, path, 1<<30, childStale)
		before := is.issued()
		for waited := time.Duration(0); is.issued() <= before+1 && waited < 20*time.Second; waited += time.Millisecond {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(i%7) * 700 * time.Microsecond)
		c.cmd.Process.Kill()
		if said, _ := c.end(); said != "" {
			t.Fatalf("after %d kills: %s", i, said)
		}
		if n := checkShared(t, path); n != is.issued() && n != is.issued()-1 {
			t.Fatalf("the file has refresh token %d, the issuer %d", n, is.issued())
		}
	}
	if is.revoked != "" {
		t.Errorf("the family is revoked: %s", is.revoked)
	}
	s := OpenStore(path, StoreOptions{Refresh: issuedBy(server.URL), LockStale: childStale})
	is.mu.Lock()
	is.life = time.Hour
	is.mu.Unlock()
	time.Sleep(10 * time.Millisecond)
	if got, err := s.Token(t.Context(), "acme", 59*time.Minute); err != nil || got.Warning != nil {
		t.Errorf("%v, %v", got.Warning, err)
	}
	if beside, _ := os.ReadDir(filepath.Dir(path)); len(beside) != 1 {
		t.Errorf("left: %v", beside)
	}
}
