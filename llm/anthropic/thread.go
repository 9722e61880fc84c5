package anthropic

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"strconv"
	"strings"
	"sync"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/transcript"
)

// Message threads keep a conversation on the server: a request then sends only
// the messages behind the last answer. That is right only while everything
// before is what the server has, which is told by comparing sums of the
// settings and of each message.

const betaThreads = "message-threads-2026-08-12"

// threads holds the state of the conversations that an API has seen.
type threads struct {
	mu     sync.Mutex
	seed   maphash.Seed
	states map[string]*threadState
	order  wire.Sessions // bounds states
}

// threadState is what a session's last clean answer left on the server. It is
// not changed once it is in threads.
type threadState struct {
	off      bool // the server knows no threads
	plain    bool // … not even the name of the feature
	settings uint64
	messages chain  // the answer last
	answer   string // id of the answer
}

func (t *threads) init() {
	if t.states == nil {
		t.states, t.seed = map[string]*threadState{}, maphash.MakeSeed()
	}
}

func (t *threads) load(session string) *threadState {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.init()
	return t.states[session]
}

func (t *threads) store(session string, s *threadState) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.init()
	if forgotten := t.order.Add(session); forgotten != "" {
		delete(t.states, forgotten)
	}
	t.states[session] = s
}

func (t *threads) forget(session string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.states, session)
}

// take forgets a session's state and returns the id of its answer, "" when
// another request was faster.
func (t *threads) take(session string, s *threadState) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.states[session] != s {
		return ""
	}
	delete(t.states, session)
	return s.answer
}

func (t *threads) hash() *maphash.Hash {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.init()
	h := &maphash.Hash{}
	h.SetSeed(t.seed)
	return h
}

// chain is the sum of a list of messages that grows at its end.
type chain struct {
	n   int
	sum uint64
}

func (c chain) with(sum uint64) chain {
	return chain{c.n + 1, bits.RotateLeft64(c.sum*0x9E3779B97F4A7C15, 29) ^ sum}
}

// thread is the part of one request in a thread.
type thread struct {
	used     bool // the body has a thread member
	fresh    bool // a continuation was refused: create anew
	off      bool // this request found that the server knows no threads
	plain    bool // … not even the name of the feature
	custom   bool // the body is not the one that was planned
	settings uint64
	messages chain  // that the server has when it has read the request
	previous string // continue behind this answer, "" to create
	skip     int    // items that the server has
}

// names reports whether the request names the feature. All requests of a
// session do that threads are for, with or without one: what the server keeps
// of the prompt depends on it.
func (x *exchange) names() bool {
	o := &x.req.Options
	if !x.compat.MessageThreads || o.SessionID == "" || x.thread.plain || x.api.host.CacheRetention(o) == "none" {
		return false
	}
	state := x.api.threads.load(o.SessionID)
	return state == nil || !state.plain
}

// threaded reports whether the request asks for threads. One that has just
// found out that the server has none keeps asking, as it is the same request.
func (x *exchange) threaded() bool {
	o := &x.req.Options
	if !x.compat.MessageThreads || o.SessionID == "" || o.DisableContinuation || x.api.host.CacheRetention(o) == "none" {
		return false
	}
	state := x.api.threads.load(o.SessionID)
	return x.thread.off || state == nil || !state.off
}

// continuable is the thread that a request can go on with, nil for none.
func (x *exchange) continuable() *threadState {
	if !x.threaded() || x.thread.off || x.thread.fresh {
		return nil
	}
	if state := x.api.threads.load(x.req.SessionID); state != nil && !state.off {
		return state
	}
	return nil
}

// planThread decides between a new thread, a continuation of the one in state
// and none. Without a state the items need not be encoded yet.
func (x *exchange) planThread(items []transcript.Item[encoded], settings uint64, state *threadState) {
	th := &x.thread
	*th = thread{fresh: th.fresh, off: th.off, plain: th.plain, settings: settings, used: !th.off}
	if th.off || state == nil || state.settings != settings {
		return
	}
	var c chain
	for i := range items {
		if e := &items[i].Wire; len(e.json) > 0 {
			if th.skip > 0 { // something is left to send
				// An answer is continued once, by one request: another would be refused.
				if th.previous = x.api.threads.take(x.req.SessionID, state); th.previous == "" {
					th.skip = 0
				}
				return
			}
			if c = c.with(x.sum(items[i].Message, e)); c.n == state.messages.n {
				if c != state.messages {
					return
				}
				th.skip = i + 1
			}
		}
	}
	th.skip = 0
}

// sumThread sums up what the server has when it has read the request.
func (x *exchange) sumThread(items []transcript.Item[encoded]) {
	if !x.thread.used {
		return
	}
	var c chain
	for i := range items {
		if e := &items[i].Wire; len(e.json) > 0 {
			c = c.with(x.sum(items[i].Message, e))
		}
	}
	x.thread.messages = c
}

// sum is the sum of one encoded message, kept in its slot. A string and one
// text block count as the same.
func (x *exchange) sum(m llm.Message, e *encoded) uint64 {
	if e.sum == 0 {
		e.sum = x.sumOf(m, e.json, e.after())
	}
	return e.sum
}

func (x *exchange) sumOf(m llm.Message, json, after []byte) uint64 {
	if x.hash == nil {
		x.hash = x.api.threads.hash()
	}
	h := x.hash
	h.Reset()
	switch m := m.(type) {
	case *llm.User:
		if len(json) > len(userString) && json[len(userString)] == '"' {
			h.WriteString(userBlocks + `{"type":"text","text":`)
			h.Write(json[len(userString) : len(json)-1])
			h.WriteString(`}]}`)
			json = nil
		}
	case *llm.Assistant:
		h.WriteString(m.ProviderThinkingLevel)
	}
	h.Write(json)
	h.Write(after)
	return max(1, h.Sum64())
}

// settingsSum is the sum of all that must stay the same in a thread. A
// continuation leaves the prompt and the tools out, so the cache markers in them
// count: the server keeps those of the beginning.
func (x *exchange) settingsSum(top *head, betas []string) uint64 {
	h := x.api.threads.hash()
	part := func(p []byte) {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write(p)
	}
	part([]byte(x.model.BaseURL))
	part([]byte(x.model.ID))
	part(top.system)
	part(top.tools)
	part(x.thinking.append(nil, x.model, &x.compat))
	part(x.toolChoice(nil))
	part([]byte(strings.Join(betas, ",")))
	for i := range x.compat.FallbackModels {
		part([]byte(x.compat.FallbackModels[i].Model))
	}
	return h.Sum64()
}

func (th *thread) append(b []byte) []byte {
	switch {
	case !th.used:
		return b
	case th.previous == "":
		return append(b, `,"thread":{"type":"create"}`...)
	default:
		b = append(b, `,"thread":{"type":"continue","previous_message_id":`...)
		b = jsonwire.AppendString(b, th.previous)
		return append(b, '}')
	}
}

// threadRejected decides how a refused request goes on: as a new thread or
// without one.
func (x *exchange) threadRejected(err *wire.StatusError) bool {
	th := &x.thread
	if !th.used {
		return false
	}
	code, _ := jsonwire.StringValue(jsonwire.Get(jsonwire.Get(err.ErrorObject(), "details"), "error_code"))
	switch {
	case code == "thread_not_found" || code == "thread_already_continued" || code == "thread_continue_in_flight" || code == "thread_fingerprint_mismatch":
		if th.fresh {
			return false
		}
		th.fresh = true
	case code == "thread_unsupported_request", code == "" && err.Status == 400 && strings.Contains(string(err.Body), "thread"):
		th.off, th.plain = true, strings.Contains(string(err.Body), "anthropic-beta")
	default:
		return false
	}
	reason := code
	if reason == "" {
		reason = strconv.Itoa(err.Status)
	}
	x.diagnose("anthropic_thread_fallback", err, `{"reason":`+string(jsonwire.AppendString(nil, reason))+`}`)
	return true
}

// recordThread keeps what a clean answer left on the server. Only an answer
// shows that it was the thread that the server refused.
func (x *exchange) recordThread(m *llm.Assistant) {
	th := &x.thread
	switch {
	case th.off:
		x.api.threads.store(x.req.SessionID, &threadState{off: true, plain: th.plain})
		return
	case !th.used:
		return
	}
	json := x.appendAssistant(nil, m)
	// The answer of another model is not kept by the server.
	if len(json) == 0 || m.ResponseID == "" || m.ResponseModel != "" || th.custom {
		x.api.threads.forget(x.req.SessionID)
		return
	}
	x.api.threads.store(x.req.SessionID, &threadState{
		settings: th.settings, messages: th.messages.with(x.sumOf(m, json, nil)), answer: m.ResponseID,
	})
}

// EndSession forgets what the API remembers of a session. Without it the
// oldest of many sessions are forgotten by themselves.
func (a *API) EndSession(id string) {
	a.loose.Remove(id)
	a.threads.forget(id)
}
