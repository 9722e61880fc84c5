package session

import (
	"iter"
	"slices"
	"sync"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
)

// ModelRef names a model of a provider.
type ModelRef struct {
	Provider string
	ID       string
}

// Context is what a session shows a model, and how it asks it.
type Context struct {
	// Messages is the projection of the active branch. A message keeps its
	// pointer from call to call. The slice may be appended to, its elements
	// must not be replaced.
	Messages []agent.Message
	// Model is the model of the last model change or answer on the branch, nil
	// for none; Chosen is that of the last model change alone, which holds
	// when it names a virtual model.
	Model  *ModelRef
	Chosen *ModelRef
	// ThinkingLevel is the last one on the branch, "off" without any.
	ThinkingLevel llm.ThinkingLevel
	// LevelRecorded says that the branch has a thinking level of its own.
	LevelRecorded bool
	// Revision tells contexts of one session apart: with the same revision the
	// longer list of messages begins with the shorter one. Branching, edits and
	// compactions change it, other appends do not.
	Revision uint64
}

// view is the context at a leaf, kept so that an append adds only what is new.
type view struct {
	valid bool
	leaf  *Entry
	Context
}

// Context is the context at the leaf. After an append it costs what is new.
func (s *Session) Context() Context {
	s.mu.RLock()
	if s.view.valid && s.view.leaf == s.leaf {
		c := s.view.Context
		s.mu.RUnlock()
		c.Messages = slices.Clip(c.Messages)
		return c
	}
	s.mu.RUnlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.context()
}

func (s *Session) context() Context {
	if !s.view.valid || s.view.leaf != s.leaf {
		revision := s.view.Revision + 1
		s.view = view{valid: true, leaf: s.leaf, Context: s.project()}
		s.view.Revision = revision
	}
	c := s.view.Context
	c.Messages = slices.Clip(c.Messages)
	return c
}

// project is the context at the leaf, of entries that were read.
func (s *Session) project() Context {
	for {
		s.settleDoubt()
		path := s.path(s.leaf)
		k := LatestCompaction(path)
		if k >= 0 && !s.exact && firstKept(path, k) == k && path[k].Data().(*CompactionEntry).FirstKept != path[k].ID {
			// What it keeps may be missed because of a line that was not read.
			s.readWhole()
			path = s.path(s.leaf)
		}
		c := ContextOf(path)
		if !s.log.doubt.Load() || s.log.failed() != nil {
			return c
		}
	}
}

// extend brings the view from the old leaf to the entry just added below it,
// where that is a matter of adding messages.
func (v *view) extend(parent, e *Entry) {
	if !v.valid || v.leaf != parent || e.Type == TypeCompaction || e.Type == TypeContextEdit {
		v.valid = false
		return
	}
	v.leaf = e
	v.Messages = e.load().appendContext(v.Messages)
	v.settle(e)
}

// settle takes over the settings of an entry behind all others. It reports
// which of model, model change and level the entry set.
func (c *Context) settle(e *Entry) (model, chosen, level bool) {
	switch {
	case e.Type == TypeModelChange:
		d := e.Data().(*ModelChangeEntry)
		c.Model = &ModelRef{Provider: d.Provider, ID: d.ModelID}
		c.Chosen = c.Model
		return true, true, false
	case e.role == llm.RoleAssistant:
		if m, ok := e.Message().(*llm.Assistant); ok {
			c.Model = &ModelRef{Provider: m.Provider, ID: m.Model}
			return true, false, false
		}
	case e.Type == TypeThinkingLevel:
		c.ThinkingLevel = e.Data().(*ThinkingLevelEntry).Level
		c.LevelRecorded = true
		return false, false, true
	}
	return false, false, false
}

// ContextOf is the context at the end of a path from a root.
func ContextOf(path []*Entry) Context {
	c := Context{ThinkingLevel: llm.LevelOff}
	selected := Select(path)
	loadAll(selected)
	edits := editsIn(selected)
	// Room for some turns more, as a session that is read goes on.
	c.Messages = make([]agent.Message, 0, len(selected)+len(selected)/16+64)
	for i, e := range selected {
		c.Messages = e.project(c.Messages, i, edits)
	}
	// Settings come from the whole path. Read from its end only what decides.
	var model, chosen, level bool
	for _, e := range slices.Backward(path) {
		if model && chosen && level {
			break
		}
		if e.Type == TypeMessage && model || e.Type == TypeModelChange && chosen || e.Type == TypeThinkingLevel && level {
			continue
		}
		var at Context
		m, ch, l := at.settle(e)
		if m && !model {
			c.Model, model = at.Model, true
		}
		if ch && !chosen {
			c.Chosen, chosen = at.Chosen, true
		}
		if l && !level {
			c.ThinkingLevel, c.LevelRecorded, level = at.ThinkingLevel, true, true
		}
	}
	return c
}

// Path lists the entries from the root to the leaf.
//
// It reads none of them: one in front of the context that is damaged is found when
// it is decoded, and ends the path from then on. It costs what was added since the
// last call, while the leaf goes on from where it was. The list must not be changed; it may be appended to.
func (s *Session) Path() []*Entry {
	s.rlock()
	defer s.mu.RUnlock()
	return s.trail.to(s)
}

// trail is the path that was asked for last.
type trail struct {
	mu   sync.Mutex
	list []*Entry
}

// to is the path to the leaf of s, whose lock is held. Lists that were given out
// see nothing of what is appended behind their end.
func (t *trail) to(s *Session) []*Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.list)
	known := false
	var added []*Entry
	if n > 0 && s.leaf != nil {
		last := t.list[n-1]
		for e := range s.up(s.leaf) {
			if known = e == last; known || len(added) == maxAdded {
				break
			}
			added = append(added, e)
		}
	}
	if known {
		slices.Reverse(added)
		t.list = append(t.list, added...)
	} else {
		t.list = s.path(s.leaf)
	}
	return t.list[:len(t.list):len(t.list)]
}

// maxAdded bounds the search for the last path: a leaf that moved elsewhere is
// not behind it.
const maxAdded = 1000

// PathTo lists the entries from the root to an entry; an unknown id gives the
// path to the last entry of the log.
func (s *Session) PathTo(id string) []*Entry {
	s.Entry(id) // is read
	s.rlock()
	defer s.mu.RUnlock()
	e := s.find(id)
	for i := len(s.order) - 1; e == nil && i >= 0; i-- {
		if s.order[i].ID != "" {
			e = s.order[i]
		}
	}
	return s.path(e)
}

func (s *Session) path(leaf *Entry) []*Entry {
	if leaf == nil {
		return nil
	}
	path := make([]*Entry, 0, leaf.index+1)
	for e := range s.up(leaf) {
		path = append(path, e)
	}
	slices.Reverse(path)
	return path
}

// up walks from an entry to its root. A parent that is missing, or that was
// walked through already, ends the walk.
func (s *Session) up(from *Entry) iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		var seen map[*Entry]bool
		for e := from; e != nil; {
			if seen != nil {
				if seen[e] {
					return
				}
				seen[e] = true
			}
			if !yield(e) {
				return
			}
			if e.ParentID == "" {
				return
			}
			parent := s.parent(e)
			// Parents stand before their children, except in damaged files: only
			// there the walk can come round.
			if seen == nil && parent != nil && parent.index >= e.index {
				seen = map[*Entry]bool{}
				for a := from; a != e; a = s.find(a.ParentID) {
					seen[a] = true
				}
				seen[e] = true
			}
			e = parent
		}
	}
}

// parent is the entry that an entry hangs below, nil when it is not there.
func (s *Session) parent(e *Entry) *Entry {
	// Nearly always it is the entry before, and a look at that is cheaper.
	if e.index > 0 && s.ids.entries == s.ids.distinct {
		if before := s.order[e.index-1]; before.ID == e.ParentID && before.ID != "" {
			return before
		}
	}
	return s.find(e.ParentID)
}

// Projected is an entry and the messages that it puts into the context.
type Projected struct {
	Entry    *Entry
	Messages []agent.Message
}

// Select picks what a compaction left of a path: the last compaction, the
// entries before it that it kept, without their system messages, and all
// entries after it. A path without compaction is kept whole.
func Select(path []*Entry) []*Entry {
	k := LatestCompaction(path)
	if k < 0 {
		return path
	}
	first := firstKept(path, k)
	out := make([]*Entry, 0, 1+len(path)-first)
	out = append(out, path[k])
	for _, e := range path[first:k] {
		if e.role != llm.RoleSystem {
			out = append(out, e)
		}
	}
	return append(out, path[k+1:]...)
}

// firstKept is the place from which the compaction at k keeps, k when it keeps
// nothing.
func firstKept(path []*Entry, k int) int {
	kept := path[k].Data().(*CompactionEntry).FirstKept
	for i, e := range slices.Backward(path[:k]) {
		if e.ID == kept && kept != "" {
			return i
		}
	}
	return k
}

// LatestCompaction is the place of the last compaction in entries, -1 for none.
func LatestCompaction(entries []*Entry) int {
	for i, e := range slices.Backward(entries) {
		if e.Type == TypeCompaction {
			return i
		}
	}
	return -1
}

// Project turns a path into what its entries put into the context, in order,
// compaction and edits applied. Entries without messages are in the list too.
func Project(path []*Entry) []Projected { return ProjectSelected(Select(path)) }

// ProjectSelected is Project for entries that are selected already. A
// compaction counts only at the head; edits apply to what they stand with.
func ProjectSelected(selected []*Entry) []Projected {
	loadAll(selected)
	edits := editsIn(selected)
	out := make([]Projected, len(selected))
	for i, e := range selected {
		out[i] = Projected{e, e.project(nil, i, edits)}
	}
	return out
}

// editsIn finds the latest edit of each target.
func editsIn(selected []*Entry) (edits map[string]*Entry) {
	for _, e := range selected {
		if e.Type == TypeContextEdit {
			if edits == nil {
				edits = map[string]*Entry{}
			}
			edits[e.Data().(*ContextEditEntry).TargetID] = e
		}
	}
	return edits
}

// project appends what the entry, the i-th of a selection, puts into the
// context.
func (e *Entry) project(list []agent.Message, i int, edits map[string]*Entry) []agent.Message {
	if e.Type == TypeCompaction && i > 0 {
		return list
	}
	n := len(list)
	list = e.load().appendContext(list)
	if edit := edits[e.ID]; edit != nil && len(list) > n {
		list = append(list[:n], edit.applyTo(e)...)
	}
	return list
}

// applyTo is what a context edit leaves of its target.
func (e *Entry) applyTo(target *Entry) []agent.Message {
	content := e.Data().(*ContextEditEntry).Replacement
	if content == nil {
		return nil
	}
	d := e.load()
	if ed := d.edited.Load(); ed != nil && ed.target == target {
		return []agent.Message{ed.message}
	}
	old := target.load().appendContext(nil)
	m := replaced(old[0], *content)
	if m == nil {
		return old
	}
	for {
		was := d.edited.Load()
		if was != nil && was.target == target {
			return []agent.Message{was.message}
		}
		if d.edited.CompareAndSwap(was, &edited{target: target, message: m}) {
			return []agent.Message{m}
		}
	}
}

// replaced is a copy of a message with other content, nil for messages whose
// content cannot be edited.
func replaced(m agent.Message, content llm.Content) agent.Message {
	blocks := content.Blocks
	if blocks == nil {
		blocks = []llm.Block{&llm.Text{Text: content.Text}}
	}
	switch m := m.(type) {
	case *llm.User:
		c := *m
		c.Content = content
		return &c
	case *llm.Assistant:
		c := *m
		c.Content = blocks
		return &c
	case *llm.ToolResult:
		c := *m
		c.Content = blocks
		return &c
	case *Custom:
		return &Custom{CustomType: m.CustomType, Content: content, Display: m.Display, Details: m.Details, Timestamp: m.Timestamp, Extra: m.Extra}
	}
	return nil
}
