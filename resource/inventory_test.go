package resource

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func inventoryTree(t *testing.T) (root string, f Folders) {
	skill := "---\ndescription: d\n---\n"
	root = tree(t, map[string]string{
		"h/.pi/agent/skills/a/SKILL.md": skill, "h/.pi/agent/skills/flat.md": skill, "h/.agents/skills/a/SKILL.md": skill,
		"h/.pi/agent/prompts/x.md": "x", "h/.pi/agent/extensions/two/index.ts": "", "h/.pi/agent/extensions/.hidden.ts": "", "h/.pi/agent/themes/t.json": "{}",
		"w/.git/HEAD": "", "w/.pi/skills/p/SKILL.md": skill, "w/.pi/extensions/index.ts": "", "w/.pi/extensions/part.ts": "",
		"extra/e/SKILL.md": skill, "pack/skills/m/SKILL.md": skill, "pack/prompts/x.md": "x",
	})
	home := filepath.Join(root, "h")
	return root, Folders{Agent: filepath.Join(home, ".pi", "agent"), Home: home, Cwd: filepath.Join(root, "w")}
}

func inventory(root string, f Folders, trusted bool, user, project string, entry PackageEntry) []Item {
	list := func(folder, list string) map[string]Entries {
		e := Entries{Folder: folder}
		if list != "" {
			e.List = strings.Split(strings.ReplaceAll(list, "ROOT", slash(root)), ",")
		}
		return map[string]Entries{"skills": e}
	}
	entry.Source = filepath.Join(root, "pack")
	found, _ := FindPackages(PackageOptions{Folders: f, Trusted: trusted, User: PackageEntries{Folder: f.Agent, List: []PackageEntry{entry}}})
	return Inventory(InventoryOptions{
		Folders: f, Trusted: trusted, Packages: found, User: list(f.Agent, user), Project: list(filepath.Join(f.Cwd, ".pi"), project),
	})
}

// What is off in the package that counts first is off, though another one offers
// the same file.
func TestFirstPackageDecides(t *testing.T) {
	root := tree(t, map[string]string{
		"p/package.json":               `{"pi": {"skills": ["inner/skills"]}}`,
		"p/inner/skills/a/SKILL.md":    "---\ndescription: d\n---\n",
		"p/inner/skills/both/SKILL.md": "---\ndescription: d\n---\n",
	})
	f := Folders{Agent: root, Cwd: root}
	found, _ := FindPackages(PackageOptions{Folders: f, User: PackageEntries{Folder: root, List: []PackageEntry{
		{Source: "p", Skills: []string{"-inner/skills/a"}}, {Source: "p/inner"},
	}}})
	on := map[string]bool{}
	for _, i := range Inventory(InventoryOptions{Folders: f, Packages: found}) {
		on[i.Name()] = i.On
	}
	loaded := map[string]bool{"a": false, "both": false}
	skills, _ := LoadSkills(Places{Folders: f, Packages: found})
	for _, s := range skills {
		loaded[s.Name] = true
	}
	if want := map[string]bool{"a": false, "both": true}; !maps.Equal(on, want) || !maps.Equal(loaded, want) {
		t.Errorf("the inventory has %v, and loaded is %v", on, loaded)
	}
}

func TestInventory(t *testing.T) {
	root, f := inventoryTree(t)
	items := inventory(root, f, true, "../../../extra,-skills/a", "ROOT/h/.pi/agent/skills/flat.md,-ROOT/h/.pi/agent/skills/flat.md",
		PackageEntry{Prompts: []string{}})
	var got []string
	for _, i := range items {
		got = append(got, fmt.Sprintf("%s %s %v %s %s %s", i.Kind, i.Name(), i.On, i.Source.Scope, i.Source.Origin, i.Short()))
	}
	want := `skills flat false project top-level ../../h/.pi/agent/skills/flat.md
skills p true project top-level skills/p/SKILL.md
skills e true user top-level ../../../extra/e/SKILL.md
skills a false user top-level skills/a/SKILL.md
skills a false user top-level skills/a/SKILL.md
skills m true user package skills/m/SKILL.md
prompts x true user top-level prompts/x.md
prompts x false user package prompts/x.md
extensions index.ts true project top-level extensions/index.ts
extensions two/index.ts true user top-level extensions/two/index.ts
themes t true user top-level themes/t.json`
	if s := strings.Join(got, "\n"); s != want {
		t.Errorf("got\n%s", s)
	}
	for _, i := range inventory(root, f, false, "", "", PackageEntry{}) {
		if i.Source.Scope == Project || !i.On {
			t.Errorf("without trust: %+v", i)
		}
	}
}

// What the project switches off is off, but for a person who names it.
func TestProjectSwitchesOff(t *testing.T) {
	root, f := inventoryTree(t)
	off := func(path string) Entries {
		path = filepath.Join(root, filepath.FromSlash(path))
		return Entries{Folder: filepath.Join(f.Cwd, ".pi"), List: []string{path, "-" + path}}
	}
	flat := filepath.Join(f.Agent, "skills", "flat.md")
	o := Places{Folders: f, Trusted: true, Project: off("h/.pi/agent/skills/flat.md"), User: Entries{Folder: f.Agent}}
	has := func() bool {
		skills, _ := LoadSkills(o)
		return slices.ContainsFunc(skills, func(s Skill) bool { return s.FilePath == flat })
	}
	if has() {
		t.Error("the skill is on")
	}
	if o.Paths = []string{flat}; !has() {
		t.Error("the skill that was named is off")
	}
	if o.Paths, o.Trusted = nil, false; !has() {
		t.Error("a project that is not trusted switched a skill off")
	}
	templates, _ := LoadTemplates(Places{Folders: f, Trusted: true, Project: off("h/.pi/agent/prompts/x.md"), User: Entries{Folder: f.Agent}})
	if len(templates) != 0 {
		t.Errorf("%+v", templates)
	}
}

func TestSwitch(t *testing.T) {
	root, f := inventoryTree(t)
	agentA, homeA := slash(f.Agent)+"/skills/a/SKILL.md", slash(f.Home)+"/.agents/skills/a/SKILL.md"
	for _, c := range []struct {
		path     string // below the root
		on       bool
		override bool
		list     string
		want     string
	}{
		{path: "h/.pi/agent/skills/flat.md", want: "-skills/flat.md"},
		{path: "h/.pi/agent/skills/flat.md", on: true, list: "!*", want: "!*,+skills/flat.md"},
		{path: "h/.pi/agent/skills/flat.md", on: true, list: "x,-./skills/flat.md,!skills/flat.md,-ROOT/h/.pi/agent/skills/flat.md,-flat.md", want: "x,-flat.md,+skills/flat.md"},
		{path: "h/.pi/agent/skills/flat.md", list: "skills/flat.md,+skills/flat.md", want: "skills/flat.md,-skills/flat.md"},
		// Two have one path: the whole one tells them apart, and the other stays as it is.
		{path: "h/.pi/agent/skills/a/SKILL.md", want: "-" + agentA},
		{path: "h/.pi/agent/skills/a/SKILL.md", on: true, list: "-skills/a/", want: "-" + homeA + ",+" + agentA},
		{path: "h/.agents/skills/a/SKILL.md", list: "+skills/a,!**", want: "+skills/a,!**,-" + homeA},
		{path: "extra/e/SKILL.md", list: "../../../extra", want: "../../../extra,-../../../extra/e/SKILL.md"},
		{path: "w/.pi/skills/p/SKILL.md", want: "-skills/p/SKILL.md"},
		{path: "h/.pi/agent/skills/flat.md", override: true, list: "-skills/flat.md", want: "-skills/flat.md,ROOT/h/.pi/agent/skills/flat.md,-ROOT/h/.pi/agent/skills/flat.md"},
		{path: "h/.pi/agent/skills/flat.md", override: true, on: true, list: "ROOT/h/.pi/agent/skills/flat.md,-ROOT/h/.pi/agent/skills/flat.md",
			want: "ROOT/h/.pi/agent/skills/flat.md,+ROOT/h/.pi/agent/skills/flat.md"},
	} {
		whole := func(s string) string { return strings.ReplaceAll(s, "ROOT", slash(root)) }
		items := inventory(root, f, true, "../../../extra", "", PackageEntry{})
		n := slices.IndexFunc(items, func(i Item) bool { return slash(i.Path) == slash(root)+"/"+c.path })
		folder := f.Agent
		if c.override || items[n].Source.Scope == Project {
			folder = filepath.Join(f.Cwd, ".pi")
		}
		var list []string
		if c.list != "" {
			list = strings.Split(whole(c.list), ",")
		}
		e := items[n].Switch(c.on, list, folder, c.override, items)
		for _, i := range slices.Backward(e.Drop) {
			list = slices.Delete(list, i, i+1)
		}
		if got := strings.Join(append(list, e.Add...), ","); got != whole(c.want) {
			t.Errorf("%s %v of %q: %s, want %s", c.path, c.on, c.list, got, whole(c.want))
		}
	}
}
