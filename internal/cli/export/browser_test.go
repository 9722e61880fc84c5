package export

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// drawn is the page after a browser ran its script, as markup.
func drawn(t *testing.T, page, address string) string {
	t.Helper()
	var browser string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
			break
		}
	}
	if browser == "" {
		t.Skip("no chromium on this machine: what the page's script draws is not checked")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "page.html")
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	at := url.URL{Scheme: "file", Path: filepath.ToSlash(path)}
	cmd := exec.CommandContext(ctx, browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+filepath.Join(dir, "profile"),
		"--virtual-time-budget=5000", "--window-size=390,844", "--dump-dom", at.String()+address)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", browser, err)
	}
	return string(out)
}

func TestBrowserDraws(t *testing.T) {
	dom := drawn(t, render(t, open(t,
		strings.Replace(prompt, "Why does", "# Why **does**", 1), answer, result,
		`{"type":"message","id":"x1","parentId":"e0","timestamp":"","message":{"role":"user","content":"another way"}}`,
		`{"type":"message","id":"x2","parentId":"e2","timestamp":"","message":{"role":"user","content":"| a | b |\n|--|--|\n| 1 | 2 |"}}`,
	), Options{}), "")
	for _, want := range []string{
		`<strong>does</strong>`, `class="fold thinking"`, `<span class="name">bash</span><span class="what">ls</span><span class="result">2 lines</span>`,
		`2 branches from here:`, `<th scope="col">a</th>`, `<td>2</td>`, `Branch 1 (shown)`,
	} {
		if !strings.Contains(dom, want) {
			t.Errorf("the page does not show %s", want)
		}
	}
	if strings.Contains(dom, `id="entry-x1"`) {
		t.Error("an entry of another branch is shown")
	}
	if strings.Contains(dom, `id="loading"`) {
		t.Error("the script did not come to its end")
	}
}

func TestBrowserFollowsLinks(t *testing.T) {
	other := `{"type":"message","id":"x/ 1","parentId":"e0","timestamp":"","message":{"role":"user","content":"another way"}}`
	dom := drawn(t, render(t, open(t, prompt, other, answer), Options{}), "#entry-x%2F%201")
	if !regexp.MustCompile(`<article class="entry user target" id="entry-x/ 1"`).MatchString(dom) {
		t.Error("the entry of the address is not shown")
	}
}

// TestBrowserRunsNothing draws hostile texts in every place, with and without
// the policy of the page.
func TestBrowserRunsNothing(t *testing.T) {
	attack := `document.documentElement.setAttribute("attacked","")`
	text := strings.Join(hostile, " ") + "\n\n" + strings.Join([]string{
		"[good](https://good.example/)",
		`[a](javascript:attack()) [b](JAVASCRIPT:attack()) [c](data:text/html,<script>attack()</script>) [d](//evil.example) [e](file:///etc/passwd)`,
		`![f](https://evil.example/f.png) <javascript:attack()> <img src=https://evil.example/g.png onerror=attack()>`,
		"```html\n<script>attack()</script>\n```", "| <img src=x onerror=attack()> |\n|--|\n| <b>x |", strings.Repeat("*", 20000) + strings.Repeat("[", 20000),
	}, "\n\n")
	page := render(t, everywhere(t, strings.ReplaceAll(text, "attack()", attack)), Options{})
	for name, page := range map[string]string{
		"with":    page,
		"without": regexp.MustCompile(`<meta http-equiv="Content-Security-Policy"[^>]*>`).ReplaceAllString(page, ""),
	} {
		dom := drawn(t, page, "")
		if regexp.MustCompile(`<html[^>]* attacked`).MatchString(dom) {
			t.Errorf("%s the policy: a text of the session ran", name)
		}
		if !strings.Contains(dom, `<article class="entry user`) || !strings.Contains(dom, `href="https://good.example/"`) {
			t.Errorf("%s the policy: the session is not shown", name)
		}
		// The markup of what was drawn; texts have no "<" there.
		_, drawn, _ := strings.Cut(dom, `<div id="entries">`)
		drawn, _, _ = strings.Cut(drawn, `<div id="shade"`)
		for _, tag := range regexp.MustCompile(`<[a-z][^>]*>`).FindAllString(drawn, -1) {
			if regexp.MustCompile(`^<(script|iframe|object|embed|base|form|style|link|meta|svg)\b`).MatchString(tag) ||
				regexp.MustCompile(`^<img\b`).MatchString(tag) && !strings.Contains(tag, `src="data:image/`) {
				t.Errorf("%s the policy: the page has %s", name, tag)
			}
			if m := regexp.MustCompile(`\bhref="([^"]*)"`).FindStringSubmatch(tag); m != nil && !regexp.MustCompile(`^(https?://|mailto:|#)`).MatchString(m[1]) {
				t.Errorf("%s the policy: a link leads to %s", name, m[1])
			}
		}
	}
}
