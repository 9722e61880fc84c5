package session

import (
	"iter"
	"slices"

	"github.com/pinch-agent/pinch/llm"
)

// Node is an entry and what follows it on its branches.
type Node struct {
	Entry          *Entry
	Children       []*Node
	Label          string // "" for none
	LabelTimestamp string // of the entry that set the label
}

// Children lists the entries directly below an entry in the order of the log.
func (s *Session) Children(id string) []*Entry {
	s.rlockWhole()
	defer s.mu.RUnlock()
	var out []*Entry
	for e := range s.unique() {
		if e.ParentID == id && id != "" {
			out = append(out, e)
		}
	}
	return out
}

// unique walks through the entries of the tree: of entries with one id the last
// in the place of the first.
func (s *Session) unique() func(yield func(*Entry) bool) {
	return func(yield func(*Entry) bool) {
		var seen map[string]bool
		if s.ids.distinct != len(s.order) {
			seen = make(map[string]bool, s.ids.distinct)
		}
		for _, e := range s.order {
			if seen != nil {
				if e.ID == "" || seen[e.ID] {
					continue
				}
				seen[e.ID] = true
				e = s.find(e.ID)
			}
			if !yield(e) {
				return
			}
		}
	}
}

// Tree is the whole session as trees. Roots are the entries without a parent in
// the log, in its order; children are sorted by time. Of entries with one id the
// last stands under the parents of all, once under each; where that would make
// more of the log than twice its entries, in the place of the first alone. In
// damaged files, where parents go round in a circle, the first entry of the circle
// is a root.
func (s *Session) Tree() []*Node {
	s.rlockWhole()
	defer s.mu.RUnlock()
	if s.ids.distinct != len(s.order) {
		if roots := s.grow(slices.Values(s.order)); fits(roots, 2*len(s.order)) {
			return roots
		}
	}
	return s.grow(s.unique())
}

// fits reports whether there are at most so many nodes on all ways through trees.
func fits(roots []*Node, most int) bool {
	todo := slices.Clone(roots)
	for ; len(todo) > 0 && most >= len(todo); most-- {
		n := todo[len(todo)-1]
		todo = append(todo[:len(todo)-1], n.Children...)
	}
	return len(todo) == 0
}

// grow makes the trees of entries, each under its parent.
func (s *Session) grow(entries iter.Seq[*Entry]) []*Node {
	nodes := make(map[string]*Node, s.ids.distinct)
	for e := range s.unique() {
		n := &Node{Entry: e}
		if l, ok := s.labels[e.ID]; ok {
			n.Label, n.LabelTimestamp = l.text, l.entry.Timestamp()
		}
		nodes[e.ID] = n
	}
	var roots []*Node
	type edge struct{ parent, child *Node }
	placed := map[edge]bool{}
	for e := range entries {
		n, parent := nodes[e.ID], nodes[e.ParentID]
		if n == parent {
			parent = nil
		}
		if n == nil || placed[edge{parent, n}] { // no id, or there already
			continue
		}
		placed[edge{parent, n}] = true
		if parent == nil {
			roots = append(roots, n)
			continue
		}
		parent.Children = append(parent.Children, n)
	}
	for _, n := range nodes {
		if len(n.Children) > 1 {
			slices.SortStableFunc(n.Children, func(a, b *Node) int { return a.Entry.Time().Compare(b.Entry.Time()) })
		}
	}
	return s.uncircle(roots, nodes)
}

// uncircle takes out the edges that lead back to an ancestor, and makes roots
// of entries that no root leads to.
func (s *Session) uncircle(roots []*Node, nodes map[string]*Node) []*Node {
	const (
		above = 1 // between a root and the current node
		done  = 2
	)
	state := make(map[*Node]uint8, len(nodes))
	type step struct {
		node *Node
		next int // child to look at
	}
	walk := func(root *Node) {
		stack := []step{{node: root}}
		state[root] = above
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if top.next == len(top.node.Children) {
				state[top.node] = done
				stack = stack[:len(stack)-1]
				continue
			}
			child := top.node.Children[top.next]
			switch state[child] {
			case above:
				top.node.Children = slices.Delete(top.node.Children, top.next, top.next+1)
			case done:
				top.next++
			default:
				top.next++
				state[child] = above
				stack = append(stack, step{node: child})
			}
		}
	}
	for _, r := range roots {
		if state[r] == 0 {
			walk(r)
		}
	}
	for _, e := range s.order {
		if n := nodes[e.ID]; n != nil && state[n] == 0 {
			roots = append(roots, n)
			walk(n)
		}
	}
	return roots
}

// Target is where a navigation to an entry leads.
type Target struct {
	Leaf string // the new leaf, "" for the place before the first entry
	// Text goes back into the editor; Editable says that there is one, also an
	// empty one.
	Text     string
	Editable bool
}

// Target tells where going back to an entry leads: to the place before it for a
// message of the user or of an extension, which can then be said differently,
// to the entry itself for others.
func (s *Session) Target(id string) (Target, error) {
	e := s.Entry(id)
	if e == nil {
		return Target{}, &Error{Kind: NotFound, Op: "navigate", Path: id}
	}
	var content llm.Content
	switch d := e.Data().(type) {
	case *CustomMessageEntry:
		content = d.Content
	case *MessageEntry:
		u, ok := d.Message.(*llm.User)
		if !ok {
			return Target{Leaf: id}, nil
		}
		content = u.Content
	default:
		return Target{Leaf: id}, nil
	}
	return Target{Leaf: e.ParentID, Text: contentText(content, ""), Editable: true}, nil
}
