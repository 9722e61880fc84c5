package rpc

import (
	"fmt"
	"slices"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/internal/cli/export"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/resource"
	"github.com/pinch-agent/pinch/session"
)

func (s *server) state(c *command) {
	h := s.c.Harness
	sess := h.Session()
	phase := h.Phase()
	steering, followUp := h.QueueModes()
	queued := h.Queued()
	s.done(c, object(func(o *jsonwire.Object) {
		o.Key("model")
		o.B = append(o.B, s.model(h.Model())...)
		o.Text("thinkingLevel", string(h.ThinkingLevel()))
		o.Bool("isStreaming", phase == harness.PhaseTurn || phase == harness.PhaseRetry)
		o.Bool("isCompacting", phase == harness.PhaseCompaction)
		o.Text("steeringMode", string(steering))
		o.Text("followUpMode", string(followUp))
		o.OptText("sessionFile", sess.File())
		o.Text("sessionId", sess.ID())
		o.OptText("sessionName", sess.Name())
		o.Bool("autoCompactionEnabled", h.AutoCompaction())
		o.Int("messageCount", int64(len(h.Messages())))
		o.Int("pendingMessageCount", int64(len(queued.Steering)+len(queued.FollowUp)))
	}))
}

func (s *server) messages(c *command) {
	list := s.c.Harness.Messages()
	s.done(c, object(func(o *jsonwire.Object) {
		o.Key("messages")
		o.B = jsonwire.AppendArray(o.B, list, agent.Message.AppendJSON)
	}))
}

// lastAnswer is the text of the last answer that has any.
func (s *server) lastAnswer(c *command) {
	text := ""
	for _, m := range slices.Backward(s.c.Harness.Messages()) {
		a, ok := m.(*llm.Assistant)
		if !ok {
			continue
		}
		// An answer that ended as it should is the last one even without text.
		text = jsonwire.Trim(llm.TextOf(a.Content, ""))
		if text != "" || a.StopReason == llm.StopStop {
			break
		}
	}
	s.done(c, object(func(o *jsonwire.Object) { o.OptText("text", text) }))
}

func (s *server) stats(c *command) {
	h := s.c.Harness
	sess := h.Session()
	st := sess.Stats()
	u := st.Usage
	window := int64(h.Model().ContextWindow)
	tokens, known := h.ContextUsage()
	s.done(c, object(func(o *jsonwire.Object) {
		o.OptText("sessionFile", sess.File())
		o.Text("sessionId", sess.ID())
		o.Int("userMessages", int64(st.UserMessages))
		o.Int("assistantMessages", int64(st.AssistantMessages))
		o.Int("toolCalls", int64(st.ToolCalls))
		o.Int("toolResults", int64(st.ToolResults))
		o.Int("totalMessages", int64(st.Messages))
		o.Key("tokens")
		o.B = object(func(o *jsonwire.Object) {
			o.Int("input", u.Input)
			o.Int("output", u.Output)
			o.Int("cacheRead", u.CacheRead)
			o.Int("cacheWrite", u.CacheWrite)
			o.Int("total", u.Input+u.Output+u.CacheRead+u.CacheWrite)
		})(o.B)
		o.Float("cost", u.Cost.Total)
		if window <= 0 {
			return
		}
		o.Key("contextUsage")
		o.B = object(func(o *jsonwire.Object) {
			if known {
				o.Int("tokens", tokens)
			} else {
				o.Raw("tokens", []byte("null"))
			}
			o.Int("contextWindow", window)
			if known {
				o.Float("percent", float64(tokens)/float64(window)*100)
			} else {
				o.Raw("percent", []byte("null"))
			}
		})(o.B)
	}))
}

func (s *server) entries(c *command) {
	sess := s.c.Harness.Session()
	since, err := c.optional("since")
	list := sess.Entries()
	if v := c.get("since"); err != nil {
		err = fmt.Errorf("Entry not found: %s", v)
	} else if v != nil && string(v) != "null" {
		at := slices.IndexFunc(list, func(e *session.Entry) bool { return e.ID == since })
		if at < 0 {
			err = fmt.Errorf("Entry not found: %s", since)
		}
		list = list[at+1:]
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	s.done(c, object(func(o *jsonwire.Object) {
		o.Key("entries")
		o.B = jsonwire.AppendArray(o.B, list, func(e *session.Entry, dst []byte) []byte { return append(dst, e.Raw()...) })
		leaf(o, sess)
	}))
}

func leaf(o *jsonwire.Object, sess *session.Session) {
	if id := sess.LeafID(); id != "" {
		o.Text("leafId", id)
	} else {
		o.Raw("leafId", []byte("null"))
	}
}

func (s *server) tree(c *command) {
	sess := s.c.Harness.Session()
	roots := sess.Tree()
	s.done(c, object(func(o *jsonwire.Object) {
		o.Key("tree")
		o.B = jsonwire.AppendArray(o.B, roots, nodeJSON)
		leaf(o, sess)
	}))
}

func nodeJSON(n *session.Node, dst []byte) []byte {
	return object(func(o *jsonwire.Object) {
		o.Key("entry")
		o.B = append(o.B, n.Entry.Raw()...)
		o.Key("children")
		o.B = jsonwire.AppendArray(o.B, n.Children, nodeJSON)
		o.OptText("label", n.Label)
		o.OptText("labelTimestamp", n.LabelTimestamp)
	})(dst)
}

// forkMessages are the messages of the user, before which a fork may go on.
func (s *server) forkMessages(c *command) {
	sess := s.c.Harness.Session()
	type message struct{ id, text string }
	var list []message
	for _, e := range sess.Entries() {
		if e.Role() != llm.RoleUser {
			continue
		}
		if t, err := sess.Target(e.ID); err == nil && t.Text != "" {
			list = append(list, message{e.ID, t.Text})
		}
	}
	s.done(c, object(func(o *jsonwire.Object) {
		o.Key("messages")
		o.B = jsonwire.AppendArray(o.B, list, func(m message, dst []byte) []byte {
			return object(func(o *jsonwire.Object) {
				o.Text("entryId", m.id)
				o.Text("text", m.text)
			})(dst)
		})
	}))
}

func (s *server) listCommands(c *command) {
	type listed struct {
		name, description, source string
		info                      resource.Source
	}
	var list []listed
	for _, t := range s.c.Templates {
		list = append(list, listed{t.Name, t.Description, "prompt", t.Source})
	}
	for _, k := range s.c.Skills {
		list = append(list, listed{"skill:" + k.Name, k.Description, "skill", k.Source})
	}
	s.done(c, object(func(o *jsonwire.Object) {
		o.Key("commands")
		o.B = jsonwire.AppendArray(o.B, list, func(l listed, dst []byte) []byte {
			return object(func(o *jsonwire.Object) {
				o.Text("name", l.name)
				o.OptText("description", l.description)
				o.Text("source", l.source)
				o.Key("sourceInfo")
				o.B = object(func(o *jsonwire.Object) {
					o.Text("path", l.info.Path)
					o.Text("source", l.info.Source)
					o.Text("scope", string(l.info.Scope))
					o.Text("origin", l.info.Origin)
					o.OptText("baseDir", l.info.BaseDir)
				})(o.B)
			})(dst)
		})
	}))
}

// exportHTML writes the session as a page.
func (s *server) exportHTML(c *command) {
	path, err := c.optional("outputPath")
	if err != nil {
		s.fail(c, err)
		return
	}
	a := s.c
	a.tasks.Go(func() {
		path, err := export.Save(a.ctx, a.Harness.Session(), path, export.Options{})
		if err != nil {
			s.fail(c, err)
			return
		}
		s.done(c, object(func(o *jsonwire.Object) { o.Text("path", path) }))
	})
}
