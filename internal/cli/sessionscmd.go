package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pinch-agent/pinch/internal/cli/stats"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/jsonl"
)

const sessionsUsage = `Usage: pinch sessions [list] [WORD...] [--all] [--limit N] [--json]
       pinch sessions tree SESSION
       pinch sessions rename SESSION NAME
       pinch sessions move SESSION [DIR]
       pinch sessions delete SESSION... [--yes]
       pinch sessions export SESSION FILE.jsonl [--tree] [--replace]

Lists the sessions of this folder, or of --all folders, newest first. Words are
looked for in names, ids, texts and folders, what matches best first: "a phrase"
stays together, re:EXPRESSION is a regular expression. SESSION is an id, the
beginning of one, or a file. tree shows all branches of one, with the ids that
pinch --session SESSION --branch ENTRY goes back to. rename with an empty NAME takes the name away; move
makes a session one of DIR, this folder by default, when its own was moved. export
writes the branch that goes on, or the whole --tree. Each takes --session-dir DIR.
`

// sessionsArgs are the words behind "pinch sessions".
type sessionsArgs struct {
	words      []string
	sessionDir string
	limit      int

	all, json, yes, tree, replace bool
}

// runSessions is "pinch sessions".
func runSessions(ctx context.Context, p *program, words []string) error {
	if asksHelp(words) {
		_, err := io.WriteString(p.out, sessionsUsage)
		return err
	}
	name := "list"
	if len(words) > 0 && slices.Contains([]string{"list", "tree", "rename", "move", "delete", "export"}, words[0]) {
		name, words = words[0], words[1:]
	}
	a, err := parseSessions(name, words)
	if err != nil {
		return fmt.Errorf("%w (pinch sessions --help says how it is used)", err)
	}
	r := p.sessionsOf(a.sessionDir)
	r.Trash = jsonl.Trash
	if name == "list" {
		return p.listSessions(ctx, r, a)
	}
	var found []jsonl.Match
	for i, arg := range a.words {
		if i > 0 && name != "delete" {
			break
		}
		m, err := p.theSession(ctx, r, arg)
		if err != nil {
			return err
		}
		found = append(found, m)
	}
	switch name {
	case "tree":
		err = p.showTree(found[0])
	case "rename":
		err = r.SetName(found[0].Path, a.words[1])
	case "move":
		err = p.moveSession(r, found[0], a.words[1:])
	case "delete":
		err = p.deleteSessions(ctx, r, found, a.yes)
	case "export":
		err = p.exportSession(found[0], a)
	}
	return sessionError(err)
}

// parseSessions reads the words behind a sessions command.
func parseSessions(name string, words []string) (*sessionsArgs, error) {
	a := &sessionsArgs{}
	options := map[string][]string{
		"list": {"--all", "--json", "--limit"}, "delete": {"--yes"}, "export": {"--tree", "--replace"},
	}
	for i := 0; i < len(words); i++ {
		word := words[i]
		if word == "--" {
			a.words = append(a.words, words[i+1:]...)
			break
		}
		if !strings.HasPrefix(word, "--") {
			a.words = append(a.words, word)
			continue
		}
		if word != "--session-dir" && !slices.Contains(options[name], word) {
			return nil, fmt.Errorf("Unknown option for pinch sessions %s: %s", name, word)
		}
		switch word {
		case "--all":
			a.all = true
		case "--json":
			a.json = true
		case "--yes":
			a.yes = true
		case "--tree":
			a.tree = true
		case "--replace":
			a.replace = true
		default:
			if i++; i == len(words) || words[i] == "" {
				return nil, fmt.Errorf("%s requires a value", word)
			}
			if word == "--session-dir" {
				a.sessionDir = words[i]
				continue
			}
			n, err := strconv.Atoi(words[i])
			if err != nil || n < 1 {
				return nil, errors.New("--limit is a number of sessions")
			}
			a.limit = n
		}
	}
	switch n := len(a.words); {
	case name == "tree" && n != 1:
		return nil, errors.New("tree takes a session")
	case name == "rename" && n != 2:
		return nil, errors.New("rename takes a session and a name")
	case name == "move" && n != 1 && n != 2:
		return nil, errors.New("move takes a session and a folder")
	case name == "delete" && n == 0:
		return nil, errors.New("delete takes sessions")
	case name == "export" && n != 2:
		return nil, errors.New("export takes a session and the name of a file")
	}
	return a, nil
}

// theSession is the session that a person names. Where the beginning of an id fits
// several, none of them is meant.
func (p *program) theSession(ctx context.Context, r *jsonl.Repository, arg string) (jsonl.Match, error) {
	m, err := r.Find(ctx, p.cwd, arg)
	if errors.Is(err, &session.Error{Kind: session.NotFound}) {
		return m, fmt.Errorf("No session found matching '%s': pinch sessions --all lists them", arg)
	}
	if err == nil && sharesBeginning(r.Files(""), m, arg) {
		return m, fmt.Errorf("Several sessions begin with '%s': write more of the id", arg)
	}
	return m, err
}

// showTree prints the branches of a session, also of one that is in use.
func (p *program) showTree(m jsonl.Match) error {
	s, err := openToRead(m)
	if err != nil {
		return err
	}
	defer s.Close()
	return writeTree(p.out, s)
}

// openToRead opens a session that may be in use; there has to be one.
func openToRead(m jsonl.Match) (*session.Session, error) {
	if _, err := os.Stat(m.Path); err != nil {
		return nil, &session.Error{Kind: session.NotFound, Op: "open", Path: m.Path, Err: err}
	}
	o := jsonl.Options{}
	o.ReadOnly = true
	return jsonl.Open(m.Path, o)
}

// sharesBeginning reports whether arg, the beginning of the id of m, is that of
// the id of another of these files.
func sharesBeginning(files []string, m jsonl.Match, arg string) bool {
	if m.ID == "" || m.ID == arg {
		return false
	}
	return slices.ContainsFunc(files, func(path string) bool {
		_, id, _ := strings.Cut(filepath.Base(path), "_")
		return path != m.Path && strings.HasPrefix(id, arg)
	})
}

func (p *program) listSessions(ctx context.Context, r *jsonl.Repository, a *sessionsArgs) error {
	query, err := session.ParseQuery(strings.Join(a.words, " "))
	if err != nil {
		return err
	}
	o := jsonl.SearchOptions{Progress: p.progress("Reading sessions")}
	if !a.all {
		o.CWD = p.cwd
	}
	list, err := r.Search(ctx, query, o)
	if err != nil {
		return err
	}
	if a.limit > 0 {
		list = list[:min(a.limit, len(list))]
	}
	switch {
	case a.json:
		_, err = fmt.Fprintf(p.out, "%s\n", sessionsJSON(list))
	case len(list) == 0 && len(a.words) > 0 && !a.all:
		_, err = fmt.Fprintln(p.out, "No sessions of this folder have these words; --all looks everywhere.")
	case len(list) == 0 && len(a.words) > 0:
		_, err = fmt.Fprintln(p.out, "No sessions have these words.")
	case len(list) == 0 && !a.all:
		_, err = fmt.Fprintln(p.out, "No sessions of this folder; --all looks everywhere.")
	case len(list) == 0:
		_, err = fmt.Fprintln(p.out, "No sessions.")
	default:
		_, err = io.WriteString(p.out, sessionsTable(list, a.all, p.home))
	}
	return err
}

// maxTitle is how much of a first message a list shows, in characters.
const maxTitle = 60

// sessionsTable is the list for people.
func sessionsTable(list []session.Info, folders bool, home string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	head := "MODIFIED\tID\tMESSAGES\t"
	if folders {
		head += "FOLDER\t"
	}
	fmt.Fprintln(w, head+"NAME OR FIRST MESSAGE")
	for _, s := range list {
		title := []rune(cell(s.Name))
		if s.Name == "" {
			title = []rune(cell(s.FirstMessage))
		}
		if len(title) > maxTitle {
			title = append(title[:maxTitle-1], '…')
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t", s.Modified.Local().Format("2006-01-02 15:04"), cell(s.ID), s.MessageCount)
		if folders {
			fmt.Fprintf(w, "%s\t", stats.Folder(s.CWD, home))
		}
		fmt.Fprintln(w, string(title))
	}
	w.Flush()
	return b.String()
}

// sessionsJSON is the list for programs.
func sessionsJSON(list []session.Info) []byte {
	b := []byte{'['}
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		o := jsonwire.Begin(b)
		o.Text("id", s.ID)
		o.OptText("name", s.Name)
		o.Text("path", s.Path)
		o.Text("cwd", s.CWD)
		o.OptText("parentSession", s.ParentSession)
		if !s.Created.IsZero() {
			o.Text("created", s.Created.UTC().Format(time.RFC3339Nano))
		}
		o.Text("modified", s.Modified.UTC().Format(time.RFC3339Nano))
		o.Int("messageCount", int64(s.MessageCount))
		o.Text("firstMessage", s.FirstMessage)
		b = o.End()
	}
	return append(b, ']')
}

func (p *program) moveSession(r *jsonl.Repository, m jsonl.Match, to []string) error {
	dir := p.cwd
	if len(to) > 0 {
		dir = p.path(to[0])
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("%s is no folder", dir)
	}
	path, err := r.Move(m.Path, dir)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.out, path)
	return err
}

func (p *program) deleteSessions(ctx context.Context, r *jsonl.Repository, list []jsonl.Match, yes bool) error {
	for _, m := range list {
		if !yes && !p.confirm(ctx, "Delete "+printable(m.Path)+"? [y/N] ") {
			if ctx.Err() == nil && !(p.inTerminal && p.errTerminal) {
				return errors.New("Nobody can be asked here: say --yes to delete sessions")
			}
			return fmt.Errorf("%s was not deleted", m.Path)
		}
		if err := r.Delete(ctx, m.Path); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(p.out, "Deleted %s\n", printable(m.Path)); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) exportSession(m jsonl.Match, a *sessionsArgs) error {
	to := p.path(a.words[1])
	if filepath.Ext(to) != ".jsonl" {
		return fmt.Errorf("%s: the name of the file has to end in .jsonl; pinch --export writes a page to look at", to)
	}
	s, err := openToRead(m)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := jsonl.Export(s, to, jsonl.ExportOptions{Tree: a.tree, Replace: a.replace}); err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.out, to)
	return err
}
