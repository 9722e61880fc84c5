package resource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/regular"
	"github.com/pinch-agent/pinch/internal/sharedfile"
)

// NeedsTrust reports whether the project has resources that are used only when
// the person trusts it: settings, servers, extensions, skills, templates, themes
// or a system prompt of its own. Context files are not among them.
func NeedsTrust(f Folders) bool {
	for _, name := range []string{"settings.json", "mcp.json", "extensions", "skills", "prompts", "themes", "SYSTEM.md", "APPEND_SYSTEM.md"} {
		if f.Project(name) != "" {
			return true
		}
	}
	for _, dir := range ancestors(f.Cwd) {
		skills := filepath.Join(dir, ".agents", "skills")
		if isDir(skills) && !f.ownAgents(skills) {
			return true
		}
	}
	return false
}

// ownAgents reports whether a folder of skills is the user's own.
func (f Folders) ownAgents(skills string) bool {
	return f.Home != "" && canonical(skills) == canonical(filepath.Join(f.Home, ".agents", "skills"))
}

// TrustStore is trust.json: which folders a person trusts, with all below them.
type TrustStore struct{ decisions map[string]bool }

const trustFile = "trust.json"

// TrustError says that trust.json cannot be read or written.
type TrustError struct {
	Op    string // read or write
	Path  string
	Cause error
}

func (e *TrustError) Error() string {
	if e.Op == "write" {
		return fmt.Sprintf("could not write %s: %v; the decision is not kept", e.Path, e.Cause)
	}
	if errors.Is(e.Cause, fs.ErrPermission) {
		return fmt.Sprintf("The trust file %s cannot be read: %v; give yourself the right to read it", e.Path, e.Cause)
	}
	return fmt.Sprintf("Invalid trust file %s: %v; correct or remove it", e.Path, e.Cause)
}

func (e *TrustError) Unwrap() error { return e.Cause }

// ReadTrust reads trust.json of an agent folder; a missing file decides nothing.
// A malformed one is an error: it must not turn into an answer.
func ReadTrust(agentFolder string) (*TrustStore, error) {
	path := filepath.Join(agentFolder, trustFile)
	s := &TrustStore{decisions: map[string]bool{}}
	b, err := regular.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, &TrustError{Op: "read", Path: path, Cause: cause(err)}
	}
	b = bytes.TrimPrefix(b, []byte("\xEF\xBB\xBF"))
	if err := jsonwire.Check(b); err != nil {
		return nil, &TrustError{Op: "read", Path: path, Cause: err}
	}
	var r jsonwire.Reader
	r.Reset(b)
	if r.Kind() != '{' {
		return nil, &TrustError{Op: "read", Path: path, Cause: errors.New("not a JSON object")}
	}
	exact := map[string]bool{}
	for r.Object(); r.More(); {
		key := string(r.Key())
		dir := filepath.Clean(key) // others may end it in a slash
		if exact[dir] && key != dir {
			r.Skip() // what stands for the folder as it is written here counts
			continue
		}
		exact[dir] = key == dir
		switch r.Kind() {
		case 't', 'f':
			s.decisions[dir] = r.Bool()
		case 'n':
			r.Skip()
			delete(s.decisions, dir)
		default:
			return nil, &TrustError{Op: "read", Path: path, Cause: fmt.Errorf("%q has neither true nor false", dir)}
		}
	}
	return s, nil
}

// Decision is what was decided for the nearest folder at or above dir; known is
// false when nothing was.
func (s *TrustStore) Decision(dir string) (trusted, known bool) {
	if s == nil {
		return false, false
	}
	for _, d := range ancestors(canonical(dir)) {
		if t, ok := s.decisions[d]; ok {
			return t, true
		}
	}
	return false, false
}

// SaveTrust records decisions in trust.json of an agent folder: true and false
// for a folder and all below it, nil to take a decision back. Other programs may
// write the file at the same time: the lock is the folder trust.json.lock.
func SaveTrust(ctx context.Context, agentFolder string, decisions map[string]*bool) error {
	path := filepath.Join(agentFolder, trustFile)
	fail := func(err error) error { return &TrustError{Op: "write", Path: path, Cause: cause(err)} }
	for dir := range decisions {
		if !utf8.ValidString(canonical(dir)) { // the file would name another folder
			return fail(fmt.Errorf("the name of the folder %q is no text in UTF-8: rename it", dir))
		}
	}
	if err := os.MkdirAll(agentFolder, 0o700); err != nil {
		return fail(err)
	}
	target := sharedfile.Resolve(path)
	lock, err := sharedfile.TakeLock(ctx, target+".lock", lockStale)
	if err != nil {
		return fail(err)
	}
	defer lock.Release()
	s, err := ReadTrust(agentFolder)
	if err != nil {
		return err
	}
	for dir, decision := range decisions {
		if dir = canonical(dir); decision == nil {
			delete(s.decisions, dir)
		} else {
			s.decisions[dir] = *decision
		}
	}
	if !lock.Held() {
		return fail(sharedfile.ErrLockLost)
	}
	if err := sharedfile.Replace(target, s.encode(), 0o600); err != nil {
		return fail(err)
	}
	return nil
}

// encode is the content of trust.json: sorted, so that it changes as little as
// the decisions do.
func (s *TrustStore) encode() []byte {
	b := []byte{'{'}
	for i, dir := range slices.Sorted(maps.Keys(s.decisions)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, "\n  "...)
		b = jsonwire.AppendString(b, dir)
		b = strconv.AppendBool(append(b, ": "...), s.decisions[dir])
	}
	if len(s.decisions) > 0 {
		b = append(b, '\n')
	}
	return append(b, "}\n"...)
}

// lockStale is how old the lock of the file is that was left behind: so other
// programs that share the file have it.
const lockStale = 10 * time.Second

// TrustQuery is what decides whether a project is trusted.
type TrustQuery struct {
	Needed  bool        // from NeedsTrust
	Flag    *bool       // --approve or --no-approve; nil for neither
	Asked   *bool       // what an extension answered; nil for none
	Store   *TrustStore // nil for none
	Dir     string      // the working folder
	Default string      // the defaultProjectTrust setting: always, never or ask
	// Ask asks the person; nil when nobody can be asked, which means no.
	Ask func() bool
}

// Trusted decides. A project with nothing to protect is trusted, unless somebody
// said no to it.
func (q TrustQuery) Trusted() bool {
	if q.Flag != nil {
		return *q.Flag
	}
	if !q.Needed {
		trusted, known := q.Store.Decision(q.Dir)
		return trusted || !known
	}
	if q.Asked != nil {
		return *q.Asked
	}
	if trusted, known := q.Store.Decision(q.Dir); known {
		return trusted
	}
	switch strings.ToLower(q.Default) {
	case "always":
		return true
	case "never":
		return false
	}
	return q.Ask != nil && q.Ask()
}
