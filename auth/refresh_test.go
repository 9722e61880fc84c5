package auth

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pinch-agent/pinch/internal/sharedfile"
)

// signInFile is a file with one sign-in whose access token ends at a time.
func signInFile(expires any) string {
	return fmt.Sprintf(`{"other":{"x":1},"acme":{"type":"oauth","access":"a0","refresh":"r0","expires":%v,"accountId":"id"}}`, expires)
}

// clockAt is what the clock of the tests shows, in milliseconds.
const clockAt = 1_000_000_000_000

// renewing is a store of one sign-in with a clock and an issuer of its own.
type renewing struct {
	*Store
	wall    atomic.Int64 // milliseconds
	stopped atomic.Int64 // nanoseconds of the stopwatch
	calls   atomic.Int32
	issue   func(ctx context.Context, c *OAuth) (*OAuth, error)
}

func (r *renewing) pass(d time.Duration) {
	r.wall.Add(d.Milliseconds())
	r.stopped.Add(int64(d))
}

func newRenewing(t *testing.T, content string) *renewing {
	t.Helper()
	r := &renewing{}
	r.wall.Store(clockAt)
	path := newStore(t, content).Path()
	r.Store = OpenStore(path, StoreOptions{
		Now: func() time.Time { return time.UnixMilli(r.wall.Load()) },
		Refresh: func(ctx context.Context, provider string, c *OAuth) (*OAuth, error) {
			n := r.calls.Add(1)
			if provider != "acme" {
				t.Errorf("provider %q", provider)
			}
			if r.issue != nil {
				return r.issue(ctx, c)
			}
			return &OAuth{
				Access:  NewSecret(fmt.Sprintf("a%d", n)),
				Refresh: NewSecret(fmt.Sprintf("r%d", n)),
				Expires: time.UnixMilli(r.wall.Load()).Add(time.Hour),
				Raw:     c.Raw,
			}, nil
		},
	})
	r.elapsed = func() time.Duration { return time.Duration(r.stopped.Load()) }
	return r
}

func (r *renewing) token(t *testing.T, access string) Credentials {
	t.Helper()
	got, err := r.Token(t.Context(), "acme", MinLife)
	if err != nil || got.Key.Reveal() != access || got.Source != StoredOAuth {
		t.Fatalf("got %q, %v; want %q", got.Key.Reveal(), err, access)
	}
	return got
}

func TestWhenTokensAreRenewed(t *testing.T) {
	in := func(d time.Duration) int64 { return clockAt + d.Milliseconds() }
	for _, c := range []struct {
		name    string
		expires any
		want    string
	}{
		{"long good", in(time.Hour), "a0"},
		{"good for five minutes", in(5 * time.Minute), "a0"},
		{"good for less", in(5*time.Minute - time.Millisecond), "a1"},
		{"over", in(-time.Hour), "a1"},
		{"permanent", int64(maxExpires), "a0"},
		{"more than a number holds", "1e300", "a0"},
		{"a fraction", fmt.Sprintf("%d.5", in(time.Hour)), "a0"},
		{"a text", fmt.Sprintf(`"%d"`, in(time.Hour)), "a0"},
		{"seconds", in(time.Hour) / 1000, "a1"},
		{"negative", -1, "a1"},
		{"null", "null", "a1"},
		{"nonsense", `{"at":"noon"}`, "a1"},
	} {
		r := newRenewing(t, signInFile(c.expires))
		got, err := r.Token(t.Context(), "acme", MinLife)
		if err != nil || got.Key.Reveal() != c.want || got.Warning != nil {
			t.Errorf("%s: %q, %v, %v; want %q", c.name, got.Key.Reveal(), got.Warning, err, c.want)
		}
	}
}

func TestRenewedTokenIsStored(t *testing.T) {
	r := newRenewing(t, signInFile(0))
	r.token(t, "a1")
	r.token(t, "a1")
	want := fmt.Sprintf(`{"other":{"x":1},"acme":{"type":"oauth","access":"a1","refresh":"r1","expires":%d,"accountId":"id"}}`, clockAt+3600_000)
	if b, _ := os.ReadFile(r.Path()); string(b) != want {
		t.Errorf("got %s", b)
	}
	if n := r.calls.Load(); n != 1 {
		t.Errorf("renewed %d times", n)
	}
	r.pass(56 * time.Minute)
	r.token(t, "a2")
}

func TestManyAskAtOnce(t *testing.T) {
	r := newRenewing(t, signInFile(0))
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if got, err := r.Token(t.Context(), "acme", MinLife); err != nil || got.Key.Reveal() != "a1" {
				t.Errorf("%q, %v", got.Key.Reveal(), err)
			}
		})
	}
	wg.Wait()
	if n := r.calls.Load(); n != 1 {
		t.Errorf("renewed %d times", n)
	}
}

// A clock that is set back does not bring an old token back to life.
func TestClockSetBack(t *testing.T) {
	r := newRenewing(t, signInFile(clockAt+3600_000))
	r.token(t, "a0")
	r.wall.Add(-24 * 3600_000)
	r.stopped.Add(int64(57 * time.Minute))
	r.token(t, "a1")
}

func TestRefreshOutlivesTheRequest(t *testing.T) {
	r := newRenewing(t, signInFile(0))
	ctx, cancel := context.WithCancel(t.Context())
	r.issue = func(inner context.Context, c *OAuth) (*OAuth, error) {
		cancel()
		if err := inner.Err(); err != nil {
			return nil, err
		}
		end, ok := inner.Deadline()
		if left := time.Until(end); !ok || left > RefreshTimeout || left < RefreshTimeout/2 {
			t.Errorf("limit %v", left)
		}
		return &OAuth{Access: NewSecret("a1"), Refresh: NewSecret("r1"), Expires: Permanent()}, nil
	}
	if got, err := r.Token(ctx, "acme", MinLife); err != nil || got.Key.Reveal() != "a1" {
		t.Errorf("%q, %v", got.Key.Reveal(), err)
	}
	if b, _ := os.ReadFile(r.Path()); !strings.Contains(string(b), `"r1"`) || !strings.Contains(string(b), `"accountId":"id"`) {
		t.Errorf("stored %s", b)
	}
	// A request that ended before asks nobody.
	again := newRenewing(t, signInFile(0))
	if _, err := again.Token(ctx, "acme", MinLife); !errors.Is(err, context.Canceled) || again.calls.Load() != 0 {
		t.Error(err, again.calls.Load())
	}
}

func TestFailedRefresh(t *testing.T) {
	network := errors.New("no route to the issuer")
	r := newRenewing(t, signInFile(clockAt+30_000))
	r.issue = func(context.Context, *OAuth) (*OAuth, error) { return nil, network }
	got := r.token(t, "a0")
	const words = "OAuth refresh failed for acme: no route to the issuer; try again, or sign in with: pinch auth login acme"
	if got.Warning == nil || got.Warning.Error() != words {
		t.Errorf("warning %v", got.Warning)
	}
	r.token(t, "a0")
	if n := r.calls.Load(); n != 1 {
		t.Errorf("tried %d times while the token is good", n)
	}
	r.pass(31 * time.Second)
	for range 2 {
		_, err := r.Token(t.Context(), "acme", MinLife)
		failed, ok := errors.AsType[*RefreshError](err)
		if !ok || failed.Provider != "acme" || failed.SignInEnded() || !errors.Is(err, network) || err.Error() != words {
			t.Errorf("got %v", err)
		}
		r.pass(time.Second)
	}
	if n := r.calls.Load(); n != 3 {
		t.Errorf("tried %d times in all", n)
	}
	r.issue = nil
	r.token(t, "a4")
}

func TestEndedSignIn(t *testing.T) {
	r := newRenewing(t, signInFile(0))
	r.issue = func(context.Context, *OAuth) (*OAuth, error) {
		return nil, fmt.Errorf("invalid_grant: %w", ErrSignInEnded)
	}
	for range 2 {
		_, err := r.Token(t.Context(), "acme", MinLife)
		const words = "OAuth refresh failed for acme: invalid_grant: the sign-in is no longer valid; sign in again with: pinch auth login acme"
		if failed, ok := errors.AsType[*RefreshError](err); !ok || !failed.SignInEnded() || err.Error() != words {
			t.Errorf("got %v", err)
		}
	}
	if n := r.calls.Load(); n != 1 {
		t.Errorf("a dead token was tried %d times", n)
	}
	// The stored credential owns the provider.
	_, err := Find(t.Context(), Query{Provider: "acme", Store: r.Store, EnvNames: []string{"KEY"}, Env: Env{Scoped: map[string]string{"KEY": "k"}}})
	if _, ok := errors.AsType[*RefreshError](err); !ok {
		t.Errorf("got %v", err)
	}
	// A new sign-in counts.
	if err := r.Set(t.Context(), "acme", &OAuth{Access: NewSecret("new"), Refresh: NewSecret("r"), Expires: Permanent()}); err != nil {
		t.Fatal(err)
	}
	r.token(t, "new")
}

func TestNothingToRenewWith(t *testing.T) {
	r := newRenewing(t, `{"acme":{"type":"oauth","access":"a","expires":1000000060000}}`)
	r.token(t, "a")
	r.pass(time.Hour)
	_, err := r.Token(t.Context(), "acme", MinLife)
	const words = "OAuth refresh failed for acme: the token expired at 2001-09-09T01:47:40Z and cannot be renewed; sign in again with: pinch auth login acme"
	if err == nil || err.Error() != words || r.calls.Load() != 0 {
		t.Errorf("got %v", err)
	}
	if _, err := r.Token(t.Context(), "nobody", MinLife); err == nil || !strings.Contains(err.Error(), "no sign-in is stored for nobody") {
		t.Errorf("got %v", err)
	}
}

// An entry without an access token is renewed, whatever it says about its end, and
// is an error where that cannot be.
func TestNoAccessToken(t *testing.T) {
	for _, access := range []string{`"access":"",`, `"access":5,`, ""} {
		content := func(refresh string) string {
			return fmt.Sprintf(`{"acme":{"type":"oauth",%s"refresh":"%s","expires":9007199254740991}}`, access, refresh)
		}
		newRenewing(t, content("r0")).token(t, "a1")
		got, err := newRenewing(t, content("")).Token(t.Context(), "acme", MinLife)
		if e, ok := errors.AsType[*RefreshError](err); !ok || !e.SignInEnded() || !strings.Contains(err.Error(), "no access token; sign in again") {
			t.Errorf("%s: got %v, %v", access, got, err)
		}
	}
}

func TestOddAnswersOfIssuers(t *testing.T) {
	r := newRenewing(t, signInFile(0))
	r.issue = func(context.Context, *OAuth) (*OAuth, error) {
		return &OAuth{Access: NewSecret("short"), Expires: time.UnixMilli(5)}, nil
	}
	// What was issued just now is used, whatever is said about its end, and a
	// refresh token that is not replaced stays.
	r.token(t, "short")
	if c, _ := r.Get("acme"); c.(*OAuth).Refresh.Reveal() != "r0" {
		t.Error("the refresh token is lost")
	}
	for name, answer := range map[string]*OAuth{"nothing": nil, "no token": {Refresh: NewSecret("r")}} {
		r := newRenewing(t, signInFile(0))
		r.issue = func(context.Context, *OAuth) (*OAuth, error) { return answer, nil }
		if _, err := r.Token(t.Context(), "acme", MinLife); err == nil || !strings.Contains(err.Error(), "no access token") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A renewed token that cannot be written is used, and written when that works.
func TestRenewedTokenThatCannotBeStored(t *testing.T) {
	r := newRenewing(t, signInFile(0))
	good, _ := os.ReadFile(r.Path())
	r.issue = func(_ context.Context, c *OAuth) (*OAuth, error) {
		os.WriteFile(r.Path(), []byte("{ half"), 0o600)
		return &OAuth{Access: NewSecret("a1"), Refresh: NewSecret("r1"), Expires: time.UnixMilli(clockAt + 3600_000)}, nil
	}
	got := r.token(t, "a1")
	if got.Warning == nil || !strings.Contains(got.Warning.Error(), "not stored") || !strings.Contains(got.Warning.Error(), "line 1, column 3") {
		t.Errorf("warning %v", got.Warning)
	}
	if b, _ := os.ReadFile(r.Path()); string(b) != "{ half" {
		t.Errorf("written over: %s", b)
	}
	r.token(t, "a1") // from memory
	os.WriteFile(r.Path(), good, 0o600)
	r.token(t, "a1")
	if err := r.Set(t.Context(), "other", &APIKey{Key: NewSecret("k")}); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(r.Path()); !strings.Contains(string(b), `"refresh":"r1"`) {
		t.Errorf("not written later: %s", b)
	}
	if r.calls.Load() != 1 {
		t.Error("renewed again")
	}
	// What somebody else stored meanwhile wins.
	other := newRenewing(t, signInFile(0))
	other.issue = func(context.Context, *OAuth) (*OAuth, error) {
		os.WriteFile(other.Path(), []byte("{ half"), 0o600)
		return &OAuth{Access: NewSecret("a1"), Refresh: NewSecret("r1"), Expires: Permanent()}, nil
	}
	other.token(t, "a1")
	os.WriteFile(other.Path(), []byte(`{"acme":{"type":"oauth","access":"theirs","refresh":"r9","expires":9007199254740991}}`), 0o600)
	other.token(t, "theirs")
}

// A process that was stopped so long that it lost the lock stores what it got
// all the same.
func TestRefreshThatLosesTheLock(t *testing.T) {
	r := newRenewing(t, signInFile(0))
	dir := r.Path() + ".lock"
	r.issue = func(context.Context, *OAuth) (*OAuth, error) {
		over := time.Now().Add(-time.Hour)
		if err := os.Chtimes(dir, over, over); err != nil { // taken over, and left behind
			t.Error(err)
		}
		return &OAuth{Access: NewSecret("a1"), Refresh: NewSecret("r1"), Expires: Permanent()}, nil
	}
	if got := r.token(t, "a1"); got.Warning != nil {
		t.Errorf("warning %v", got.Warning)
	}
	if b, _ := os.ReadFile(r.Path()); !strings.Contains(string(b), `"refresh":"r1"`) {
		t.Errorf("not stored: %s", b)
	}
	if _, err := os.Lstat(dir); err == nil {
		t.Error("the lock is left")
	}
}

func TestLockInTheWayOfARefresh(t *testing.T) {
	r := newRenewing(t, signInFile(clockAt+30_000))
	if err := os.WriteFile(r.Path()+".lock", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := r.token(t, "a0"); got.Warning == nil {
		t.Error("no warning")
	}
	r.pass(time.Minute)
	if _, err := r.Token(t.Context(), "acme", MinLife); err == nil || !strings.Contains(err.Error(), "is in the way") {
		t.Errorf("got %v", err)
	}
}

// A key that is stored while a request waits for the lock takes the sign-in's
// place.
func TestSignInReplacedWhileWaiting(t *testing.T) {
	r := newRenewing(t, signInFile(0))
	l, err := sharedfile.TakeLock(t.Context(), r.Path()+".lock", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		found, err := Find(t.Context(), Query{Provider: "acme", Store: r.Store})
		if err == nil && found.Key.Reveal() != "key" {
			err = fmt.Errorf("got %q", found.Key.Reveal())
		}
		done <- err
	}()
	time.Sleep(30 * time.Millisecond)
	os.WriteFile(r.Path(), []byte(`{"acme":{"type":"api_key","key":"key"}}`), 0o600)
	l.Release()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if r.calls.Load() != 0 {
		t.Error("renewed")
	}
}

// A program that takes no lock renewed first: the issuer refuses our try, and
// what that program stored counts.
func TestSomebodyElseWasFaster(t *testing.T) {
	r := newRenewing(t, signInFile(0))
	r.issue = func(context.Context, *OAuth) (*OAuth, error) {
		os.WriteFile(r.Path(), []byte(`{"acme":{"type":"oauth","access":"theirs","refresh":"r9","expires":9007199254740991}}`), 0o600)
		return nil, ErrSignInEnded
	}
	r.token(t, "theirs")
	r.token(t, "theirs")
}

// The same with the system's clock, which goes on between two looks.
func TestFailedRefreshByTheRealClock(t *testing.T) {
	path := newStore(t, signInFile(time.Now().Add(-time.Hour).UnixMilli())).Path()
	no := errors.New("no")
	s := OpenStore(path, StoreOptions{Refresh: func(context.Context, string, *OAuth) (*OAuth, error) { return nil, no }})
	if got, err := s.Token(t.Context(), "acme", MinLife); !errors.Is(err, no) {
		t.Errorf("%v, %v", got, err)
	}
}
