package settings

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

var writePage = flag.Bool("write", false, "write the tables of docs/settings.md")

const pagePath = "../../docs/settings.md"

// The user's page lists every setting as the code has it.
func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile(pagePath)
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for name, table := range map[string]string{"settings": settingsTable(), "old settings": oldTable()} {
		begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
		before, rest, found := strings.Cut(text, begin)
		is, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			t.Fatalf("docs/settings.md has no table of %s", name)
		}
		if is != table && !*writePage {
			t.Errorf("the table of %s in docs/settings.md is not what the code has: go test ./internal/settings -run TestDocumentation -write", name)
		}
		text = before + begin + table + end + after
	}
	if *writePage {
		if err := os.WriteFile(pagePath, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func settingsTable() string {
	var b strings.Builder
	b.WriteString("| setting | value | default | what it is |\n|---|---|---|---|\n")
	for _, k := range keys() {
		if k.old {
			continue
		}
		standard := k.note
		if k.standard != "" {
			standard = "`" + k.standard + "`"
		}
		var marks []string
		if k.user {
			marks = append(marks, "*yours*")
		}
		if k.later {
			marks = append(marks, "*later*")
		}
		means := k.means
		if len(marks) > 0 {
			means += " (" + strings.Join(marks, ", ") + ")"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.name, strings.ReplaceAll(k.kind.wants(), "\"", "`"), standard, means)
	}
	return b.String()
}

func oldTable() string {
	var b strings.Builder
	b.WriteString("| old | now |\n|---|---|\n")
	for _, k := range keys() {
		if k.old {
			fmt.Fprintf(&b, "| `%s` | %s |\n", k.name, k.means)
		}
	}
	return b.String()
}

// The standard of every setting is one of its values.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range keys() {
		if seen[k.name] || k.means == "" {
			t.Errorf("%s stands in the table twice, or nobody says what it is", k.name)
		}
		seen[k.name] = true
		if k.standard == "" {
			continue
		}
		if err := jsonwire.Check([]byte(k.standard)); err != nil {
			t.Errorf("%s: %v", k.name, err)
		}
		if err := checkValue(k.name, []byte(k.standard)); err != nil {
			t.Error(err)
		}
		if k.note != "" {
			t.Errorf("%s has a standard and a note", k.name)
		}
	}
}

// Every setting can be read as what it is.
func TestReadingByName(t *testing.T) {
	s := Merge(Parse("s", []byte(`{"quietStartup": "header", "fullscreenWheelScrollLines": 7, "terminal": {"trueColor": false}, "themes": ["a"], "editorPaddingX": null}`)), nil)
	for _, c := range []struct{ name, got, want string }{
		{"flag", fmt.Sprint(s.Flag("hideThinkingBlock"), s.Flag("fullscreenCopyOnSelect"), s.Flag("quietStartup"), s.Flag("terminal.trueColor")), "false true false false"},
		{"text", fmt.Sprintf("%q %q %q", s.Text("quietStartup"), s.Text("theme"), s.Text("terminal.trueColor")), `"header" "system" ""`},
		{"number", fmt.Sprint(s.Number("fullscreenWheelScrollLines"), s.Number("autocompleteMaxVisible"), s.Number("editorPaddingX"), s.Number("theme")), "7 5 0 0"},
		{"list", fmt.Sprint(s.List("themes"), s.List("npmCommand"), s.List("enabledModels") == nil), "[a] [npm] true"},
		{"duration", fmt.Sprint(s.Duration("websocketConnectTimeoutMs")), "15s"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", c.name, c.got, c.want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a name that is no setting can be read")
		}
	}()
	s.Flag("hideThinkingBlok")
}
