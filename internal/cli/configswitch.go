package cli

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/cli/stats"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/settings"
	"github.com/pinch-agent/pinch/resource"
)

// inventory lists the resources that the settings as they are now decide about;
// without the project, as if there were none.
func (s *config) inventory(withProject bool) ([]resource.Item, []resource.Diagnostic) {
	now := s.w.store.Settings()
	lists := func(f *settings.File) map[string]resource.Entries {
		byKind := map[string]resource.Entries{}
		for _, kind := range []string{"skills", "prompts", "extensions", "themes"} {
			byKind[kind] = entries(f, kind)
		}
		return byKind
	}
	trusted := withProject && s.w.trusted
	found, problems := resource.FindPackages(resource.PackageOptions{
		Folders: s.w.folders, Trusted: trusted, User: packageEntries(now.User), Project: packageEntries(now.Project),
	})
	return resource.Inventory(resource.InventoryOptions{
		Folders: s.w.folders, Trusted: trusted, User: lists(now.User), Project: lists(now.Project), Packages: found,
	}), problems
}

// itemState is what becomes of a resource, for programs.
func itemState(kind string, on bool) string {
	switch {
	case !on:
		return "off"
	case kind == "extensions":
		return "inactive"
	}
	return "on"
}

// shownState is itemState for a person.
func shownState(kind string, on bool) string {
	switch state := itemState(kind, on); {
	case state == "inactive":
		return "inactive, needs a JavaScript host"
	case state == "on" && kind == "themes":
		return "kept for the interactive terminal"
	default:
		return state
	}
}

// itemName is a resource in a sentence: skill tidy.
func itemName(i *resource.Item) string { return strings.TrimSuffix(i.Kind, "s") + " " + i.Name() }

// origin is where resources come from, as a heading.
func (s *config) origin(i *resource.Item) string {
	of := i.Source
	owner := map[resource.Scope]string{resource.User: "Your", resource.Project: "Project"}[of.Scope]
	switch {
	case of.Origin == "package" && of.Scope == resource.Project:
		return "Package " + of.Source + " of the project"
	case of.Origin == "package":
		return "Package " + of.Source
	case of.Source == "auto":
		return owner + " folder " + stats.Folder(of.BaseDir, s.p.home)
	}
	return owner + " settings, by path"
}

// itemsTable lists resources by their origin.
func (s *config) itemsTable(items []resource.Item) string {
	var origins []string
	byOrigin := map[string][]*resource.Item{}
	for i := range items {
		o := s.origin(&items[i])
		if byOrigin[o] == nil {
			origins = append(origins, o)
		}
		byOrigin[o] = append(byOrigin[o], &items[i])
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, o := range origins {
		fmt.Fprintf(w, "\n%s\n", visible(o))
		for _, i := range byOrigin[o] {
			fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", strings.TrimSuffix(i.Kind, "s"), visible(i.Name()), shownState(i.Kind, i.On), visible(i.Short()))
		}
	}
	w.Flush()
	return b.String()
}

func appendItems(b []byte, items []resource.Item) []byte {
	b = append(b, '[')
	for n := range items {
		i := &items[n]
		if n > 0 {
			b = append(b, ',')
		}
		o := jsonwire.Begin(b)
		o.Text("kind", i.Kind)
		o.Text("name", i.Name())
		o.Text("path", i.Path)
		o.Text("state", itemState(i.Kind, i.On))
		o.Text("scope", string(i.Source.Scope))
		o.Text("origin", i.Source.Origin)
		o.Text("source", settings.WithoutPasswords(i.Source.Source))
		b = o.End()
	}
	return append(b, ']')
}

// switchTo is "pinch config enable" and "pinch config disable".
func switchTo(on bool) commandFunc {
	return func(ctx context.Context, p *program, c *command, words []string) error {
		return p.eachNamed(c, words, nil, func(s *config, item *resource.Item, scope settings.Scope) error {
			return s.switchItem(ctx, item, on, scope)
		})
	}
}

// runInherit is "pinch config inherit". There is nothing above a person's own
// settings, so that it is always the project's that change.
func runInherit(ctx context.Context, p *program, c *command, words []string) error {
	local := map[string]string{"--local": ""}
	return p.eachNamed(c, words, local, func(s *config, item *resource.Item, _ settings.Scope) error {
		return s.inherit(ctx, item)
	})
}

// eachNamed changes the resources that the words of a command name, with options
// that it has whether they are among the words or not.
func (p *program) eachNamed(c *command, words []string, options map[string]string, change func(*config, *resource.Item, settings.Scope) error) error {
	g, ok, err := c.parse(p, words)
	if !ok {
		return err
	}
	if len(g.words) == 0 {
		return p.misused("Usage: pinch %s", c.line())
	}
	maps.Copy(g.options, options)
	s, scope, err := p.openConfig(g)
	if err != nil {
		return err
	}
	items, err := s.named(g.words, scope)
	if err != nil {
		return err
	}
	for i := range items {
		if err := change(s, &items[i], scope); err != nil {
			return err
		}
	}
	if scope == settings.Project {
		return s.remarkTrust("its settings do")
	}
	return nil
}

// named lists the resources that words name. All of them have to be clear before
// anything is written.
func (s *config) named(words []string, scope settings.Scope) ([]resource.Item, error) {
	all, _ := s.inventory(scope == settings.Project)
	var items []resource.Item
	for _, word := range words {
		found := s.find(all, word)
		switch {
		case len(found) == 0 && scope == settings.User:
			if of, _ := s.inventory(true); len(s.find(of, word)) > 0 {
				return nil, fmt.Errorf("The project has the resource %s: -l switches it", word)
			}
			fallthrough
		case len(found) == 0:
			return nil, fmt.Errorf("There is no resource %s; pinch config lists them", word)
		case slices.ContainsFunc(found, func(i resource.Item) bool { return i.Path != found[0].Path }):
			var paths []string
			for _, i := range found {
				paths = append(paths, "\n  "+visible(i.Path))
			}
			return nil, s.p.misused("%q is the name of several resources; say which by its path:%s", printable(word), strings.Join(paths, ""))
		}
		items = append(items, found...)
	}
	return items, nil
}

// inherit takes away what the project's settings say about one resource.
func (s *config) inherit(ctx context.Context, item *resource.Item) error {
	all, _ := s.inventory(true)
	gone := false
	edit := func(list []jsontext.Value, folder string, override bool) resource.FilterEdit {
		e := item.Inherit(texts(list), folder, override, all)
		gone = len(e.Drop) > 0
		return e
	}
	var err error
	if item.Source.Origin == "package" {
		err = s.inheritOffer(ctx, item, edit)
	} else {
		err = s.w.store.EditList(ctx, settings.Project, item.Kind, func(list []jsontext.Value) ([]settings.Change, error) {
			return changes(item.Kind, len(list), edit(list, s.file(settings.Project).Folder(), s.isUsers(item))), nil
		})
	}
	if err != nil {
		return err
	}
	now := *item
	all, _ = s.inventory(true)
	if i := slices.IndexFunc(all, func(i resource.Item) bool { return i.Kind == item.Kind && i.Path == item.Path }); i >= 0 {
		now = all[i]
	}
	if !gone {
		return s.p.printLine("%s is %s: the project has no switch for it", itemName(item), shownState(item.Kind, now.On))
	}
	return s.p.printLine("%s is %s, without a switch of the project", itemName(item), shownState(item.Kind, now.On))
}

// inheritOffer is inherit for a resource of a package. An entry that was there for
// switches of the person's package alone goes with the last one; the project's own
// packages stay.
func (s *config) inheritOffer(ctx context.Context, item *resource.Item, edit func(list []jsontext.Value, folder string, override bool) resource.FilterEdit) error {
	place, _ := s.place(item.Source.Source, settings.Scope(item.Source.Scope))
	return s.w.store.EditPackages(ctx, settings.Project, func(list []jsontext.Value) ([]settings.Change, error) {
		i := slices.IndexFunc(list, s.is(place, settings.Project))
		if i < 0 || list[i].Kind() != '{' {
			return nil, nil
		}
		filters := elements(jsonwire.Get(list[i], item.Kind))
		e := edit(filters, place.Dir, false)
		others := slices.ContainsFunc([]string{"extensions", "skills", "prompts", "themes"}, func(kind string) bool {
			return kind != item.Kind && jsonwire.Get(list[i], kind) != nil
		})
		name := fmt.Sprintf("packages.%d", i)
		switch empty := len(e.Drop) == len(filters) && len(e.Add) == 0; {
		case len(e.Drop) == 0:
			return nil, nil
		case empty && !others && item.Source.Scope == resource.User && string(jsonwire.Get(list[i], "autoload")) == "false":
			return []settings.Change{settings.Unset(name)}, nil
		case empty:
			return []settings.Change{settings.Unset(name + "." + item.Kind)}, nil
		}
		return changes(name+"."+item.Kind, len(filters), e), nil
	})
}

// isUsers reports whether a resource that no package has is the person's own.
func (s *config) isUsers(item *resource.Item) bool {
	users, _ := s.inventory(false)
	return slices.ContainsFunc(users, func(i resource.Item) bool {
		return i.Kind == item.Kind && i.Path == item.Path && i.Source.Origin != "package"
	})
}

// elements are those of a list, nil for anything else.
func elements(list jsontext.Value) (all []jsontext.Value) {
	if list.Kind() != '[' {
		return nil
	}
	var r jsonwire.Reader
	r.Reset(list)
	for r.Array(); r.More(); {
		all = append(all, slices.Clone(r.Raw()))
	}
	return all
}

// find lists what a word means: the resource of a path, else those that the list
// shows with this path, or that have this name.
func (s *config) find(all []resource.Item, word string) []resource.Item {
	// A path may mean the folder of a SKILL.md.
	means := func(path, file string) bool {
		return path == file || filepath.Base(file) == "SKILL.md" && path == filepath.Dir(file)
	}
	path := s.p.path(word)
	var here, named []resource.Item
	for _, i := range all {
		if strings.ContainsAny(word, `/\`) && means(path, i.Path) {
			here = append(here, i)
		}
		if word == i.Name() || word == filepath.Base(i.Path) || means(filepath.FromSlash(word), filepath.FromSlash(i.Short())) {
			named = append(named, i)
		}
	}
	if here != nil {
		return here
	}
	return named
}

// switchItem switches one resource in the settings of a scope, and says so.
func (s *config) switchItem(ctx context.Context, item *resource.Item, on bool, scope settings.Scope) error {
	state := func(withProject bool) (now resource.Item, all []resource.Item) {
		all, _ = s.inventory(withProject)
		i := slices.IndexFunc(all, func(i resource.Item) bool { return i.Kind == item.Kind && i.Path == item.Path })
		if i < 0 {
			return *item, all
		}
		return all[i], all
	}
	ofProject := scope == settings.Project
	now, all := state(ofProject)
	already := " already"
	if now.On != on {
		already = ""
		var err error
		if now.Source.Origin == "package" {
			err = s.switchOffer(ctx, &now, on, scope, all)
		} else {
			err = s.switchFile(ctx, &now, on, scope, all)
		}
		if err != nil {
			return err
		}
		if now, _ = state(ofProject); now.On != on {
			return fmt.Errorf("%s is still %s: another entry for it in %s decides; take that away", itemName(item), shownState(item.Kind, now.On), s.file(scope).Path)
		}
	}
	if err := s.p.printLine("%s is %s%s", itemName(item), shownState(item.Kind, on), already); err != nil {
		return err
	}
	if here, _ := state(true); here.On != on {
		s.p.warn("In this project %s is %s: its own settings say so, and -l changes them", itemName(item), shownState(item.Kind, here.On))
	}
	return nil
}

// switchFile switches a resource of a folder, or one that a list names.
func (s *config) switchFile(ctx context.Context, item *resource.Item, on bool, scope settings.Scope, all []resource.Item) error {
	override := scope == settings.Project && s.isUsers(item)
	return s.w.store.EditList(ctx, scope, item.Kind, func(list []jsontext.Value) ([]settings.Change, error) {
		return changes(item.Kind, len(list), item.Switch(on, texts(list), s.file(scope).Folder(), override, all)), nil
	})
}

// changes are those of the list that a name stands for, which has so many entries.
func changes(name string, entries int, e resource.FilterEdit) []settings.Change {
	var list []settings.Change
	for _, n := range slices.Backward(e.Drop) { // so that those before keep their numbers
		list = append(list, settings.Unset(fmt.Sprintf("%s.%d", name, n)))
	}
	for n, entry := range e.Add {
		list = append(list, settings.Set(fmt.Sprintf("%s.%d", name, entries-len(e.Drop)+n), entry))
	}
	return list
}

// texts are the entries of a list that are texts; others are "".
func texts(list []jsontext.Value) []string {
	var out []string
	for _, entry := range list {
		text, _ := jsonwire.StringValue(entry)
		out = append(out, text)
	}
	return out
}

// switchOffer switches a resource of a package, in the entry of the package. In
// the project's settings one comes to be that changes the user's.
func (s *config) switchOffer(ctx context.Context, item *resource.Item, on bool, scope settings.Scope, all []resource.Item) error {
	of := settings.Scope(item.Source.Scope)
	place, _ := s.place(item.Source.Source, of)
	return s.w.store.EditPackages(ctx, scope, func(list []jsontext.Value) ([]settings.Change, error) {
		i := slices.IndexFunc(list, s.is(place, scope))
		var entry jsontext.Value
		switch {
		case i < 0 && scope == of:
			return nil, fmt.Errorf("%s has no entry for the package %s any more", s.file(scope).Path, item.Source.Source)
		case i < 0:
			i = len(list)
			o := jsonwire.Begin(nil)
			o.Text("source", s.sourceFor(item.Source.Source, place, scope))
			o.Bool("autoload", false)
			entry = o.End()
		case list[i].Kind() == '"':
			o := jsonwire.Begin(nil)
			o.Raw("source", list[i])
			entry = o.End()
		default:
			entry = list[i]
		}
		var edits []settings.Change
		if i == len(list) || list[i].Kind() == '"' {
			edits = append(edits, settings.Set(fmt.Sprintf("packages.%d", i), entry))
		}
		name := fmt.Sprintf("packages.%d.%s", i, item.Kind)
		var filters []jsontext.Value
		switch v := jsontext.Value(jsonwire.Get(entry, item.Kind)); {
		case v == nil || v.Kind() == 'n':
			edits = append(edits, settings.Set(name, []string{}))
		case v.Kind() != '[':
			return nil, fmt.Errorf("%s of the package %s is no list: correct or remove it", item.Kind, item.Source.Source)
		default:
			filters = elements(v)
			if len(filters) == 0 && on && string(jsonwire.Get(entry, "autoload")) != "false" {
				// An empty list means nothing; one of inclusions alone would mean all.
				edits = append(edits, settings.Set(name+".0", "!**"))
				filters = append(filters, jsontext.Value(`"!**"`))
			}
		}
		return append(edits, changes(name, len(filters), item.Switch(on, texts(filters), place.Dir, false, all))...), nil
	})
}

// sourceFor is the source of a package as settings of another scope name it.
func (s *config) sourceFor(source string, place resource.PackagePlace, scope settings.Scope) string {
	if place.Kind != resource.LocalPackage {
		return source
	}
	if rel, err := filepath.Rel(s.file(scope).Folder(), place.Dir); err == nil {
		return filepath.ToSlash(rel)
	}
	return place.Dir
}
