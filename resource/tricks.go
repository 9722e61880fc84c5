package resource

import (
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// nextFence follows code blocks: fence is the line that opened one, "" outside.
func nextFence(fence, line string) string {
	line = strings.TrimSpace(line)
	if fence != "" {
		if strings.HasPrefix(line, fence) && strings.Trim(line, fence[:1]) == "" {
			return ""
		}
		return fence
	}
	for _, mark := range []string{"```", "~~~"} {
		if strings.HasPrefix(line, mark) {
			return line[:len(line)-len(strings.TrimLeft(line, mark[:1]))]
		}
	}
	return ""
}

// commentScan is a comment that is open at the end of a line.
type commentScan struct {
	open  bool
	text  strings.Builder
	begin place
}

// comments reports what a rendered page does not show.
func (f *findings) comments(c *commentScan, line string, number int) {
	at := 0
	for {
		if c.open {
			inner, _, closed := strings.Cut(line[at:], "-->")
			if c.text.Len() < longLine {
				c.text.WriteString(inner + "\n")
			}
			if !closed {
				return
			}
			at += len(inner) + len("-->")
			c.open = false
			f.comment(c.text.String(), c.begin)
		}
		i := strings.Index(line[at:], "<!--")
		if i < 0 {
			break
		}
		at += i
		c.open, c.begin = true, place{number, line, at}
		c.text.Reset()
		at += len("<!--")
	}
	// The definition of a link that nothing refers to is a comment as well.
	for _, mark := range []string{"[//]: # ", "[//]: <> ", "[comment]: # ", "[comment]: <> "} {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), mark); ok {
			f.comment(rest, place{number, line, 0})
		}
	}
	if !strings.Contains(line, "<") {
		return
	}
	lower := strings.ToLower(line)
	for _, style := range []string{"display:none", "display: none", "visibility:hidden", "visibility: hidden", "font-size:0", "font-size: 0"} {
		if i := strings.Index(lower, style); i >= 0 && strings.Contains(lower[:i], "style=") {
			f.add(Comment, Suspicious, place{number, lower, i}, "text that a style hides", readAdvice)
		}
	}
}

func (f *findings) comment(text string, p place) {
	words := strings.Fields(strings.ToLower(text))
	switch {
	case addressesAgents(strings.Join(words, " ")):
		f.add(Comment, Suspicious, p, "a comment that speaks to agents; a rendered page does not show it", readAdvice)
	case len(words) >= 4:
		f.add(Comment, Note, p, "a comment, which a rendered page does not show", readAdvice)
	}
}

// addressesAgents is a guess, from English words.
func addressesAgents(text string) bool {
	for _, phrase := range []string{
		"you are a", "you must", "you should", "do not tell", "don't tell", "do not mention", "don't mention", "never mention",
		"without asking", "without telling", "ignore previous", "ignore all", "ignore the above", "system prompt",
		"assistant", "ai agent", "coding agent", "silently", "secretly",
	} {
		if strings.Contains(text, phrase) {
			return true
		}
	}
	return false
}

// frames reports the tags that mark skills and context files for a model: text
// with them can pass for something else than it is.
func (f *findings) frames(line string, number int) {
	if !strings.Contains(line, "<") {
		return
	}
	lower := strings.ToLower(line)
	for _, tag := range []string{
		"<skill name=", "</skill>", "<available_skills>", "</available_skills>", "</skills>",
		"<project_instructions", "</project_instructions>", "</project_context>", "</addendum>",
	} {
		if i := strings.Index(lower, tag); i >= 0 {
			f.add(FrameMarkup, Suspicious, place{number, lower, i},
				"a tag of the frame around skills and context files, "+strings.Trim(tag, "<>/="), "write it in other words")
			return
		}
	}
}

func (f *findings) dataAddresses(line string, number int) {
	rest, at := line, 0
	for {
		i := strings.Index(rest, "data:")
		if i < 0 {
			return
		}
		at += i
		rest = rest[i+len("data:"):]
		head, _, ok := strings.Cut(rest[:min(len(rest), 100)], ",")
		kind, _, _ := strings.Cut(head, ";")
		if major, minor, isType := strings.Cut(kind, "/"); ok && isType && isToken(major) && isToken(minor) {
			severity, payload := Note, rest[len(head)+1:]
			long := len(payload) >= longDataBytes && !strings.ContainsAny(payload[:longDataBytes], " )\"'>`")
			if long || major != "image" && major != "font" {
				severity = Suspicious
			}
			f.add(DataAddress, severity, place{number, line, at}, "an address that holds its data, of type "+kind, "decode it before you use the file")
		}
		at += len("data:")
	}
}

func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '+' || r == '.')
	})
}

type commandLine struct {
	text   string
	number int // of its first line
}

// commandLines are the lines of a text that may fetch something, each with those
// that a backslash continues it by.
func commandLines(text string) []commandLine {
	lower := strings.ToLower(text)
	if !slices.ContainsFunc([]string{"curl", "wget", "iwr", "irm", "invoke-", "base64", "downloadstring"}, func(s string) bool { return strings.Contains(lower, s) }) {
		return nil
	}
	var out []commandLine
	number, continued := 0, false
	for line := range strings.SplitSeq(text, "\n") {
		number++
		body, more := strings.CutSuffix(strings.TrimRight(line, " \t"), `\`)
		if continued && len(out[len(out)-1].text) < longCommand {
			out[len(out)-1].text += " " + body
		} else {
			out = append(out, commandLine{body, number})
		}
		continued = more
	}
	return out
}

// fetches reports whether a command line in lower case loads or decodes
// something and says what.
func fetches(line string) bool {
	words := shellWords(line)
	for i, w := range words[:max(len(words)-1, 0)] {
		switch path.Base(w) {
		case "curl", "wget", "iwr", "irm", "invoke-webrequest", "invoke-restmethod":
			return true
		case "base64":
			if next := words[i+1]; next == "-d" || next == "--decode" {
				return true
			}
		}
		if strings.HasSuffix(w, ".downloadstring") {
			return true
		}
	}
	return false
}

// shellWords cuts a line at white space, quotes and brackets.
func shellWords(line string) []string {
	return strings.FieldsFunc(line, func(r rune) bool { return jsonwire.IsSpace(r) || strings.ContainsRune("\"'`$(){}<>;&|", r) })
}

// runsWhatItFetches reports whether a command line hands what it loads to an
// interpreter: fetch | sh, sh <(fetch), sh -c "$(fetch)".
func runsWhatItFetches(line string) bool {
	line = strings.ToLower(line[:min(len(line), longCommand)])
	if !fetches(line) {
		return false
	}
	if !strings.HasPrefix(strings.TrimSpace(line), "|") { // the row of a table
		fetched := false
		for part := range strings.SplitSeq(line, "|") {
			if fetched && interprets(part) {
				return true
			}
			fetched = fetched || fetches(part)
		}
	}
	for i := range len(line) {
		if (line[i] == '(' || line[i] == '`') && endsInInterpreter(line[max(0, i-60):i]) && fetches(line[i+1:min(len(line), i+200)]) {
			return true
		}
	}
	return false
}

// interprets reports whether a command runs its input.
func interprets(command string) bool {
	words := shellWords(command)
	for len(words) > 0 && (words[0] == "sudo" || words[0] == "env" || words[0] == "exec" || strings.Contains(words[0], "=") || strings.HasPrefix(words[0], "-")) {
		words = words[1:]
	}
	if len(words) == 0 {
		return false
	}
	switch name := strings.TrimSuffix(path.Base(words[0]), ".exe"); {
	case isShell(name):
		return len(words) == 1 || words[1] != "-c"
	case isScript(name): // reads its program only when it is told of no other
		return len(words) == 1 || words[1] == "-"
	}
	return false
}

// endsInInterpreter reports whether what is about to be put into a command line
// is run.
func endsInInterpreter(before string) bool {
	words := shellWords(before)
	for len(words) > 0 && strings.HasPrefix(words[len(words)-1], "-") {
		words = words[:len(words)-1]
	}
	if len(words) == 0 {
		return false
	}
	switch name := path.Base(words[len(words)-1]); name {
	case "eval", "source", ".", "iex", "invoke-expression":
		return true
	default:
		return isShell(name) || isScript(name)
	}
}

func isShell(name string) bool {
	switch name {
	case "sh", "bash", "zsh", "dash", "ksh", "fish", "iex", "invoke-expression", "powershell", "pwsh":
		return true
	}
	return false
}

func isScript(name string) bool {
	name = strings.TrimRight(name, "0123456789.")
	return name == "python" || name == "node" || name == "perl" || name == "ruby" || name == "php" || name == "deno" || name == "bun"
}

// references reports what a skill refers to outside of its folder, in text with
// LF line ends.
func (f *findings) references(text string) {
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		number++
		at := 0
		for {
			i := strings.Index(line[at:], "](")
			if i < 0 {
				break
			}
			at += i + len("](")
			end := strings.IndexAny(line[at:], ")\t ")
			if end < 0 {
				break
			}
			f.reference(strings.Trim(line[at:at+end], "<>"), place{number, line, at})
			at += end
		}
		for _, mark := range []string{"../", `..\`} {
			if i := strings.Index(line, mark); i >= 0 {
				f.add(Outside, Note, place{number, line, i}, "a path that leads out of the skill's folder", trustAdvice)
			}
		}
	}
}

func (f *findings) reference(target string, p place) {
	scheme, _, _ := strings.Cut(target, ":")
	top, _, _ := strings.Cut(strings.TrimPrefix(strings.ReplaceAll(target, `\`, "/"), "/"), "/")
	switch {
	case strings.EqualFold(scheme, "file"),
		strings.HasPrefix(target, "~"),
		len(scheme) == 1 && len(target) > 1, // a drive
		target != top && (target[0] == '/' || target[0] == '\\') && isSystemFolder(top):
		f.add(Outside, Suspicious, p, "a link to "+oneLine(target)+", outside of the skill's folder", trustAdvice)
	case strings.HasPrefix(target, "/"): // on the web, the top of a site or repository
		f.add(Outside, Note, p, "a link to "+oneLine(target)+", outside of the skill's folder", trustAdvice)
	}
}

// isSystemFolder: at the top of a file system.
func isSystemFolder(name string) bool {
	switch name {
	case "etc", "home", "root", "proc", "sys", "dev", "var", "run", "tmp", "Users", "private", "Library":
		return true
	}
	return false
}

// oneLine is a short text for a message.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && !invisible(r) {
			return r
		}
		return '?'
	}, s)
	if cut := jsonwire.UTF16Prefix(s, maxTemplateDescription); cut != s {
		return cut + "..."
	}
	return s
}

// name reports a name that hides characters or can be taken for another.
func (f *findings) name(name string) {
	hiding := worst(f.list) == Dangerous
	for _, h := range hiddenIn(name) {
		if h.severity == Dangerous && !hiding {
			f.add(h.kind, Dangerous, place{}, h.message(name)+" in the name", h.advice())
		}
	}
	var seen []string
	for script, table := range map[string]*unicode.RangeTable{
		"Latin": unicode.Latin, "Greek": unicode.Greek, "Cyrillic": unicode.Cyrillic, "Armenian": unicode.Armenian, "Cherokee": unicode.Cherokee,
	} {
		if strings.ContainsFunc(name, func(r rune) bool { return unicode.Is(table, r) }) {
			seen = append(seen, script)
		}
	}
	switch {
	case len(seen) > 1:
		f.add(Lookalike, Suspicious, place{}, "a name that mixes letters of several alphabets: "+oneLine(name), "rename it, or do without it")
	case norm.NFKC.String(name) != norm.NFC.String(name):
		f.add(Lookalike, Suspicious, place{}, "a name with letters that look like plain ones: "+oneLine(name), "rename it, or do without it")
	}
}

// fields looks at the frontmatter: names that mean nothing, and values that
// hide text by escapes, which the characters of the file do not show.
func (f *findings) fields(text string, front Frontmatter, known []string) {
	head, _ := cutFrontmatter(text)
	lines, number := map[string]place{}, 1
	for line := range strings.SplitSeq(head, "\n") {
		number++
		if field, _, ok := strings.Cut(line, ":"); ok {
			lines[strings.Trim(field, " \"'")] = place{number, line, 0}
		}
	}
	hiding := worst(f.list) == Dangerous
	for _, field := range slices.Sorted(maps.Keys(front)) {
		if !slices.Contains(known, field) {
			f.add(UnknownField, Note, lines[field], "the field "+oneLine(field)+" means nothing here", "correct its name, or leave it for other programs")
		}
		value, _ := front.text(field)
		for part := range strings.SplitSeq(value, "\n") {
			for _, h := range hiddenIn(part) {
				if h.severity == Dangerous && !hiding {
					f.add(h.kind, Dangerous, lines[field], h.message(part)+" in the field "+oneLine(field), h.advice())
				}
			}
		}
	}
}

// links reports the symbolic links of a folder that leave it.
func (f *findings) links(folder string) {
	left := maxFolderAudit
	_ = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if left--; left < 0 {
			return filepath.SkipAll
		}
		switch {
		case err != nil:
		case d.Type()&fs.ModeSymlink != 0:
			f.link(path, folder)
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git"):
			return filepath.SkipDir
		}
		return nil
	})
}

// maxFolderAudit bounds the files of a skill that are looked at.
const maxFolderAudit = 2000

// link reports a file that is a symbolic link to somewhere outside of a folder.
func (f *findings) link(file, folder string) {
	if real, ok := leaves(file, folder); ok {
		f.list = append(f.list, Finding{Outside, Suspicious, file, 0, 0, 1, "a link to " + oneLine(real) + ", outside of " + oneLine(filepath.Base(folder)), trustAdvice})
	}
}

// leaves follows a file; ok is true when it is outside of a folder.
func leaves(file, folder string) (real string, ok bool) {
	real = canonical(file)
	return real, !isWithin(real, canonical(folder))
}

// lure reports a file of a repository that is a link to what is no text for a
// model, such as a key: it would be sent to a provider by whoever works there.
func lure(file string) *Diagnostic {
	real, ok := leaves(file, repository(filepath.Dir(file)))
	if !ok {
		return nil
	}
	switch strings.ToLower(filepath.Ext(real)) {
	case ".md", ".mdc", ".markdown", ".txt":
		return nil
	}
	return &Diagnostic{Type: Warning, Path: file, Message: "a link out of the repository to " + oneLine(real) + ", which is no Markdown; left out"}
}
