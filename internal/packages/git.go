package packages

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/pinch-agent/pinch/internal/gitsource"
	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// repository is a source of git.
type repository struct {
	address   string // for git
	ref       string // "" for the default branch
	protocols []string
}

// refForm is what a ref may look like: nothing that git takes for an option or
// for a rule of how refs are stored.
var refForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./@+-]*$`) })

// The parts of an address leave out what git, ssh or an address gives a meaning of
// its own, such as the colons of hosts that are given by number.
var (
	hostForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\pL\pN][\pL\pM\pN._-]*$`) })
	userForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+-]*$`) })
	portForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]{1,5}$`) })
)

func parseGit(source string, protocols []string) (repository, error) {
	s, ok := gitsource.Parse(jsonwire.Trim(source))
	r := repository{address: s.Address(), ref: s.Ref, protocols: protocols}
	switch {
	case !ok:
		return r, faultf(Invalid, "it is no address of a repository")
	case !slices.Contains(protocols, s.Scheme):
		return r, faultf(Invalid, "repositories are fetched by https and ssh, not by %s", clip(s.Scheme))
	case strings.Contains(s.User, ":") || s.User != "" && s.Scheme != "ssh":
		return r, faultf(Invalid, "there is a key in the address").advise("leave it to git's credential helper")
	case s.Host == "" && s.Scheme != "file" || s.Host != "" && !hostForm().MatchString(s.Host):
		return r, faultf(Invalid, "its host is no name").advise("give the host of the repository by its name")
	case s.User != "" && !userForm().MatchString(s.User), s.Port != "" && !portForm().MatchString(s.Port),
		s.Path == "", strings.ContainsAny(s.Path, "?%\\"), strings.ContainsFunc(s.Path, func(c rune) bool { return unicode.IsSpace(c) || unseen(c) }):
		return r, faultf(Invalid, "it is no address of a repository")
	case s.Ref != "" && (!refForm().MatchString(s.Ref) || strings.Contains(s.Ref, "..") || strings.Contains(s.Ref, "@{")):
		return r, faultf(Invalid, "%q is no branch, tag or commit", clip(s.Ref))
	}
	return r, nil
}

const gitTime = 15 * time.Minute

// fetchGit fetches one commit and unpacks it as any other archive. Nothing is
// checked out, so that no filter and no hook has a part in it.
func (in *Installer) fetchGit(ctx context.Context, r repository, s *staging, known *Record) (*Record, error) {
	ctx, cancel := context.WithTimeout(ctx, gitTime)
	defer cancel()
	program, err := exec.LookPath("git")
	if err != nil {
		return nil, faultf(System, "there is no git on PATH").advise("install it")
	}
	g := &git{program: program, dir: filepath.Join(s.dir, "repository"), environ: gitEnviron(in.Environ), protocols: r.protocols}
	if err := g.run(ctx, nil, "init", "--quiet", "--bare", "--template=", g.dir); err != nil {
		return nil, err
	}
	commit, err := g.fetch(ctx, r)
	if err != nil {
		return nil, err
	}
	if known != nil && known.Commit == commit {
		return nil, nil
	}
	// What is in the repository counts, not what its attributes make of it.
	info := filepath.Join(g.dir, "info")
	if err := errors.Join(os.MkdirAll(info, 0o755), os.WriteFile(filepath.Join(info, "attributes"), []byte("* -export-ignore -export-subst -text -ident -filter -working-tree-encoding\n"), 0o644)); err != nil {
		return nil, err
	}
	archive := filepath.Join(s.dir, "archive")
	limits := in.limits()
	if err := g.archive(ctx, commit, archive, limits.Content+int64(limits.Files)*2048); err != nil {
		return nil, err
	}
	f, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	files, err := unpack(ctx, f, s.files, 0, limits)
	if err != nil {
		return nil, err
	}
	return &Record{Commit: commit, Archive: r.address, Files: files}, nil
}

var commitForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{4,64}$`) })

// fetch fetches a ref, as little as the server allows, and returns its commit.
func (g *git) fetch(ctx context.Context, r repository) (string, error) {
	get := func(options []string, refs ...string) error {
		args := append([]string{"fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"}, options...)
		return g.run(ctx, nil, append(append(args, "--", r.address), refs...)...)
	}
	const here = "refs/pinch/wanted"
	ref := r.ref
	if ref == "" {
		ref = "HEAD"
	}
	wanted := here
	err := get([]string{"--depth=1"}, "+"+ref+":"+here)
	if err != nil && ctx.Err() == nil && commitForm().MatchString(ref) {
		// A commit that the server does not give by itself, or a short one.
		if err = get(nil, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"); err == nil {
			wanted = ref
		}
	}
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	if err := g.run(ctx, &out, "rev-parse", "--verify", "--quiet", "--end-of-options", wanted+"^{commit}"); err != nil {
		return "", faultf(NotFound, "the repository has no commit %q", ref)
	}
	return strings.TrimSpace(out.String()), nil
}

func (g *git) archive(ctx context.Context, commit, file string, limit int64) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = g.run(ctx, &bounded{w: f, left: limit}, "archive", "--format=tar", commit)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// bounded refuses more than so many bytes.
type bounded struct {
	w    io.Writer
	left int64
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, tooMuch()
	}
	return b.w.Write(p)
}

// git runs git in a repository of ours.
type git struct {
	program, dir string
	environ      []string
	protocols    []string
}

func (g *git) run(ctx context.Context, out io.Writer, args ...string) error {
	config := []string{
		"--git-dir=" + g.dir, "--no-replace-objects",
		"-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false", "-c", "core.attributesFile=" + os.DevNull,
		"-c", "submodule.recurse=false", "-c", "fetch.recurseSubmodules=false", "-c", "maintenance.auto=false", "-c", "gc.auto=0",
		"-c", "core.autocrlf=false", "-c", "credential.interactive=false", "-c", "protocol.allow=never",
	}
	for _, p := range g.protocols {
		config = append(config, "-c", "protocol."+p+".allow=always")
	}
	cmd := exec.CommandContext(ctx, g.program, append(config, args...)...)
	cmd.Env, cmd.Dir = g.environ, filepath.Dir(g.dir)
	cmd.WaitDelay = 2 * time.Second
	ownGroup(cmd)
	var said tail
	cmd.Stdout, cmd.Stderr = out, &said
	err := cmd.Run()
	endGroup(cmd)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		return faultf(Transport, "git %s: %s", args[0], said.reason())
	}
	if err != nil {
		return fmt.Errorf("git %s: %w", args[0], err)
	}
	return nil
}

// tail keeps the end of what a program says.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if over := len(t.b) - 4096; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(p), nil
}

// reason is the first line that says what is wrong.
func (t *tail) reason() string {
	last := "it failed"
	for line := range strings.Lines(string(t.b)) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "fatal: "); ok {
			return rest
		}
		if line != "" {
			last = line
		}
	}
	return last
}

// gitEnviron is what git needs of the environment: where its own configuration
// and the person's keys for ssh are, how to reach the network, and no key of a
// model.
func gitEnviron(environ []string) []string {
	keep := []string{
		"PATH", "HOME", "USER", "LOGNAME", "LANG", "TMPDIR", "TMP", "TEMP", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS",
		"SSH_AUTH_SOCK", "SSH_AGENT_PID", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "SSL_CERT_FILE", "SSL_CERT_DIR",
		"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
		"SYSTEMROOT", "WINDIR", "COMSPEC", "PATHEXT", "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)",
	}
	var out []string
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		if slices.Contains(keep, strings.ToUpper(name)) {
			out = append(out, v)
		}
	}
	return append(out, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_LFS_SKIP_SMUDGE=1", "GCM_INTERACTIVE=never", "GIT_ATTR_NOSYSTEM=1")
}
