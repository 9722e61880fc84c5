package auth

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestCreate(t *testing.T) {
	s := OpenStore(filepath.Join(t.TempDir(), "auth.json"), StoreOptions{})
	raw := []byte(`{"type":"oauth","access":"a","refresh":"r","expires":5,"accountId":"me"}`)
	created, err := s.Create(t.Context(), map[string]Credential{
		"b": &APIKey{Key: NewSecret("k")}, "a": &OAuth{Access: NewSecret("a"), Refresh: NewSecret("r"), Expires: time.UnixMilli(5), Raw: raw},
	})
	const want = "{\n  \"a\": {\n    \"type\": \"oauth\",\n    \"access\": \"a\",\n    \"refresh\": \"r\",\n    \"expires\": 5,\n    \"accountId\": \"me\"\n  },\n" +
		"  \"b\": {\n    \"type\": \"api_key\",\n    \"key\": \"k\"\n  }\n}"
	if b, _ := os.ReadFile(s.Path()); !created || err != nil || string(b) != want {
		t.Errorf("%v, %v: %s", created, err, b)
	}
	created, err = s.Create(t.Context(), map[string]Credential{"c": &APIKey{Key: NewSecret("k")}})
	if b, _ := os.ReadFile(s.Path()); created || err != nil || string(b) != want {
		t.Errorf("%v, %v: %s", created, err, b)
	}
}

// within is a context with a limit.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestBrokenFileSaysWhere(t *testing.T) {
	for content, want := range map[string]string{
		"{\n  \"a\": {\"type\": \"api_key\",\n    \"key\": sk-123}\n}": "line 3, column 12: unexpected character",
		"{\"a\": {":         "line 1, column 8: unexpected end",
		"[1]":               "not a JSON object",
		"{\n} trailing":     "line 2, column 3: text after the value",
		"\uFEFF{\"a\" 1}":   "line 1, column 6: expected a colon",
		"{\"a\": {},\n\n\t": "line 3, column 2: unexpected end",
	} {
		s := newStore(t, content)
		_, err := s.Get("a")
		if err == nil || err.Error() != "Invalid credentials file "+s.Path()+": "+want+"; correct or remove it" {
			t.Errorf("%q: %v; want %s", content, err, want)
		}
		for _, change := range []func() error{
			func() error { return s.Set(t.Context(), "a", &APIKey{Key: NewSecret("k")}) },
			func() error { _, err := s.Remove(t.Context(), "a"); return err },
		} {
			if err := change(); err == nil {
				t.Errorf("%q was changed", content)
			}
		}
		if b, _ := os.ReadFile(s.Path()); string(b) != content {
			t.Errorf("%q became %q", content, b)
		}
	}
}

func TestModify(t *testing.T) {
	s := newStore(t, `{"a":{"type":"api_key","key":"1"}}`)
	err := s.Modify(t.Context(), "a", func(_ context.Context, old Credential) (Credential, error) {
		key := old.(*APIKey)
		key.Key = NewSecret(key.Key.Reveal() + "2")
		return key, nil
	})
	if c, _ := s.Get("a"); err != nil || c.(*APIKey).Key.Reveal() != "12" {
		t.Errorf("%v %v", c, err)
	}
	before, _ := os.ReadFile(s.Path())
	no := errors.New("no")
	for _, want := range []error{nil, no} {
		err := s.Modify(t.Context(), "b", func(_ context.Context, old Credential) (Credential, error) {
			if old != nil {
				t.Errorf("got %v", old)
			}
			return nil, want
		})
		if err != want {
			t.Errorf("got %v", err)
		}
	}
	if after, _ := os.ReadFile(s.Path()); string(after) != string(before) {
		t.Errorf("changed: %s", after)
	}
}

func TestExposedFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no permissions for groups")
	}
	s := newStore(t, `{"a":{"type":"api_key","key":"1"}}`)
	if err := s.Exposure(); err != nil {
		t.Error(err)
	}
	if err := os.Chmod(s.Path(), 0o644); err != nil {
		t.Fatal(err)
	}
	err := s.Exposure()
	if e, ok := errors.AsType[*ExposedError](err); !ok || e.Mode != 0o644 || !strings.Contains(err.Error(), s.Path()+" can be read by other users (mode 0644)") {
		t.Errorf("got %v", err)
	}
	if c, err := s.Get("a"); c == nil || err != nil {
		t.Error(c, err)
	}
	if err := s.Set(t.Context(), "b", &APIKey{Key: NewSecret("k")}); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(s.Path()); info.Mode().Perm() != 0o600 || s.Exposure() != nil {
		t.Errorf("mode %v, %v", info.Mode(), s.Exposure())
	}
	if info, _ := os.Stat(filepath.Dir(newlySet(t).Path())); info.Mode().Perm() != 0o700 {
		t.Errorf("folder %v", info.Mode())
	}
}

// newlySet is a store whose file and folder were just made.
func newlySet(t *testing.T) *Store {
	t.Helper()
	s := newStore(t, "")
	if err := s.Set(t.Context(), "a", &APIKey{Key: NewSecret("k")}); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLinkedFile(t *testing.T) {
	for name, make := range map[string]func(dir string) error{
		"link to a file": func(dir string) error {
			if err := os.WriteFile(filepath.Join(dir, "real", "auth.json"), []byte(`{"x":1}`), 0o600); err != nil {
				return err
			}
			return os.Symlink(filepath.Join(dir, "real", "auth.json"), filepath.Join(dir, "auth.json"))
		},
		"relative link to a link to nothing": func(dir string) error {
			if err := os.Symlink(filepath.Join(dir, "real", "auth.json"), filepath.Join(dir, "next")); err != nil {
				return err
			}
			return os.Symlink("next", filepath.Join(dir, "auth.json"))
		},
	} {
		dir := t.TempDir()
		os.Mkdir(filepath.Join(dir, "real"), 0o700)
		if err := make(dir); err != nil {
			t.Skip("no links here: ", err)
		}
		s := OpenStore(filepath.Join(dir, "auth.json"), StoreOptions{})
		err := s.Modify(t.Context(), "a", func(context.Context, Credential) (Credential, error) {
			if _, err := os.Lstat(filepath.Join(dir, "real", "auth.json.lock")); err != nil {
				t.Errorf("%s: the lock is elsewhere: %v", name, err)
			}
			return &APIKey{Key: NewSecret("k")}, nil
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if info, err := os.Lstat(s.Path()); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%s: the link is gone: %v", name, err)
		}
		if b, _ := os.ReadFile(filepath.Join(dir, "real", "auth.json")); !strings.Contains(string(b), `"k"`) {
			t.Errorf("%s: %s", name, b)
		}
	}
}

// A program that writes in place, under the lock, is caught half way.
func TestFileBeingWritten(t *testing.T) {
	const whole = `{"a":{"type":"api_key","key":"1"}}`
	for _, half := range []string{"", whole[:20]} {
		for _, warm := range []bool{true, false} {
			s := newStore(t, whole)
			if warm {
				s.Get("a")
			}
			if err := os.Mkdir(s.Path()+".lock", 0o700); err != nil {
				t.Fatal(err)
			}
			os.WriteFile(s.Path(), []byte(half), 0o600)
			done := make(chan bool)
			go func() {
				time.Sleep(15 * time.Millisecond)
				os.WriteFile(s.Path(), []byte(whole), 0o600)
				os.Remove(s.Path() + ".lock")
				close(done)
			}()
			if c, err := s.Get("a"); c == nil || err != nil {
				t.Errorf("%q, warm %v: %v, %v", half, warm, c, err)
			}
			<-done
			if c, err := s.Get("a"); c == nil || err != nil || s.Problem() != nil {
				t.Errorf("%q, warm %v, afterwards: %v, %v", half, warm, c, err)
			}
		}
	}
}

// Two writes within one step of the file system's clock, of the same length.
func TestQuickChangesAreSeen(t *testing.T) {
	s := newStore(t, `{"a":{"type":"api_key","key":"0"}}`)
	for _, key := range []string{"1", "2", "3", "4"} {
		os.WriteFile(s.Path(), []byte(`{"a":{"type":"api_key","key":"`+key+`"}}`), 0o600)
		if c, err := s.Get("a"); err != nil || c.(*APIKey).Key.Reveal() != key {
			t.Errorf("got %v, %v", c, err)
		}
	}
}

func TestLeftTemporaryFilesGo(t *testing.T) {
	s := newlySet(t)
	left := s.Path() + ".tmp-123"
	os.WriteFile(left, []byte("secret"), 0o600)
	if err := s.Set(t.Context(), "b", &APIKey{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(left); err == nil {
		t.Error("a temporary file of a process that died is left")
	}
}

func TestOtherGoroutinesWait(t *testing.T) {
	s := newStore(t, "{}")
	inside := make(chan bool)
	done := make(chan error)
	go func() {
		done <- s.Modify(context.Background(), "a", func(context.Context, Credential) (Credential, error) {
			inside <- true
			<-inside
			return nil, nil
		})
	}()
	<-inside
	if err := s.Set(within(t, 30*time.Millisecond), "a", &APIKey{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	inside <- true
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Who may not read the file is not told to remove it: it may hold their keys.
func TestFileErrorAdvice(t *testing.T) {
	for _, c := range []struct {
		err  FileError
		want string
	}{
		{FileError{Path: "a.json", Op: "read", Cause: &fs.PathError{Op: "open", Path: "a.json", Err: fs.ErrPermission}}, "give yourself the right to read it"},
		{FileError{Path: "a.json", Op: "parse", Cause: errors.New("a comma")}, "correct or remove it"},
	} {
		if got := c.err.Error(); !strings.HasSuffix(got, c.want) {
			t.Errorf("%q does not end with %q", got, c.want)
		}
	}
}
