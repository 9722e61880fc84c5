package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
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

const sessionsText = `  pinch sessions [list] [WORD...] [--all] [--limit N] [--json]
  pinch sessions tree SESSION
  pinch sessions rename SESSION NAME
  pinch sessions move SESSION [DIR]
  pinch sessions delete SESSION... [--yes]
  pinch sessions export SESSION FILE.jsonl [--tree] [--replace]

Lists the sessions of this folder, or of --all folders, newest first. Words are
looked for in names, ids, texts and folders, what matches best first: "a phrase"
stays together, re:EXPRESSION is a regular expression. SESSION is an id, the
beginning of one, or a file. tree shows all branches of one, with the ids that
pinch --session SESSION --branch ENTRY goes back to. rename with an empty NAME
takes the name away; move makes a session one of DIR, this folder by default, when
its own was moved. export writes the branch that goes on, or the whole --tree. Each
takes --session-dir DIR.
`

// sessionsCommands are the commands behind "pinch sessions".
func sessionsCommands(listed []commandOption, kept commandOption) []command {
	return []command{
		{name: "list", usage: "[WORD...] [--all] [--limit N] [--json]", about: "list and search sessions", options: listed},
		{name: "tree", usage: "SESSION", about: "show all branches of a session", lists: listedSessions, options: []commandOption{kept}},
		{name: "rename", usage: "SESSION NAME", about: "name a session", lists: listedSessions, options: []commandOption{kept}},
		{name: "move", usage: "SESSION [DIR]", about: "make a session one of another folder", lists: listedSessions, options: []commandOption{kept}, files: true},
		{name: "delete", usage: "SESSION... [--yes]", about: "delete sessions", lists: listedSessions,
			options: []commandOption{{long: "--yes", about: "without asking"}, kept}},
		{name: "export", usage: "SESSION FILE.jsonl [--tree] [--replace]", about: "write a session to a file", lists: listedSessions, files: true,
			options: []commandOption{{long: "--tree", about: "all branches"}, {long: "--replace", about: "over a file that is there"}, kept}},
	}
}

// runSessions is "pinch sessions".
func runSessions(ctx context.Context, p *program, c *command, words []string) error {
	name := "list"
	if sub := c.sub(words); sub != nil {
		name, c, words = words[0], sub, words[1:]
	}
	g, ok, err := c.parse(p, words)
	if !ok {
		return err
	}
	if err := checkSessionWords(name, len(g.words)); err != nil {
		return fmt.Errorf("%w (pinch sessions --help says how it is used)", err)
	}
	r := p.sessionsOf(g.options["--session-dir"])
	r.Trash = jsonl.Trash
	if name == "list" {
		return p.listSessions(ctx, r, g)
	}
	var found []jsonl.Match
	for i, arg := range g.words {
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
		err = r.SetName(found[0].Path, g.words[1])
	case "move":
		err = p.moveSession(r, found[0], g.words[1:])
	case "delete":
		err = p.deleteSessions(ctx, r, found, g.has("--yes"))
	case "export":
		err = p.exportSession(found[0], g)
	}
	return sessionError(err)
}

func checkSessionWords(name string, n int) error {
	switch {
	case name == "tree" && n != 1:
		return errors.New("tree takes a session")
	case name == "rename" && n != 2:
		return errors.New("rename takes a session and a name")
	case name == "move" && n != 1 && n != 2:
		return errors.New("move takes a session and a folder")
	case name == "delete" && n == 0:
		return errors.New("delete takes sessions")
	case name == "export" && n != 2:
		return errors.New("export takes a session and the name of a file")
	}
	return nil
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

// openToRead opens a session that may be in use.
func openToRead(m jsonl.Match) (*session.Session, error) {
	return jsonl.Open(m.Path, jsonl.Options{Options: session.Options{ReadOnly: true}})
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

func (p *program) listSessions(ctx context.Context, r *jsonl.Repository, g *given) error {
	query, err := session.ParseQuery(strings.Join(g.words, " "))
	if err != nil {
		return err
	}
	all, limit := g.has("--all"), math.MaxInt
	if g.has("--limit") {
		if limit, err = strconv.Atoi(g.options["--limit"]); err != nil || limit < 1 {
			return errors.New("--limit is a number of sessions")
		}
	}
	o := jsonl.SearchOptions{Progress: p.progress("Reading sessions")}
	if !all {
		o.CWD = p.cwd
	}
	list, err := r.Search(ctx, query, o)
	if err != nil {
		return err
	}
	list = list[:min(limit, len(list))]
	switch {
	case g.has("--json"):
		_, err = fmt.Fprintf(p.out, "%s\n", sessionsJSON(list))
	case len(list) == 0 && len(g.words) > 0 && !all:
		_, err = fmt.Fprintln(p.out, "No sessions of this folder have these words; --all looks everywhere.")
	case len(list) == 0 && len(g.words) > 0:
		_, err = fmt.Fprintln(p.out, "No sessions have these words.")
	case len(list) == 0 && !all:
		_, err = fmt.Fprintln(p.out, "No sessions of this folder; --all looks everywhere.")
	case len(list) == 0:
		_, err = fmt.Fprintln(p.out, "No sessions.")
	default:
		_, err = io.WriteString(p.out, sessionsTable(list, all, p.home))
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
	return jsonwire.AppendArray(nil, list, func(s session.Info, b []byte) []byte {
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
		return o.End()
	})
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

func (p *program) exportSession(m jsonl.Match, g *given) error {
	to := p.path(g.words[1])
	if filepath.Ext(to) != ".jsonl" {
		return fmt.Errorf("%s: the name of the file has to end in .jsonl; pinch --export writes a page to look at", to)
	}
	s, err := openToRead(m)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := jsonl.Export(s, to, jsonl.ExportOptions{Tree: g.has("--tree"), Replace: g.has("--replace")}); err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.out, to)
	return err
}
