package google

import (
	"strings"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/transcript"
)

// Texts that stand in for what the protocol has no room for.
const (
	textAttachedImage = "(see attached image)"
	textToolImages    = "Tool result image:"
)

// encoded is a message in wire form. It stays in its History's slot, so a
// conversation encodes each message once; what depends on a message's neighbours
// (the content that tool results share) is added when a body is put together.
type encoded struct {
	done   bool
	json   []byte // the content; of a tool result its part; empty for none
	images []byte // of a tool result: the content with its images, where it needs one
	blank  bool   // of a user's message: a text of it is blank
	head   *head  // in the slot of the transcript's head
}

// head is the wire form of the system prompt and the tools.
type head struct {
	prompt []byte // nil for none
	tools  []byte // nil for none
	strict bool   // a tool is enforced
	err    error  // why the tools cannot be sent
}

// historyKey tells apart what the encoding of a message depends on.
type historyKey struct {
	vertex          bool
	provider, model string
	images          bool
	cautious        bool
}

// encoder writes messages for one model.
type encoder struct {
	model    *llm.Model
	rules    Rules
	vertex   bool
	cautious bool // send nothing that some endpoints refuse
	dst      []byte
}

func (e *encoder) historyKey() historyKey {
	return historyKey{
		vertex: e.vertex, provider: e.model.Provider, model: e.model.ID, images: e.model.AcceptsImages(), cautious: e.cautious,
	}
}

// transcriptRules are what the format asks of a transcript.
func (e *encoder) transcriptRules() *transcript.Rules {
	r := &transcript.Rules{Model: e.model, NormalizeName: legalName}
	if e.rules.CallIDs {
		r.NormalizeID = func(id string, _ *llm.Assistant) string { return legalID(id) }
	}
	return r
}

// Bounds of the service, in characters.
const (
	maxID   = 64
	maxName = 128
)

// legalID makes a legal id of another model's.
func legalID(id string) string { return legal(id, maxID, "_-") }

// legalName makes a legal tool name of one that a model may have invented.
func legalName(name string) string {
	name = legal(name, maxName, "_-.:")
	if name == "" {
		return "unknown"
	}
	if c := name[0]; c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') {
		name = "_" + name[:min(len(name), maxName-1)]
	}
	return name
}

// legal is s with one underscore for each UTF-16 unit that is neither a letter
// nor a digit of ASCII nor one of extra, cut to limit characters. Most texts are
// legal and come back as they are.
func legal(s string, limit int, extra string) string {
	ok := func(r rune) bool {
		return r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r < 0x80 && strings.ContainsRune(extra, r)
	}
	if len(s) <= limit && strings.IndexFunc(s, func(r rune) bool { return !ok(r) }) < 0 {
		return s
	}
	out := make([]byte, 0, limit+1)
	for _, r := range s {
		switch {
		case ok(r):
			out = append(out, byte(r))
		case r > 0xFFFF:
			out = append(out, '_', '_')
		default:
			out = append(out, '_')
		}
		if len(out) >= limit {
			return string(out[:limit])
		}
	}
	return string(out)
}

// encode fills the slot of an item unless it is filled already.
func (e *encoder) encode(it *transcript.Item[encoded]) {
	w := &it.Wire
	if w.done {
		return
	}
	w.done = true
	e.dst = nil
	switch m := it.Message.(type) {
	case *llm.User:
		w.blank = e.user(m)
	case *llm.Assistant:
		e.assistant(m, it.SameModel)
	case *llm.ToolResult:
		w.images = e.toolResult(m)
	}
	w.json = e.dst
}

func (e *encoder) str(parts ...string) {
	for _, s := range parts {
		e.dst = append(e.dst, s...)
	}
}

func (e *encoder) quote(s string) { e.dst = jsonwire.AppendString(e.dst, s) }

// part sets the n-th part of a content off from the one before.
func (e *encoder) part(n *int) {
	if *n > 0 {
		e.dst = append(e.dst, ',')
	}
	*n++
}

func (e *encoder) text(n *int, text string) {
	e.part(n)
	e.str(`{"text":`)
	e.quote(text)
	e.str(`}`)
}

func (e *encoder) image(n *int, m *llm.Image) {
	e.part(n)
	e.str(`{"inlineData":{"mimeType":`)
	e.quote(m.MimeType)
	e.str(`,"data":`)
	e.quote(m.Data)
	e.str(`}}`)
}

const (
	contentStart = `{"parts":[`
	userEnd      = `],"role":"user"}`
	modelEnd     = `],"role":"model"}`
)

// user appends a user's message, or nothing when it has no blocks. It reports
// whether one of its texts is blank.
func (e *encoder) user(m *llm.User) (blank bool) {
	n := 0
	e.str(contentStart)
	say := func(text string) {
		if jsonwire.Blank(text) {
			if blank = true; e.cautious {
				return
			}
		}
		e.text(&n, text)
	}
	if m.Content.Blocks == nil {
		say(m.Content.Text)
	}
	for _, b := range m.Content.Blocks {
		switch b := b.(type) {
		case *llm.Text:
			say(b.Text)
		case *llm.Image:
			e.image(&n, b)
		}
	}
	if n == 0 {
		e.dst = nil
		return blank
	}
	e.str(userEnd)
	return blank
}

// assistant appends an answer, or nothing when it says nothing.
func (e *encoder) assistant(m *llm.Assistant, sameModel bool) {
	n := 0
	e.str(contentStart)
	for _, b := range m.Content {
		switch b := b.(type) {
		case *llm.Text:
			e.said(&n, b.Text, "", signature(b.Signature, sameModel))
		case *llm.Thinking:
			// Signed thinking keeps its halves of surrogate pairs, which no request can hold.
			e.said(&n, jsonwire.DropSurrogates(b.Thinking), `,"thought":true`, signature(b.Signature, sameModel))
		case *llm.ToolCall:
			e.call(&n, b, signature(b.ThoughtSignature, sameModel))
		}
	}
	if n == 0 {
		e.dst = nil
		return
	}
	e.str(modelEnd)
}

// said appends a text or a thought; a blank one only for its signature.
func (e *encoder) said(n *int, text, mark, signature string) {
	if signature == "" && jsonwire.Blank(text) {
		return
	}
	e.part(n)
	e.str(`{"text":`)
	e.quote(text)
	e.str(mark)
	e.sign(signature)
	e.str(`}`)
}

func (e *encoder) sign(signature string) {
	if signature != "" {
		e.str(`,"thoughtSignature":`)
		e.quote(signature)
	}
}

// call appends a tool call. The two services' libraries differ in the order of
// members, and caches of prompts may depend on it.
func (e *encoder) call(n *int, c *llm.ToolCall, signature string) {
	args := func() {
		e.str(`"args":`)
		out, err := jsonwire.AppendCompact(e.dst, c.Current())
		if err != nil {
			out = append(out, "{}"...)
		}
		e.dst = out
	}
	e.part(n)
	e.str(`{"functionCall":{`)
	if e.vertex {
		e.str(`"name":`)
		e.quote(c.Name)
		e.str(`,`)
		args()
		if e.rules.CallIDs {
			e.str(`,"id":`)
			e.quote(c.ID)
		}
	} else {
		args()
		if e.rules.CallIDs {
			e.str(`,"id":`)
			e.quote(c.ID)
		}
		e.str(`,"name":`)
		e.quote(c.Name)
	}
	e.str(`}`)
	e.sign(signature)
	e.str(`}`)
}

// toolResult appends the part of a tool result and returns the content with its
// images, which older models take behind it.
func (e *encoder) toolResult(m *llm.ToolResult) (images []byte) {
	n := 0
	rest := e.dst
	e.dst = nil
	if !e.rules.ResultImages {
		e.str(contentStart)
		e.text(&n, textToolImages)
		n = 0
		e.str(`,`)
	}
	for _, b := range m.Content {
		if image, ok := b.(*llm.Image); ok {
			e.image(&n, image)
		}
	}
	parts := e.dst
	e.dst = rest

	text := llm.TextOf(m.Content, "\n")
	if jsonwire.Blank(text) {
		text = ""
		if n > 0 {
			text = textAttachedImage
		}
	}
	kind := "output"
	if m.IsError {
		kind = "error"
	}
	e.str(`{"functionResponse":{`)
	if e.rules.CallIDs && e.vertex {
		e.str(`"id":`)
		e.quote(m.ToolCallID)
		e.str(`,`)
	}
	e.str(`"name":`)
	e.quote(m.ToolName) // the transcript made it that of the call, by which the service matches
	e.str(`,"response":{"`, kind, `":`)
	e.quote(text)
	e.str(`}`)
	if e.rules.ResultImages && n > 0 {
		e.str(`,"parts":[`)
		e.dst = append(e.dst, parts...)
		e.str(`]`)
	}
	if e.rules.CallIDs && !e.vertex {
		e.str(`,"id":`)
		e.quote(m.ToolCallID)
	}
	e.str(`}}`)
	if e.rules.ResultImages || n == 0 {
		return nil
	}
	return append(parts, userEnd...)
}

// contents appends all messages of a transcript. It reports whether there is
// something in them that some endpoints refuse, and that a cautious encoder leaves
// out: a blank text of a user, or images between the results of one answer's
// calls, which it puts behind the last one.
func (e *encoder) contents(dst []byte, t *transcript.Transcript[encoded]) (out []byte, risky bool) {
	dst = append(dst, '[')
	start := len(dst)
	results := false    // the content written last is one of tool results, still open
	var images [][]byte // that wait for the end of a run of results
	shown := false      // images of the run at hand were written
	next := func() {
		if results {
			dst = append(dst, userEnd...)
			results = false
		}
		if len(dst) > start {
			dst = append(dst, ',')
		}
	}
	flush := func() {
		for _, content := range images {
			next()
			dst = append(dst, content...)
		}
		images, shown = images[:0], false
	}
	for i := range t.Items {
		it := &t.Items[i]
		e.encode(it)
		w := &it.Wire
		risky = risky || w.blank
		if len(w.json) == 0 {
			continue
		}
		if _, ok := it.Message.(*llm.ToolResult); !ok {
			flush()
			next()
			dst = append(dst, w.json...)
			continue
		}
		if results {
			dst = append(dst, ',')
		} else {
			risky = risky || shown
			next()
			dst = append(dst, contentStart...)
			results = true
		}
		dst = append(dst, w.json...)
		switch {
		case len(w.images) == 0:
		case e.cautious:
			images = append(images, w.images)
		default:
			next()
			dst = append(dst, w.images...)
			shown = true
		}
	}
	flush()
	if results {
		dst = append(dst, userEnd...)
	}
	return append(dst, ']'), risky
}

// signature is a signature that the service takes back, "" for none: it is the
// same model's and base64.
func signature(s *string, sameModel bool) string {
	if s == nil || !sameModel || !isBase64(*s) {
		return ""
	}
	return *s
}

// isBase64 reports whether s is base64 with its padding.
func isBase64(s string) bool {
	if s == "" || len(s)%4 != 0 {
		return false
	}
	for _, c := range []byte(strings.TrimSuffix(strings.TrimSuffix(s, "="), "=")) {
		switch {
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '+', c == '/':
		default:
			return false
		}
	}
	return true
}
