package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/cli/stats"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/settings"
	"github.com/pinch-agent/pinch/resource"
)

const configText = `  pinch config get NAME [--json]             the value in force
  pinch config set NAME VALUE [-l]           JSON where the setting is no text
  pinch config unset NAME [-l]
  pinch config enable|disable RESOURCE... [-l]
  pinch config inherit RESOURCE...           what this project's switch did is undone

A RESOURCE is a name or a path as the list shows it. A text that begins with a dash
goes behind --. Passwords in addresses are never shown.
`

// config is the settings of a working folder as commands show and change them:
// single ones, the packages in them, and which resources are on.
type config struct {
	p *program
	w *workspace
}

// openConfig reads the settings, and says which of them a command changes. With
// --local the project's have to count.
func (p *program) openConfig(g *given) (*config, settings.Scope, error) {
	a := &Args{}
	if g.has("--approve") || g.has("--no-approve") {
		a.Approve = new(!g.has("--no-approve"))
	}
	w, err := p.openWorkspace(a, p.cwd)
	if err != nil {
		return nil, "", err
	}
	if !g.has("--local") {
		return &config{p, w}, settings.User, w.settings.User.Err
	}
	if !w.trusted {
		return nil, "", errNotTrusted
	}
	return &config{p, w}, settings.Project, w.settings.Project.Err
}

// file is the settings file of a scope, nil for that of a project that does not
// count.
func (s *config) file(scope settings.Scope) *settings.File {
	if scope == settings.Project {
		return s.w.settings.Project
	}
	return s.w.settings.User
}

// openWholeConfig is openConfig for commands that show what is in force: a file of
// the project that cannot be used is an error too, as what it says is not known.
func (p *program) openWholeConfig(g *given) (*config, settings.Scope, error) {
	s, scope, err := p.openConfig(g)
	if err == nil && s.w.settings.Project != nil {
		err = s.w.settings.Project.Err
	}
	return s, scope, err
}

// configCommands are the words behind "pinch config".
func configCommands(approve, local []commandOption) []command {
	asJSON := commandOption{long: "--json", about: "for programs"}
	names := settings.Names()
	return []command{
		{name: "get", usage: "NAME [--json] [--approve|--no-approve]", about: "the value in force: texts as they are, everything else as JSON",
			words: names, options: append([]commandOption{asJSON}, approve...), run: runConfigGet},
		{name: "set", usage: "NAME VALUE [-l] [--approve|--no-approve]", about: "give a setting a value, as JSON where it is no text",
			words: names, options: local, text: "A text that begins with a dash goes behind --.\n", run: runConfigSet},
		{name: "unset", usage: "NAME [-l] [--approve|--no-approve]", about: "take a setting away", words: names, options: local, run: runConfigUnset},
		{name: "enable", usage: "RESOURCE... [-l] [--approve|--no-approve]", about: "switch skills, templates, themes and extensions on",
			files: true, options: local, run: switchTo(true)},
		{name: "disable", usage: "RESOURCE... [-l] [--approve|--no-approve]", about: "switch them off; they stay where they are",
			files: true, options: local, run: switchTo(false)},
		{name: "inherit", usage: "RESOURCE... [--approve|--no-approve]", about: "take the project's own switch away, so that what holds elsewhere holds here",
			files: true, options: local, run: runInherit},
	}
}

// runConfig is "pinch config".
func runConfig(ctx context.Context, p *program, c *command, words []string) error {
	if sub := c.sub(words); sub != nil {
		return sub.run(ctx, p, sub, words[1:])
	}
	g, ok, err := c.parseOptions(p, words)
	if !ok {
		return err
	}
	s, _, err := p.openWholeConfig(g)
	if err != nil {
		return err
	}
	list := slices.DeleteFunc(s.w.settings.All(), func(one settings.Setting) bool {
		return !g.has("--all") && one.Origin == settings.Default || g.has("--local") && one.Origin == settings.User
	})
	items, problems := s.inventory(true)
	if g.has("--local") {
		items = slices.DeleteFunc(items, func(i resource.Item) bool { return i.Source.Scope != resource.Project })
	}
	for _, d := range problems {
		p.warn("%s: %s", d.Path, d.Message)
	}
	if g.has("--json") {
		o := jsonwire.Begin(nil)
		o.Key("settings")
		o.B = appendSettings(o.B, list)
		o.Key("resources")
		o.B = appendItems(o.B, items)
		_, err = fmt.Fprintf(p.out, "%s\n", o.End())
		return err
	}
	_, err = io.WriteString(p.out, s.files()+settingsTable(list)+s.itemsTable(items))
	return err
}

// files says where settings come from.
func (s *config) files() string {
	where := func(f *settings.File) string {
		if f == nil {
			return "not trusted, so nothing of it counts: pinch trust yes"
		}
		path := stats.Folder(f.Path, s.p.home)
		if _, err := os.Stat(f.Path); err != nil {
			path += " (not there)"
		}
		return path
	}
	return fmt.Sprintf("User settings:     %s\nProject settings:  %s\n\n", where(s.w.settings.User), where(s.w.settings.Project))
}

func settingsTable(list []settings.Setting) string {
	if len(list) == 0 {
		return "No settings are set; --all lists them with their defaults\n"
	}
	var b strings.Builder
	b.WriteString("Settings\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, s := range list {
		value := "(" + cmp.Or(s.Note, "not set") + ")"
		if s.Value != nil {
			value = inLine(s.Value)
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", visible(s.Name), value, s.Origin)
	}
	w.Flush()
	return b.String()
}

// asText is a text as it is, and everything else as JSON.
func asText(v jsontext.Value) string {
	if text, ok := jsonwire.StringValue(v); ok {
		return text
	}
	return string(v)
}

// inLine is a value within a line: a text as it is where its ends and lines can be
// seen.
func inLine(v jsontext.Value) string {
	text := asText(v)
	if text == "" || strings.TrimSpace(text) != text || visible(text) != text {
		text = string(v)
	}
	return visible(text)
}

func appendSettings(b []byte, list []settings.Setting) []byte {
	return jsonwire.AppendArray(b, list, func(s settings.Setting, b []byte) []byte {
		o := jsonwire.Begin(b)
		o.Text("name", s.Name)
		o.Raw("value", orNull(s.Value))
		o.Text("origin", string(s.Origin))
		return o.End()
	})
}

func orNull(v jsontext.Value) jsontext.Value {
	if v == nil {
		return jsontext.Value("null")
	}
	return v
}

func runConfigGet(_ context.Context, p *program, c *command, words []string) error {
	g, ok, err := c.parse(p, words)
	if !ok {
		return err
	}
	if len(g.words) != 1 {
		return p.misused("Usage: pinch %s", c.line())
	}
	s, _, err := p.openWholeConfig(g)
	if err != nil {
		return err
	}
	value, err := s.w.settings.Get(g.words[0])
	switch {
	case err != nil:
		return withList(err)
	case g.has("--json"):
		_, err = fmt.Fprintf(p.out, "%s\n", orNull(value))
	case value == nil:
	case p.outTerminal:
		err = p.printLine("%s", asText(value))
	default:
		_, err = fmt.Fprintln(p.out, asText(value))
	}
	return err
}

// withList says where the names of settings are, when nothing else helps.
func withList(err error) error {
	if problem, ok := errors.AsType[*settings.Problem](err); ok && problem.Kind == settings.Unknown && problem.Suggestion == "" {
		return fmt.Errorf("%w; pinch config --all lists them", err)
	}
	return err
}

func runConfigSet(ctx context.Context, p *program, c *command, words []string) error {
	s, scope, g, err := p.openToWrite(c, words, 2)
	if s == nil {
		return err
	}
	name := g.words[0]
	value, err := settings.ParseValue(name, g.words[1])
	if err != nil {
		return withList(err)
	}
	if proxy, _ := jsonwire.StringValue(value); name == "httpProxy" && proxy != "" {
		if _, err := proxyAddress(proxy); err != nil {
			return err
		}
	}
	if err := s.w.store.Write(ctx, scope, settings.Set(name, value)); err != nil {
		return err
	}
	s.w.settings = s.w.store.Settings()
	file := s.file(scope)
	if err := p.printLine("%s is %s in %s", name, inLine(file.Shown(name)), file.Path); err != nil {
		return err
	}
	return s.remarkWritten(name, scope)
}

func runConfigUnset(ctx context.Context, p *program, c *command, words []string) error {
	s, scope, g, err := p.openToWrite(c, words, 1)
	if s == nil {
		return err
	}
	name, file := g.words[0], s.file(scope)
	if !file.Has(name) {
		if err := settings.Known(name); err != nil {
			return withList(err)
		}
		return p.printLine("%s is not set in %s", name, file.Path)
	}
	if err := s.w.store.Write(ctx, scope, settings.Unset(name)); err != nil {
		return err
	}
	if err := p.printLine("%s is not set any more in %s", name, file.Path); err != nil {
		return err
	}
	return s.remarkWritten(name, scope)
}

// openToWrite reads the words behind a command that changes one setting, whose
// name is the first of so many. Without a config everything has been said, or err
// is set.
func (p *program) openToWrite(c *command, words []string, want int) (*config, settings.Scope, *given, error) {
	g, ok, err := c.parse(p, words)
	if !ok {
		return nil, "", nil, err
	}
	if len(g.words) != want {
		return nil, "", nil, p.misused("Usage: pinch %s", c.line())
	}
	if group := settings.Group(g.words[0]); len(group) > 0 {
		return nil, "", nil, fmt.Errorf("%s is no single setting: %s", g.words[0], strings.Join(group, ", "))
	}
	s, scope, err := p.openConfig(g)
	if err != nil {
		return nil, "", nil, err
	}
	return s, scope, g, nil
}

// remarkWritten tells a person when what was written does not count here.
func (s *config) remarkWritten(name string, scope settings.Scope) error {
	if project := s.w.settings.Project; scope == settings.User && project != nil && project.Has(name) {
		s.p.warn("This project's settings have %s too, and theirs count here; -l changes them", name)
	}
	if scope == settings.Project {
		return s.remarkTrust("its settings do")
	}
	return nil
}
