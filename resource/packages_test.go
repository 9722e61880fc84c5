package resource

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

func TestLocatePackage(t *testing.T) {
	f := Folders{Agent: "/a", Home: "/h", Cwd: "/w"}
	for _, c := range []struct {
		source string
		scope  Scope
		want   string // dir identity
	}{
		{"npm:tools", User, "/a/npm/node_modules/tools npm:tools"},
		{"npm:@me/tools@1.2.3", User, "/a/npm/node_modules/@me/tools npm:@me/tools"},
		{"npm:@me/tools", Project, "/w/.pinch/npm/node_modules/@me/tools npm:@me/tools"},
		{"git:github.com/me/tools@v1", User, "/a/git/github.com/me/tools git:github.com/me/tools"},
		{"git:git@GitHub.com:me/tools.git", User, "/a/git/github.com/me/tools git:github.com/me/tools"},
		{"https://github.com/me/tools.git", User, "/a/git/github.com/me/tools git:github.com/me/tools"},
		{"ssh://git@example.com:2222/me/deep/tools@main", User, "/a/git/example.com/me/deep/tools git:example.com/me/deep/tools"},
		{"git://example.com/me/tools#main", User, "/a/git/example.com/me/tools git:example.com/me/tools"},
		{"~/tools", User, "/h/tools /h/tools"},
		{"../tools", User, "/tools /tools"},
		{" /opt/tools/ ", User, "/opt/tools /opt/tools"},
		{"npm:../../etc", User, " npm:../../etc"},
		{"npm:@../x", User, " npm:@../x"},
		{"npm:", User, " npm:"},
		{"npm:@me", User, " npm:@me"},
		{"git:example.com/../../../etc", User, " git:example.com/../../../etc"},
		{"git:tools", User, " git:tools"},
		{"https://", User, " https://"},
	} {
		dir, identity := locatePackage(c.source, "/a", c.scope, f)
		if got := filepath.ToSlash(dir) + " " + filepath.ToSlash(identity); got != filepath.ToSlash(c.want) {
			t.Errorf("%s: %s, want %s", c.source, got, c.want)
		}
	}
}

// packageTree is a user's settings folder, a project and packages.
func packageTree(t *testing.T) (string, Folders) {
	skill := func(name string) string { return "---\nname: " + name + "\ndescription: d\n---\n" }
	root := tree(t, map[string]string{
		// A manifest decides alone.
		"packs/m/package.json":           `{"name": "m", "pi": {"skills": ["./sk", "extra/*/", "!**/no", "../out", 7], "prompts": ["p/deep/one.md"]}}`,
		"packs/m/sk/a/SKILL.md":          skill("a"),
		"packs/m/sk/b/SKILL.md":          skill("b"),
		"packs/m/sk/no/SKILL.md":         skill("no"),
		"packs/m/extra/c/SKILL.md":       skill("c"),
		"packs/m/skills/unseen/SKILL.md": skill("unseen"),
		"packs/m/p/deep/one.md":          "one",
		"packs/m/p/two.md":               "two",
		"packs/out/SKILL.md":             skill("out"),
		// Without one, folders of the usual names count.
		"packs/c/skills/x/SKILL.md": skill("x"),
		"packs/c/skills/y.md":       skill("y"),
		"packs/c/prompts/t.md":      "t",
		"packs/c/prompts/sub/u.md":  "u",
		// So they do with one that lists nothing, and, for an entry with filters,
		// with one that does not list the kind.
		"packs/i/package.json":        `{"pi": {"image": "i.png"}}`,
		"packs/i/skills/i1/SKILL.md":  skill("i1"),
		"packs/l/package.json":        `{"pi": {"prompts": ["p"]}}`,
		"packs/l/skills/l1/SKILL.md":  skill("l1"),
		"packs/e/package.json":        `{"pi": {"skills": []}}`,
		"packs/e/skills/no1/SKILL.md": skill("no1"),
		// A broken manifest is reported.
		"packs/broken/package.json":      `{"pi": `,
		"packs/broken/skills/z/SKILL.md": skill("z"),
		"packs/single.ts":                "",
		// Installed ones.
		"agent/npm/node_modules/@me/n/skills/n1/SKILL.md": skill("n1"),
		"agent/git/example.com/me/g/skills/g1/SKILL.md":   skill("g1"),
		"w/.pi/npm/node_modules/pn/skills/pn1/SKILL.md":   skill("pn1"),
	})
	return root, Folders{Agent: filepath.Join(root, "agent"), Cwd: filepath.Join(root, "w")}
}

func TestPackages(t *testing.T) {
	root, folders := packageTree(t)
	entries := func(list ...PackageEntry) []PackageEntry { return list }
	for _, c := range []struct {
		name          string
		user, project []PackageEntry
		temporary     []string
		untrusted     bool
		want          string // skill=scope
		problems      string
	}{
		{name: "manifest", user: entries(PackageEntry{Source: "../packs/m"}), want: "a=user b=user c=user", problems: `"../out" leads out of the package; left out`},
		{name: "usual folders", user: entries(PackageEntry{Source: "../packs/c"}), want: "x=user y=user"},
		{name: "manifest without lists", user: entries(PackageEntry{Source: "../packs/i"}), want: "i1=user"},
		{name: "manifest of another kind", user: entries(PackageEntry{Source: "../packs/l"})},
		{name: "manifest of another kind, filtered", user: entries(PackageEntry{Source: "../packs/l", Prompts: []string{}}), want: "l1=user"},
		{name: "manifest that lists none", user: entries(PackageEntry{Source: "../packs/e"})},
		{name: "broken manifest", user: entries(PackageEntry{Source: "../packs/broken"}), want: "z=user", problems: "package.json"},
		{name: "single file", user: entries(PackageEntry{Source: "../packs/single.ts"})},
		{name: "missing", user: entries(PackageEntry{Source: "../packs/none"}), problems: "package path does not exist"},
		{name: "installed", user: entries(PackageEntry{Source: "npm:@me/n@2"}, PackageEntry{Source: "git:example.com/me/g@v1"}), want: "n1=user g1=user"},
		{name: "not installed", user: entries(PackageEntry{Source: "npm:gone"}), problems: "package npm:gone is not installed"},
		{name: "no source", user: entries(PackageEntry{Source: "npm:../x"}), problems: "not the source of a package"},
		{name: "of the project", project: entries(PackageEntry{Source: "npm:pn"}), want: "pn1=project"},
		{name: "untrusted", untrusted: true, project: entries(PackageEntry{Source: "npm:pn"}, PackageEntry{Source: "../../packs/c"})},
		{name: "for this run", temporary: []string{"../packs/c"}, user: entries(PackageEntry{Source: "../packs/c"}), want: "x=temporary y=temporary"},
		{name: "project replaces user", user: entries(PackageEntry{Source: "../packs/c"}, PackageEntry{Source: "npm:@me/n"}),
			project: entries(PackageEntry{Source: "../../packs/c", Skills: []string{"skills/y.md"}}), want: "y=project n1=user"},
		{name: "twice", user: entries(PackageEntry{Source: "../packs/c", Skills: []string{"!y.md"}}, PackageEntry{Source: root + "/packs/c"}), want: "x=user"},
		{name: "nothing", user: entries(PackageEntry{Source: "../packs/c", Skills: []string{}})},
		{name: "some", user: entries(PackageEntry{Source: "../packs/c", Skills: []string{"skills/x"}}), want: "x=user"},
		{name: "glob", user: entries(PackageEntry{Source: "../packs/c", Skills: []string{"skills/{y,q}*"}}), want: "y=user"},
		{name: "excluded", user: entries(PackageEntry{Source: "../packs/c", Skills: []string{"!skills/*", "+skills/y.md"}}), want: "y=user"},
		{name: "last word", user: entries(PackageEntry{Source: "../packs/c", Skills: []string{"+skills/y.md", "-skills/y.md"}}), want: "x=user"},
		{name: "narrows the manifest", user: entries(PackageEntry{Source: "../packs/m", Skills: []string{"sk/*"}}), want: "a=user b=user", problems: "leads out"},
		{name: "no more than the manifest", user: entries(PackageEntry{Source: "../packs/m", Skills: []string{"sk/a", "+sk/no"}}), want: "a=user", problems: "leads out"},
		{name: "delta", user: entries(PackageEntry{Source: "../packs/c", Skills: []string{"skills/x"}}),
			project: entries(PackageEntry{Source: "../../packs/c", Delta: true, Skills: []string{"-skills/x", "+skills/y.md"}}), want: "y=user"},
		{name: "delta of a list that lets nothing through", user: entries(PackageEntry{Source: "../packs/c", Skills: []string{}}),
			project: entries(PackageEntry{Source: "../../packs/c", Delta: true, Skills: []string{"+skills/y.md"}}), want: "y=user"},
		{name: "autoload off for the user", user: entries(PackageEntry{Source: "../packs/c", Delta: true, Skills: []string{"+skills/y.md"}}), want: "y=user"},
		{name: "exact paths are no base names", user: entries(PackageEntry{Source: "../packs/c", Skills: []string{"-SKILL.md", "-y.md", "-x"}}), want: "x=user y=user"},
		{name: "delta of another kind", user: entries(PackageEntry{Source: "../packs/c"}),
			project: entries(PackageEntry{Source: "../../packs/c", Delta: true, Prompts: []string{"-prompts/t.md"}}), want: "x=user y=user"},
		{name: "delta alone", project: entries(PackageEntry{Source: "../../packs/c", Delta: true, Skills: []string{"skills/x"}}), want: "x=project"},
		{name: "delta of nothing", project: entries(PackageEntry{Source: "../../packs/c", Delta: true})},
		{name: "untrusted delta", untrusted: true, user: entries(PackageEntry{Source: "../packs/c"}),
			project: entries(PackageEntry{Source: "../../packs/c", Delta: true, Skills: []string{"-skills/x"}}), want: "x=user y=user"},
	} {
		found, problems := FindPackages(PackageOptions{
			Folders: folders, Trusted: !c.untrusted, Temporary: c.temporary,
			User:    PackageEntries{Folder: folders.Agent, List: c.user},
			Project: PackageEntries{Folder: filepath.Join(folders.Cwd, ".pi"), List: c.project},
		})
		skills, more := LoadSkills(Places{Folders: folders, Trusted: !c.untrusted, Packages: found})
		problems = append(problems, more...)
		var got []string
		for _, s := range skills {
			got = append(got, s.Name+"="+string(s.Source.Scope))
			if s.Source.Origin != "package" || s.Source.BaseDir == "" {
				t.Errorf("%s: %+v", c.name, s.Source)
			}
		}
		if strings.Join(got, " ") != c.want || (c.problems == "") != (problems == nil) || problems != nil && !strings.Contains(fmt.Sprint(problems), c.problems) {
			t.Errorf("%s: %v %v, want %s", c.name, got, problems, c.want)
		}
	}
}

func TestPackagePrecedence(t *testing.T) {
	skill := func(d string) string { return "---\nname: s\ndescription: " + d + "\n---\n" }
	root := tree(t, map[string]string{
		"run/skills/s.md": skill("run"), "agent/skills/s.md": skill("own"), "pack/skills/s.md": skill("pack"), "cli/s.md": skill("cli"),
		"run/prompts/t.md": "run", "agent/prompts/t.md": "own", "pack/prompts/t.md": "pack", "cli/t.md": "cli",
	})
	folders := Folders{Agent: filepath.Join(root, "agent"), Cwd: root}
	for _, c := range []struct {
		temporary []string
		none      bool
		want      string
	}{
		{[]string{"run"}, false, "run own pack cli"},
		{nil, false, "own pack cli"},
		{[]string{"run"}, true, "run cli"},
		{nil, true, "cli"},
	} {
		found, _ := FindPackages(PackageOptions{Folders: folders, Temporary: c.temporary, User: PackageEntries{Folder: root, List: []PackageEntry{{Source: "pack"}}}})
		skills, problems := LoadSkills(Places{Folders: folders, None: c.none, Paths: []string{"cli/s.md"}, Packages: found})
		order := skills[0].Description
		for _, p := range problems {
			if p.Collision.WinnerPath != skills[0].FilePath || p.Collision.ResourceType != "skill" {
				t.Errorf("%+v", p.Collision)
			}
			order += " " + filepath.Base(strings.TrimSuffix(filepath.Dir(p.Collision.LoserPath), filepath.FromSlash("/skills")))
		}
		if want := strings.Replace(c.want, " own", " agent", 1); order != want {
			t.Errorf("%v %v: skills %s, want %s", c.temporary, c.none, order, want)
		}
		templates, problems := LoadTemplates(Places{Folders: folders, None: c.none, Paths: []string{"cli/t.md"}, Packages: found})
		if first, _, _ := strings.Cut(c.want, " "); len(templates) != 1 || templates[0].Content != first || len(problems) != strings.Count(c.want, " ") {
			t.Errorf("%v %v: %+v %v", c.temporary, c.none, templates, problems)
		}
	}
}

func TestPackageTemplates(t *testing.T) {
	_, folders := packageTree(t)
	found, _ := FindPackages(PackageOptions{Folders: folders, User: PackageEntries{Folder: folders.Agent, List: []PackageEntry{
		{Source: "../packs/m"}, {Source: "../packs/c"},
	}}})
	list, _ := LoadTemplates(Places{Folders: folders, Packages: found})
	var got []string
	for _, x := range list {
		got = append(got, x.Name+"="+x.Source.Source)
	}
	if strings.Join(got, " ") != "one=../packs/m t=../packs/c" {
		t.Errorf("got %v", got)
	}
}

func FuzzLocatePackage(f *testing.F) {
	for _, seed := range []string{"npm:@a/b@1", "npm:..", "git:h/../../x", "git:git@h:a/b", "https://h/a@v#x", "ssh://u@h:1/a", "git://", "x/y", "git:h/.git"} {
		f.Add(seed)
	}
	folders := Folders{Agent: filepath.FromSlash("/a"), Cwd: filepath.FromSlash("/w")}
	f.Fuzz(func(t *testing.T, source string) {
		dir, identity := locatePackage(source, folders.Cwd, User, folders)
		if packageKind(jsonwire.Trim(source)) != LocalPackage && dir != "" && (dir == folders.Agent || !isWithin(dir, folders.Agent)) {
			t.Fatalf("%q is in %s", source, dir)
		}
		if identity == "" && jsonwire.Trim(source) != "" {
			t.Fatalf("%q is nothing", source)
		}
		short := source[:min(len(source), 1000)] // a match costs the product of the two
		globMatch(short, short)
	})
}

// What braces stand for has a bound, however many choices a pattern has.
func TestBracesAreBounded(t *testing.T) {
	choices := strings.Repeat("x,", 99) + "x"
	if got := expandBraces("a{" + choices + "}"); len(got) != 100 || got[0] != "ax" {
		t.Errorf("%d patterns, %q", len(got), got[0])
	}
	for _, pattern := range []string{"{" + strings.Repeat(",", 20_000) + "}" + strings.Repeat("x", 20_000), strings.Repeat("{a,b}", 50_000), strings.Repeat("{", 300_000)} {
		bytes := 0
		for _, p := range expandBraces(pattern) {
			bytes += len(p)
		}
		if bytes > len(pattern)+maxBraces*maxBraceBytes {
			t.Errorf("%.20q of %d bytes becomes %d", pattern, len(pattern), bytes)
		}
	}
}

func TestPlaceOfPackage(t *testing.T) {
	f := Folders{Agent: "/a", Home: "/h", Cwd: "/w"}
	for source, want := range map[string]string{
		"npm:@me/tools@1":          "/a/npm",
		"npm:tools":                "/a/npm",
		"git:example.com/me/d/t@1": "/a/git",
		"./x":                      "",
	} {
		if place, ok := f.PlacePackage(source, "/a", User); !ok || filepath.ToSlash(place.Root) != want {
			t.Errorf("%s: %+v, want %s", source, place, want)
		}
	}
	if _, ok := f.PlacePackage("npm:..", "/a", User); ok {
		t.Error("npm:.. has a place")
	}
}

func TestOffers(t *testing.T) {
	root := tree(t, map[string]string{
		"p/skills/a/SKILL.md":             "---\nname: a\ndescription: d\n---\n",
		"p/prompts/t.md":                  "t",
		"p/extensions/one.ts":             "",
		"p/extensions/one.d.ts":           "",
		"p/extensions/two/index.js":       "",
		"p/extensions/three/package.json": `{"pi": {"extensions": ["main.ts", "../../../out.ts"]}}`,
		"p/extensions/three/main.ts":      "",
		"p/extensions/three/index.ts":     "",
		"p/themes/night.json":             "{}",
		"out.ts":                          "",
	})
	found, problems := FindPackages(PackageOptions{
		Folders: Folders{Agent: root, Cwd: root},
		User:    PackageEntries{Folder: root, List: []PackageEntry{{Source: "p", Skills: []string{}, Extensions: []string{"!**/two/*"}}}},
	})
	if len(found) != 1 || problems != nil {
		t.Fatal(found, problems)
	}
	var got []string
	for _, o := range found[0].Offers() {
		line := o.Kind + " " + slash(relative(found[0].Dir, o.Path))
		if !o.On {
			line += " off"
		}
		got = append(got, line)
	}
	want := `skills skills/a/SKILL.md off
prompts prompts/t.md
extensions extensions/one.ts
extensions extensions/three/main.ts
extensions extensions/two/index.js off
themes themes/night.json`
	if s := strings.Join(got, "\n"); s != want {
		t.Errorf("got\n%s", s)
	}
}
