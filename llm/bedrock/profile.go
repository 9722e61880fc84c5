package bedrock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// section is a section of a configuration file of AWS.
type section map[string]string

func (s section) holdsKeys() bool {
	return s["aws_access_key_id"] != "" && s["aws_secret_access_key"] != ""
}

// profiles is what the configuration files of AWS hold.
type profiles struct {
	profile  map[string]section
	sessions map[string]section // sso-session
	files    []string           // that were looked for
	problem  error              // of a file that is there and cannot be read
}

func (x *exchange) profiles() *profiles { return readProfiles(x.env) }

func (f *finder) home() string { return homeOf(f.env) }

// homeOf is the user's folder by the environment, "" when it names none.
func homeOf(env func(string) string) string {
	if runtime.GOOS == "windows" {
		return first(env("USERPROFILE"), env("HOME"))
	}
	return env("HOME")
}

// readProfiles reads the files; what is not there, and what is not understood,
// is passed over.
func readProfiles(env func(string) string) *profiles {
	p := &profiles{profile: map[string]section{}, sessions: map[string]section{}}
	home := homeOf(env)
	read := func(file, usual string, config bool) {
		rest, ok := strings.CutPrefix(file, "~/")
		if !ok {
			rest, ok = strings.CutPrefix(file, "~"+string(os.PathSeparator))
		}
		switch {
		case file == "" && home == "", ok && home == "":
			return
		case file == "":
			file = filepath.Join(home, ".aws", usual)
		case ok:
			file = filepath.Join(home, rest)
		}
		p.files = append(p.files, file)
		text, err := os.ReadFile(file)
		if err != nil {
			if !errors.Is(err, os.ErrNotExist) {
				p.problem = err
			}
			return
		}
		p.parse(string(text), config)
	}
	read(env("AWS_CONFIG_FILE"), "config", true)
	read(env("AWS_SHARED_CREDENTIALS_FILE"), "credentials", false) // wins over the other
	return p
}

// parse reads the text of a file. In the configuration file the names of
// profiles have the word profile in front, and there are other sections too.
func (p *profiles) parse(text string, config bool) {
	var into section
	nested := false                           // the lines of a value that is a list of its own; none of them is used here
	text = strings.TrimPrefix(text, "\uFEFF") // of editors on Windows
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
		case trimmed[0] == '[':
			name, _, closed := strings.Cut(trimmed[1:], "]")
			into, nested = nil, false
			if closed {
				into = p.section(name, config)
			}
		case into == nil || nested && (line[0] == ' ' || line[0] == '\t'):
		default:
			name, value, ok := strings.Cut(trimmed, "=")
			if !ok {
				continue
			}
			for _, mark := range [...]string{" #", " ;", "\t#", "\t;"} {
				value, _, _ = strings.Cut(value, mark)
			}
			if value = strings.TrimSpace(value); value != "" {
				into[strings.ToLower(strings.TrimSpace(name))] = value
			}
			nested = value == ""
		}
	}
}

// section is the section to fill for a heading, nil for one that is not used.
func (p *profiles) section(heading string, config bool) section {
	name := strings.TrimSpace(heading)
	table := p.profile
	if config {
		kind, rest := name, name
		if i := strings.IndexAny(name, " \t"); i > 0 {
			kind, rest = name[:i], name[i:]
		}
		switch {
		case name == "default":
		case kind == "profile" && kind != name:
		case kind == "sso-session" && kind != name:
			table = p.sessions
		default:
			return nil
		}
		name = strings.TrimSpace(rest)
	}
	if n := len(name); n >= 2 && (name[0] == '"' || name[0] == '\'') && name[n-1] == name[0] {
		name = name[1 : n-1]
	}
	s := table[name]
	if s == nil {
		s = section{}
		table[name] = s
	}
	return s
}

func (p *profiles) has(name string) bool { return p.profile[name] != nil }

func (p *profiles) region(name string) string { return p.profile[name]["region"] }

// missing says why a profile is not there.
func (p *profiles) missing() error {
	switch {
	case p.problem != nil:
		return p.problem
	case len(p.files) == 0:
		return errors.New("there is no home folder to look for the configuration in")
	}
	return fmt.Errorf("it is not in %s", strings.Join(p.files, " or "))
}

func profileOrigin(name string) string { return fmt.Sprintf("the profile %q", name) }

// profile finds the credentials of a profile; errNothing when it names none.
// seen are the profiles that led to it.
func (f *finder) profile(ctx context.Context, p *profiles, name string, seen []string) (keys, error) {
	fail := func(cause error, advice string) (keys, error) {
		return keys{}, &CredentialsError{Origin: profileOrigin(name), Cause: cause, Advice: advice}
	}
	if slices.Contains(seen, name) {
		return fail(errors.New("its source_profile leads back to it"), "")
	}
	s := p.profile[name]
	region := first(s["region"], f.region)
	role := s["role_arn"]
	// Keys of a profile that another takes on its role with stand above its own role.
	if role == "" || len(seen) > 0 && s.holdsKeys() {
		return f.plain(ctx, p, name)
	}
	if file := s["web_identity_token_file"]; file != "" {
		return f.webIdentity(ctx, webRole{file: file, role: role, session: s["role_session_name"], region: region, origin: profileOrigin(name)})
	}
	if s["mfa_serial"] != "" {
		return fail(errors.New("it needs a code from an MFA device, which cannot be asked for here"),
			"Sign in with another tool and name the profile that it writes, or use a credential_process")
	}
	var base keys
	var err error
	switch source := s["source_profile"]; {
	case source == name: // its own keys
		base, err = f.plain(ctx, p, name)
	case source != "":
		if !p.has(source) {
			return fail(fmt.Errorf("its source_profile %q is not in %s", source, strings.Join(p.files, " or ")), "")
		}
		base, err = f.profile(ctx, p, source, append(seen, name))
	default:
		base, err = f.source(ctx, s["credential_source"])
	}
	if errors.Is(err, errNothing) {
		return fail(errors.New("neither its source_profile nor its credential_source names keys to take on its role_arn with"), "")
	}
	if err != nil {
		return keys{}, err
	}
	return f.assumeRole(ctx, base, s, region, profileOrigin(name))
}

// plain finds the credentials of a profile itself, without its role.
func (f *finder) plain(ctx context.Context, p *profiles, name string) (keys, error) {
	s := p.profile[name]
	switch {
	case s.holdsKeys():
		return keys{
			id: s["aws_access_key_id"], secret: s["aws_secret_access_key"], token: s["aws_session_token"],
			origin: profileOrigin(name), until: f.now().Add(keepFor),
		}, nil
	case s["sso_session"] != "" || s["sso_start_url"] != "":
		return f.signOn(ctx, p, name)
	case s["credential_process"] != "":
		return f.process(ctx, s["credential_process"], name)
	case s["login_session"] != "":
		return keys{}, &CredentialsError{Origin: profileOrigin(name), Cause: errors.New("logins of `aws login` cannot be read here"),
			Advice: "Add a profile with credential_process = aws configure export-credentials --profile " + name + ", and name that one"}
	}
	return keys{}, errNothing
}

// source finds the credentials that a credential_source names.
func (f *finder) source(ctx context.Context, name string) (keys, error) {
	switch name {
	case "Environment":
		if k, ok := f.environment(); ok {
			return k, nil
		}
	case "Ec2InstanceMetadata":
		return f.instance(ctx)
	case "EcsContainer":
		return f.container(ctx)
	}
	return keys{}, errNothing
}
