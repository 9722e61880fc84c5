package resource

import (
	"path/filepath"
	"slices"
	"strings"
)

// Item is a resource that is there, whether it is on or off.
type Item struct {
	Kind   string // skills, prompts, extensions or themes
	Path   string // absolute
	On     bool   // by the settings; whether this program has a use for it is another question
	Source Source
}

// InventoryOptions say where resources are looked for.
type InventoryOptions struct {
	Folders Folders
	Trusted bool               // the project's trust
	User    map[string]Entries // the lists of the user's settings, by kind
	Project map[string]Entries // those of the project's settings
	// Packages are those of FindPackages.
	Packages []Package
}

func kinds() []kind { return []kind{skillKind, promptKind, extensionKind, themeKind} }

// Inventory lists the resources of all locations by kind, in the order in which
// they count: the project's, the user's, those of packages. The first place that
// a file is found in decides about it.
func Inventory(o InventoryOptions) []Item {
	var list []Item
	for _, k := range kinds() {
		var seen decided
		in := Places{Folders: o.Folders, Trusted: o.Trusted, User: o.User[string(k)], Project: o.Project[string(k)], Packages: o.Packages}
		k.everywhere(in, func(files []located, _ []Diagnostic) {
			for _, f := range files {
				if seen.first(f.path, f.on) {
					list = append(list, f.item(k))
				}
			}
		})
	}
	return list
}

// Offers lists what a package offers, whether or not this program has a use for
// it.
func (p *Package) Offers() []Item {
	var list []Item
	for _, k := range kinds() {
		files, _ := p.files(k)
		for _, f := range files {
			list = append(list, f.item(k))
		}
	}
	return list
}

// Name is what a person calls the resource: the folder of a SKILL.md, the name of
// a template without .md; of an extension in a folder, both.
func (i *Item) Name() string {
	base, folder := filepath.Base(i.Path), filepath.Base(filepath.Dir(i.Path))
	switch kind(i.Kind) {
	case skillKind:
		if base == skillFile {
			return folder
		}
		return strings.TrimSuffix(base, ".md")
	case promptKind:
		return strings.TrimSuffix(base, ".md")
	case themeKind:
		return strings.TrimSuffix(base, ".json")
	}
	if folder != string(extensionKind) {
		return folder + "/" + base
	}
	return base
}

// Short is the path from the folder that settings patterns are relative to.
func (i *Item) Short() string { return slash(relative(i.Source.BaseDir, i.Path)) }

// FilterEdit is a change of a list of filters.
type FilterEdit struct {
	Drop []int    // numbers of entries that go, upwards
	Add  []string // entries that come at the end
}

// Switch says how a list of filters changes when a resource that it decides about
// is switched on or off, and all others of the inventory stay as they are. folder
// is that of the settings file, or of the package for a list in its entry.
//
// With override the list is the project's and the resource the user's, which the
// list names by its whole path.
func (i *Item) Switch(on bool, list []string, folder string, override bool, all []Item) FilterEdit {
	e, name := i.unswitch(list, folder, override, all, func(entry string, also bool) bool { return also && (!on || entry[0] != '-') })
	if whole := slash(i.Path); override && !slices.Contains(list, whole) {
		e.Add = append(e.Add, whole)
	}
	sign := "-"
	if on {
		sign = "+"
	}
	e.Add = append(e.Add, sign+name)
	return e
}

// Inherit says how a list of filters changes when what Switch did to it for a
// resource is undone, and all others of the inventory stay as they are. Nothing is
// dropped where there is no switch.
func (i *Item) Inherit(list []string, folder string, override bool, all []Item) FilterEdit {
	e, _ := i.unswitch(list, folder, override, all, func(string, bool) bool { return false })
	if override {
		for n, entry := range list {
			if slash(entry) == slash(i.Path) {
				e.Drop = append(e.Drop, n)
			}
		}
		slices.Sort(e.Drop)
	}
	return e
}

// unswitch drops the entries that switch a resource, except those to keep; also
// tells of an entry that it means others too, which get one of their own. name is
// what an entry for the resource alone calls it.
func (i *Item) unswitch(list []string, folder string, override bool, all []Item, keep func(entry string, also bool) bool) (e FilterEdit, name string) {
	patterns := func(of *Item) []string {
		folders := []string{folder}
		if !override {
			folders = append(folders, of.Source.BaseDir)
		}
		return locationPatterns{folders: folders}.paths(of.Path)
	}
	own, name := patterns(i), i.Short()
	others := map[string][]string{} // whole paths, by a pattern that means them too
	for _, o := range all {
		if o.Kind == i.Kind && o.Path != i.Path && o.Source.Scope == i.Source.Scope && o.Source.Origin == i.Source.Origin &&
			(o.Source.Origin != "package" || o.Source.BaseDir == i.Source.BaseDir) {
			for _, p := range patterns(&o) {
				others[p] = append(others[p], slash(o.Path))
			}
		}
	}
	if override || others[name] != nil {
		name = slash(i.Path)
	}
	for n, entry := range list {
		if !isLocationPattern(entry) {
			continue
		}
		target := strings.TrimSuffix(strings.TrimPrefix(slash(entry[1:]), "./"), "/")
		also := others[target]
		if !slices.Contains(own, target) || keep(entry, also != nil) {
			continue
		}
		e.Drop = append(e.Drop, n)
		for _, o := range slices.Compact(also) {
			e.Add = append(e.Add, entry[:1]+o)
		}
	}
	return e, name
}
