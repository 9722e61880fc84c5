package transcript

import (
	"math"
	"slices"
	"sync"

	"github.com/pinch-agent/pinch/llm"
)

// History is the memory of one conversation for one target: what the last
// request's messages were and what became of them. It is safe for concurrent
// use; the zero value is ready.
type History[T any] struct {
	mu sync.Mutex // held while a transcript is out

	sources []source
	items   []Item[T]
	calls   []call

	latest map[string]int // id as given → its last call in calls, or shadowed
	used   map[string]int // ids of calls as sent

	open  int           // calls[open:] are those of the last answer, less some in front that have their results
	left  int           // how many of them have no result yet
	held  []*llm.System // waiting until those calls have their results
	fixed int           // items[fixed:] close the last transcript and are made anew

	systems []llm.Message // all system messages, in order
	changed bool          // systems differs from what system, tools and head were made of
	placed  bool          // a system message was put since ToolsFolded was set
	folded  int           // how many of systems are folded into tools
	system  *llm.System
	tools   []llm.Tool
	head    T

	scratch []byte
}

// source is one given message.
type source struct {
	msg     llm.Message
	maxTime int64 // latest timestamp up to here
	cut     int32 // how many items stood before it; -1 when a rebuild cannot start here
	usage   int32 // position of the last answer up to here whose usage an estimate takes, -1 for none
	tokens  int32 // EstimateMessage, -1 when not computed yet
}

// call is one tool call that is sent.
type call struct {
	id     string // as given
	tool   string // as given
	sent   string // id as sent
	name   string // tool as sent
	source int
	time   int64
	item   int  // position of its result, -1 while it has none
	made   bool // the result is made up
}

// shadowed in History.latest marks an id whose last call was in an answer that
// is left out: its results are no one else's.
const shadowed = -1

// HistoryOf is the History kept in memo for key, or a new one when memo is nil.
// The key must be comparable and tell apart everything that Rules and the
// encoding in the Wire slots depend on: the wire format, the model and its
// flags. A key type of the format's own package keeps formats apart.
func HistoryOf[T any](memo *llm.Memo, key any) *History[T] {
	return memo.Load(key, func() any { return new(History[T]) }).(*History[T])
}

// Build makes the transcript of messages. The first part that they share with
// those of the last Build is taken over, with all that the format kept in the
// Wire slots. Messages are compared by pointer first, then by content, so a
// message may be made anew with the same content, but must not be changed.
func (h *History[T]) Build(messages []llm.Message, rules *Rules) *Transcript[T] {
	if !h.mu.TryLock() {
		h = new(History[T])
		h.mu.Lock()
	}
	h.rewind(h.common(messages), rules)
	images := rules.Model.AcceptsImages()
	h.grow(messages[len(h.sources):])
	for _, m := range messages[len(h.sources):] {
		h.add(m, rules, images)
	}
	h.finish()
	if h.changed {
		h.foldSystems(rules)
	}
	if h.placed {
		h.markFolded()
	}
	return &Transcript[T]{
		System: h.system, Tools: h.tools, Items: h.items, Head: &h.head,
		Estimate: h.estimate(), history: h,
	}
}

// grow makes room for messages at once: those of a session that was just opened
// are many.
func (h *History[T]) grow(more []llm.Message) {
	const many = 256
	if len(more) < many {
		return
	}
	calls := 0
	for _, m := range more {
		if a, ok := m.(*llm.Assistant); ok {
			for _, b := range a.Content {
				if _, ok := b.(*llm.ToolCall); ok {
					calls++
				}
			}
		}
	}
	h.sources = slices.Grow(h.sources, len(more)+many)
	h.items = slices.Grow(h.items, len(more)+many)
	h.calls = slices.Grow(h.calls, calls+many)
	if h.latest == nil {
		h.latest, h.used = make(map[string]int, calls), make(map[string]int, calls)
	}
}

// Build makes the transcript of messages without memory, as plain messages: the
// leading system message, if there is one, and all others.
func Build(messages []llm.Message, rules *Rules) []llm.Message {
	var h History[struct{}]
	t := h.Build(messages, rules)
	out := make([]llm.Message, 0, len(t.Items)+1)
	if t.System != nil {
		out = append(out, t.System)
	}
	for i := range t.Items {
		out = append(out, t.Items[i].Message)
	}
	return out
}

// common is how many messages are those of the last Build.
func (h *History[T]) common(messages []llm.Message) int {
	n := min(len(messages), len(h.sources))
	for i := range n {
		if s := &h.sources[i]; s.msg != messages[i] {
			if !equal(s.msg, messages[i]) {
				return i
			}
			s.msg = messages[i]
		}
	}
	return n
}

// rewind goes back to the state in front of source n, or in front of the last
// one before it where a rebuild can start.
func (h *History[T]) rewind(n int, rules *Rules) {
	h.truncate(h.fixed)
	if n == len(h.sources) {
		return
	}
	for h.sources[n].cut < 0 {
		n--
	}
	h.truncate(int(h.sources[n].cut))
	clear(h.sources[n:])
	h.sources = h.sources[:n]
	h.left, h.held = 0, h.held[:0]

	systems := 0
	calls := 0
	clear(h.latest)
	clear(h.used)
	for i := range h.sources {
		switch m := h.sources[i].msg.(type) {
		case *llm.System:
			systems++
		case *llm.Assistant:
			if failed(m) {
				h.shadow(m)
				continue
			}
			for calls < len(h.calls) && h.calls[calls].source == i {
				h.latest[h.calls[calls].id] = calls
				h.use(h.calls[calls].sent, i, rules)
				calls++
			}
		}
	}
	clear(h.calls[calls:])
	h.calls = h.calls[:calls]
	h.open = calls
	if systems != len(h.systems) {
		clear(h.systems[systems:])
		h.systems = h.systems[:systems]
		h.changed = true
	}
}

func (h *History[T]) truncate(n int) {
	clear(h.items[n:])
	h.items = h.items[:n]
}

func (h *History[T]) add(m llm.Message, rules *Rules, images bool) {
	s := source{msg: m, cut: -1, maxTime: m.Time(), usage: -1, tokens: -1}
	n := len(h.sources)
	if n > 0 {
		last := &h.sources[n-1]
		s.maxTime, s.usage = max(s.maxTime, last.maxTime), last.usage
	}
	if _, ok := usageOf(m); ok && m.Time() == s.maxTime {
		s.usage = int32(n)
	}
	if h.left == 0 {
		s.cut = int32(len(h.items))
	}
	h.sources = append(h.sources, s)

	switch m := m.(type) {
	case *llm.System:
		h.systems = append(h.systems, m)
		h.changed = true
		switch {
		case n == 0 || !rules.SystemInPlace:
		case h.left > 0:
			h.held = append(h.held, m)
		default:
			h.put(m)
		}
	case *llm.User:
		h.close()
		h.put(cleanUser(m, images))
	case *llm.Assistant:
		h.close()
		if failed(m) {
			h.shadow(m)
			return
		}
		h.answer(m, rules, n)
	case *llm.ToolResult:
		h.result(m, rules, images, n)
	}
}

func failed(m *llm.Assistant) bool {
	return m.StopReason == llm.StopError || m.StopReason == llm.StopAborted
}

// shadow keeps results of calls that are left out from finding another call.
func (h *History[T]) shadow(m *llm.Assistant) {
	for _, b := range m.Content {
		if c, ok := b.(*llm.ToolCall); ok {
			h.remember(c.ID, shadowed)
		}
	}
}

func (h *History[T]) remember(id string, call int) {
	if h.latest == nil {
		h.latest, h.used = map[string]int{}, map[string]int{}
	}
	h.latest[id] = call
}

func (h *History[T]) put(m llm.Message) {
	h.items = append(h.items, Item[T]{Message: m})
	if m.Role() == llm.RoleSystem {
		h.placed = true
	}
}

// answer adds an assistant message and opens its calls.
func (h *History[T]) answer(m *llm.Assistant, rules *Rules, source int) {
	h.open = len(h.calls)
	same := sameModel(m, rules.Model)
	content := cleanAnswer(m, same)
	for i, b := range content {
		c, ok := b.(*llm.ToolCall)
		if !ok {
			continue
		}
		sent, name := h.sentID(c, m, rules, same, source), c.Name
		if rules.NormalizeName != nil {
			name = rules.NormalizeName(name)
		}
		if name == "" {
			name = namelessTool
		}
		h.remember(c.ID, len(h.calls))
		h.use(sent, source, rules)
		h.calls = append(h.calls, call{id: c.ID, tool: c.Name, sent: sent, name: name, source: source, time: m.Timestamp, item: -1})
		if sent != c.ID || name != c.Name || !same && c.ThoughtSignature != nil {
			content = own(content, m.Content)
			n := *c
			n.ID, n.Name = sent, name
			if !same {
				n.ThoughtSignature = nil
			}
			content[i] = &n
		}
	}
	h.left = len(h.calls) - h.open
	if !aliases(content, m.Content) {
		n := *m
		n.Content = content
		m = &n
	}
	h.put(m)
	h.items[len(h.items)-1].SameModel = same
}

// use notes that a call of the message at source has an id.
func (h *History[T]) use(id string, source int, rules *Rules) {
	h.used[rules.key(id)] = source
	if rules.CallKey != nil {
		h.used[id] = source
	}
}

// taken reports whether a call of the message at source cannot have an id.
func (h *History[T]) taken(id string, source int, rules *Rules) bool {
	key := rules.key(id)
	at, used := h.used[key]
	if used && at == source && key != id {
		_, used = h.used[id]
	}
	return used
}

// sentID is the id under which a call is sent: legal, and of no earlier call.
func (h *History[T]) sentID(c *llm.ToolCall, m *llm.Assistant, rules *Rules, same bool, source int) string {
	id := c.ID
	if rules.NormalizeID != nil && (!same || id != "" && rules.LegalID != nil && !rules.LegalID(id)) {
		id = rules.NormalizeID(id, m)
	}
	if rules.key(id) != "" && !h.taken(id, source, rules) {
		return id
	}
	variant := rules.VariantID
	if variant == nil {
		variant = variantID
	}
	for n := 2; ; n++ {
		v := variant(id, n)
		if !h.taken(v, source, rules) {
			return v
		}
	}
}

// result puts a result behind its call, or in the place of one that was made
// up, or nowhere.
func (h *History[T]) result(m *llm.ToolResult, rules *Rules, images bool, source int) {
	c := h.callOf(m)
	if c == nil {
		return
	}
	r := cleanResult(m, images)
	// Some services find the call by the name of the tool.
	name := c.name
	if r.ToolCallID != c.sent || r.ToolName != name {
		if r == m {
			n := *m
			r = &n
		}
		r.ToolCallID, r.ToolName = c.sent, name
	}
	if c.item < 0 {
		c.item = len(h.items)
		h.put(r)
		for h.open < len(h.calls) && h.calls[h.open].item >= 0 { // none is looked at again that waits no more
			h.open++
		}
		if h.left--; h.left == 0 {
			h.release()
		}
		return
	}
	c.made = false
	h.items[c.item] = Item[T]{Message: r}
	// What stands between the call and this message now depends on it.
	for i := source; i >= 0 && (h.sources[i].cut < 0 || int(h.sources[i].cut) > c.item); i-- {
		h.sources[i].cut = -1
	}
}

// callOf finds the call that a result answers: one that waits for it, or one
// for which a result was made up.
func (h *History[T]) callOf(m *llm.ToolResult) *call {
	var found *call
	match := func(calls []call, free func(*call) bool) *call {
		for i := range calls {
			c := &calls[i]
			if c.id != m.ToolCallID || !free(c) {
				continue
			}
			if c.tool == m.ToolName {
				return c
			}
			if found == nil {
				found = c
			}
		}
		return found
	}
	if c := match(h.calls[h.open:], func(c *call) bool { return c.item < 0 }); c != nil {
		return c
	}
	last, ok := h.latest[m.ToolCallID]
	if !ok || last == shadowed {
		return nil
	}
	first := last
	for first > 0 && h.calls[first-1].source == h.calls[last].source {
		first--
	}
	return match(h.calls[first:last+1], func(c *call) bool { return c.made })
}

// close gives every open call a result and lets the held messages go.
func (h *History[T]) close() {
	for i := h.open; h.left > 0 && i < len(h.calls); i++ {
		if c := &h.calls[i]; c.item < 0 {
			c.item, c.made = len(h.items), true
			h.put(madeUp(c))
			h.left--
		}
	}
	h.release()
}

func (h *History[T]) release() {
	for _, m := range h.held {
		h.put(m)
	}
	h.held = h.held[:0]
}

// finish closes the calls that are open at the end for this transcript only:
// their results may be among the next messages.
func (h *History[T]) finish() {
	h.fixed = len(h.items)
	if h.left == 0 {
		return
	}
	for i := h.open; i < len(h.calls); i++ {
		if c := &h.calls[i]; c.item < 0 {
			h.put(madeUp(c))
		}
	}
	for _, m := range h.held {
		h.put(m)
	}
}

func madeUp(c *call) *llm.ToolResult {
	return &llm.ToolResult{
		ToolCallID: c.sent, ToolName: c.name,
		Content: []llm.Block{&llm.Text{Text: "No result provided"}},
		IsError: true, Timestamp: c.time,
	}
}

// foldSystems makes what depends on all system messages.
func (h *History[T]) foldSystems(rules *Rules) {
	h.changed = false
	var zero T
	var system *llm.System
	folded := len(h.systems)
	if rules.SystemInPlace {
		if len(h.sources) > 0 {
			system, _ = h.sources[0].msg.(*llm.System)
		}
		// SplitTools asks whether the history begins with a system message.
		all := h.systems
		if system == nil {
			all = append([]llm.Message{nil}, all...)
		}
		h.tools, folded = SplitTools(all, rules.Tools)
	} else {
		h.tools = CurrentTools(h.systems)
		system = collapse(h.systems, h.tools)
	}
	h.system, h.head, h.folded, h.placed = system, zero, folded, true
}

// markFolded tells the system messages in place whether their changes of the
// tool list are in the request's.
func (h *History[T]) markFolded() {
	h.placed = false
	var zero T
	n := 0
	if h.system != nil {
		n = 1
	}
	for i := range h.items {
		it := &h.items[i]
		if it.Message.Role() != llm.RoleSystem {
			continue
		}
		if f := n < h.folded; f != it.ToolsFolded {
			it.ToolsFolded, it.Wire = f, zero
		}
		n++
	}
}

// estimate is Estimate of the sources, from what is known about them already.
func (h *History[T]) estimate() ContextEstimate {
	e := ContextEstimate{UsageIndex: -1}
	if n := len(h.sources); n > 0 {
		e.UsageIndex = int(h.sources[n-1].usage)
	}
	if e.UsageIndex >= 0 {
		e.Usage, _ = usageOf(h.sources[e.UsageIndex].msg)
	}
	for i := e.UsageIndex + 1; i < len(h.sources); i++ {
		s := &h.sources[i]
		if s.tokens < 0 {
			var tokens int
			tokens, h.scratch = estimateMessage(s.msg, h.scratch)
			s.tokens = int32(min(tokens, math.MaxInt32))
		}
		e.Trailing += int(s.tokens)
	}
	e.Tokens = e.Usage + e.Trailing
	return e
}
