package export

import (
	"bufio"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/version"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

// Options say what a page shows beside the session. The zero value works.
type Options struct {
	// SystemPrompt and Tools are those of the agent that runs the session; ""
	// and nil for what the session itself has on the branch of its leaf.
	SystemPrompt string
	Tools        []llm.Tool
}

//go:embed page
var files embed.FS

// scripts in the order in which they stand in the page.
var scripts = [...]string{"base.js", "code.js", "markdown.js", "tools.js", "entries.js", "view.js", "outline.js", "search.js", "main.js"}

// source is a text of the page, with the line breaks that the browser hashes.
func source(name string) string {
	b, err := files.ReadFile("page/" + name)
	if err != nil {
		panic(err) // it is embedded
	}
	return strings.ReplaceAll(string(b), "\r\n", "\n")
}

// chunkSize is about how many bytes of entries one script element holds. The
// page takes them apart one at a time.
const chunkSize = 256 << 10

// Write writes the page of a session, which need not be saved, as it is at the
// moment. It ends early with an error when ctx ends.
func Write(ctx context.Context, w io.Writer, s *session.Session, o Options) error {
	var script strings.Builder
	script.WriteString("\n(() => {\n\"use strict\";\n")
	for _, name := range scripts {
		script.WriteString(source(name))
	}
	script.WriteString("})();\n")
	p := &page{ctx: ctx, w: bufio.NewWriterSize(w, 64<<10), s: s, o: o, entries: s.Entries(), path: s.Path()}
	p.starts = chunks(p.entries)
	p.sum = summarize(p)
	style := source("page.css")
	template := source("page.html")
	for template != "" {
		text, rest, ok := strings.Cut(template, "{{")
		p.w.WriteString(text)
		if !ok {
			break
		}
		var name string
		name, template, _ = strings.Cut(rest, "}}")
		switch name {
		case "policy":
			p.w.WriteString("default-src 'none'; script-src " + hash(script.String()) + "; style-src " + hash(style) +
				"; img-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'")
		case "style":
			p.w.WriteString(style)
		case "script":
			p.w.WriteString(script.String())
		case "title":
			p.text(p.sum.title)
		case "facts":
			p.facts()
		case "version":
			p.text(version.Version)
		case "transcript":
			p.transcript()
		case "meta":
			p.json(p.meta())
		case "index":
			p.index()
		case "first":
			p.data(0, p.second())
		case "rest":
			p.data(p.second(), len(p.entries))
		default:
			return fmt.Errorf("the template of the page asks for %q", name)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return p.w.Flush()
}

// hash is how a content security policy names a text that may run or apply.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// page is one page while it is written. Failures of w are kept by it.
type page struct {
	ctx     context.Context
	w       *bufio.Writer
	s       *session.Session
	o       Options
	entries []*session.Entry
	path    []*session.Entry // to the leaf
	starts  []int            // of the chunks
	sum     summary
	scratch []byte
	r       jsonwire.Reader
}

// text writes text between tags or in quotes.
func (p *page) text(s string) {
	textEscapes.WriteString(p.w, jsonwire.ToValidUTF8(s))
}

var textEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", "\x00", "\uFFFD")

// json writes JSON into a script element, which no text in it can end: "<" is
// only ever part of a string, where it has another form. Control characters
// are only white space between tokens, where any other does as well.
func (p *page) json(raw []byte) {
	from := 0
	for i, c := range raw {
		if c != '<' && c >= ' ' {
			continue
		}
		p.w.Write(raw[from:i])
		if from = i + 1; c == '<' {
			p.w.WriteString(`\u003c`)
		} else {
			p.w.WriteByte(' ')
		}
	}
	p.w.Write(raw[from:])
}

// data writes entries, each on a line, in chunks. The first chunk stands before
// the script, which so has something to draw before the rest is loaded.
func (p *page) data(from, to int) {
	const open, end = "<script type=\"application/json\" class=\"chunk\">\n", "</script>\n"
	for i := from; i < to; i++ {
		if _, starts := slices.BinarySearch(p.starts, i); starts {
			if p.ctx.Err() != nil {
				return
			}
			if i > from {
				p.w.WriteString(end)
			}
			p.w.WriteString(open)
		}
		p.json(p.entries[i].Raw())
		p.w.WriteByte('\n')
	}
	if to > from {
		p.w.WriteString(end)
	}
}

// second is where the second chunk starts.
func (p *page) second() int {
	if len(p.starts) > 1 {
		return p.starts[1]
	}
	return len(p.entries)
}

// chunks is the number of the first entry of each chunk.
func chunks(entries []*session.Entry) (starts []int) {
	size := chunkSize
	for i, e := range entries {
		if size >= chunkSize {
			starts, size = append(starts, i), 0
		}
		size += len(e.Raw())
	}
	return starts
}

// meta is what the script has to know of the session as a whole.
func (p *page) meta() []byte {
	m := jsonwire.Begin(nil)
	m.Text("title", p.sum.title)
	if h := p.s.Header().Raw; h != nil {
		m.Raw("header", h)
	}
	m.Text("leafId", p.s.LeafID())
	prompt, tools := p.o.SystemPrompt, p.o.Tools
	if prompt == "" || tools == nil {
		if system := p.system(); system != nil {
			if prompt == "" {
				prompt = session.Prompt(system)
			}
			if tools == nil {
				tools = system.ToolsAdded
			}
		}
	}
	m.OptText("systemPrompt", prompt)
	m.Key("tools")
	m.B = llm.AppendTools(m.B, tools)
	m.Key("chunks")
	m.B = jsonwire.AppendArray(m.B, p.starts, func(start int, b []byte) []byte { return fmt.Append(b, start) })
	return m.End()
}

// system is the system prompt at the leaf, nil for none.
func (p *page) system() *llm.System {
	var list []*session.Entry
	for _, e := range p.path {
		if e.Role() == llm.RoleSystem {
			list = append(list, e)
		}
	}
	return session.FoldSystem(session.ContextOf(list).Messages)
}

// transcript writes what was said on the branch of the leaf, for readers whose
// browser runs no script.
func (p *page) transcript() {
	const limit = 128 << 10 // bytes of text
	left := limit
	for _, e := range p.path {
		role := e.Role()
		if role != llm.RoleUser && role != llm.RoleAssistant {
			continue
		}
		text := p.row(e).said(left)
		if text == "" {
			continue
		}
		p.w.WriteString("<h2>")
		p.text(string(role))
		p.w.WriteString("</h2><pre>")
		p.text(text)
		p.w.WriteString("</pre>\n")
		if left -= len(text); left <= 0 {
			p.w.WriteString("<p>The rest is shown by a browser that runs the page's script.</p>\n")
			return
		}
	}
}

const maxFact = 500 // bytes

// facts writes the lines under the title.
func (p *page) facts() {
	fact := func(class, name, text string) {
		if text == "" {
			return
		}
		fmt.Fprintf(p.w, "<div class=%q><dt>%s</dt><dd>", class, name)
		p.text(string(cut([]byte(text), maxFact)))
		p.w.WriteString("</dd></div>\n")
	}
	sum := p.sum
	fact("models", "Model", strings.Join(sum.models, ", "))
	if !sum.begin.IsZero() {
		fmt.Fprintf(p.w, "<div><dt>Begun</dt><dd><time datetime=%q>%s UTC</time></dd></div>\n",
			sum.begin.UTC().Format(time.RFC3339), sum.begin.UTC().Format("2006-01-02 15:04"))
	}
	fact("folder", "Folder", p.s.CWD())
	fact("", "Messages", fmt.Sprintf("%d prompts, %d answers, %d tool calls", sum.stats.UserMessages, sum.stats.AssistantMessages, sum.stats.ToolCalls))
	u := sum.stats.Usage
	if in := u.Input + u.CacheRead + u.CacheWrite; in+u.Output > 0 {
		fact("", "Tokens", fmt.Sprintf("%s in, %s cached, %s out", short(in), short(u.CacheRead), short(u.Output)))
	}
	if u.Cost.Total > 0 {
		fact("", "Cost", fmt.Sprintf("$%.2f", u.Cost.Total))
	}
}

// short is a number of tokens as people say it.
func short(n int64) string {
	switch {
	case n >= 1_000_000:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	case n >= 10_000:
		return fmt.Sprintf("%dk", n/1000)
	case n >= 1000:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	}
	return fmt.Sprint(n)
}

// summary is what the head of the page says.
type summary struct {
	title  string
	models []string // that answered, in the order in which they first did
	begin  time.Time
	stats  session.Stats
}

func summarize(p *page) summary {
	sum := summary{title: preview([]byte(p.s.Name())), stats: p.s.Stats()}
	sum.begin, _ = time.Parse(time.RFC3339, p.s.Header().Timestamp)
	for _, e := range p.entries {
		switch e.Role() {
		case llm.RoleUser:
			if sum.title == "" {
				sum.title = p.row(e).text
			}
		case llm.RoleAssistant:
			if r := p.row(e); r.model != "" && !slices.Contains(sum.models, r.model) {
				sum.models = append(sum.models, r.model)
			}
		}
	}
	if sum.title == "" {
		sum.title = preview([]byte("Session " + p.s.ID()))
	}
	return sum
}
