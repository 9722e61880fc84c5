package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pinch-agent/pinch/llm"
)

// What can go wrong, and in which words a user and a program learn of it.

// scenarioClasses are the kinds of error responses.
var scenarioClasses = []string{"key", "forbidden", "model", "invalid", "limited", "quota", "broken", "overloaded", "page"}

// scenarioPasses reports whether trouble of a class is over sooner or later without
// anybody doing something.
func scenarioPasses(class string) bool {
	return slices.Contains([]string{"limited", "broken", "overloaded", "page"}, class)
}

// failure is what the service answers in a class of trouble.
func (c *scenarioCell) failure(class string) scenarioFailure {
	c.Helper()
	if class == "page" {
		return scenarioFailure{status: 503, header: map[string]string{"Content-Type": "text/html"}, body: "<html><body><h1>503 Service Temporarily Unavailable</h1></body></html>", says: "Service Temporarily Unavailable"}
	}
	f, ok := c.failures[class]
	if !ok {
		c.Fatalf("no error response of class %s", class)
	}
	return f
}

// tries are the requests that a failure costs when nobody asked for retries.
func (c *scenarioCell) tries(f *scenarioFailure) int {
	if f.status == 429 || f.status >= 500 {
		return 1 + c.retries
	}
	return 1
}

// always makes a failure the answer to everything.
func (c *scenarioCell) always(f *scenarioFailure) {
	c.server.serve(slices.Repeat([]scenarioReply{f.response()}, 8)...)
}

// fails checks an answer that did not begin, or that broke off.
func (h *scenarioHeard) fails(c *scenarioCell, says string, retryable, overflow bool) {
	c.Helper()
	if h.StopReason != llm.StopError || !strings.Contains(h.ErrorMessage, says) {
		c.Errorf("the answer ends with %s, %q, want %q", h.StopReason, h.ErrorMessage, says)
	}
	if llm.IsContextOverflow(h.Assistant, 0) != overflow {
		c.Errorf("IsContextOverflow is %v for %q", !overflow, h.ErrorMessage)
	}
	if llm.IsRetryable(h.Assistant) != retryable {
		c.Errorf("IsRetryable is %v for %q", !retryable, h.ErrorMessage)
	}
	if strings.Contains(string(h.AppendJSON(nil)), c.key) {
		c.Errorf("the key is in the message: %s", h.AppendJSON(nil))
	}
}

// unbegun checks that an answer has nothing but an error.
func (h *scenarioHeard) unbegun(c *scenarioCell) {
	c.Helper()
	if len(h.events) != 1 || len(h.Content) != 0 {
		c.Errorf("an answer that did not begin has the events %v and the content %s", h.events, llm.AppendBlocks(nil, h.Content))
	}
}

func scenarioErrorResponse(c *scenarioCell, class string) {
	f := c.failure(class)
	c.always(&f)
	h := c.stream(c.ask())
	h.fails(c, f.says, scenarioPasses(class) && !f.final, false)
	h.unbegun(c)
	if n := len(c.server.taken()); n != c.tries(&f) {
		c.Errorf("%d requests, want %d", n, c.tries(&f))
	}
}

func scenarioOverflow(c *scenarioCell) {
	if len(c.overflow) == 0 {
		c.Fatal("no error response for a prompt that is too long")
	}
	for _, f := range c.overflow {
		c.always(&f)
		h := c.stream(c.ask())
		h.fails(c, f.says, false, true)
		h.unbegun(c)
		if n := len(c.server.taken()); n != 1 {
			c.Errorf("%d requests, want one", n)
		}
	}
	// Some services cut the prompt and say nothing.
	a := c.answer()
	a.usage.input = int64(c.model.ContextWindow) + 1
	c.server.serve(c.response(a))
	if h := c.stream(c.ask()).done(c, llm.StopStop); !llm.IsContextOverflow(h.Assistant, c.model.ContextWindow) {
		c.Errorf("an input of %d tokens in a window of %d is no overflow", h.Usage.Input, c.model.ContextWindow)
	}
}

// keeps checks what a broken answer has of the text that came.
func (h *scenarioHeard) keeps(c *scenarioCell, text string) {
	c.Helper()
	if got := llm.TextOf(h.Content, ""); got != text {
		c.Errorf("the text is %q, want %q", got, text)
	}
	if h.events[0] != "start" {
		c.Errorf("the events are %v", h.events)
	}
}

// kept is what a format keeps of the first piece when an answer breaks off.
func (c *scenarioCell) kept() string {
	if c.drops {
		return ""
	}
	return scenarioPieces[0]
}

func scenarioErrorInside(c *scenarioCell) {
	if len(c.inside) == 0 {
		c.Fatal("no error inside a stream")
	}
	for _, in := range c.inside {
		r := c.begun(c.answer(), "")
		r.pieces = append(r.pieces, c.encode(in.event))
		c.server.serve(r)
		h := c.stream(c.ask())
		h.fails(c, in.says, in.retry, in.overflow)
		h.keeps(c, scenarioPieces[0])
	}
}

func scenarioNoServer(c *scenarioCell) {
	m := c.target()
	c.server.Close()
	h := c.streamOn(c.Context(), m, c.ask(), nil)
	h.fails(c, "connection refused", true, false)
	h.unbegun(c)
	if want := c.retries; len(c.waits) != want {
		c.Errorf("%d waits, want %d", len(c.waits), want)
	}
}

func scenarioAbortBefore(c *scenarioCell) {
	ctx, cancel := context.WithCancel(c.Context())
	cancel()
	c.server.serve(c.response(c.answer()))
	h := c.streamOn(ctx, c.target(), c.ask(), nil)
	h.unbegun(c)
	if h.StopReason != llm.StopAborted {
		c.Errorf("stop reason %s", h.StopReason)
	}
	if n := len(c.server.taken()); n != 0 {
		c.Errorf("%d requests, want none", n)
	}
	// While the server thinks about its answer.
	ctx, cancel = context.WithCancel(c.Context())
	c.server.serve(scenarioReply{end: "mute"})
	go func() {
		for len(c.server.taken()) == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	h = c.streamOn(ctx, c.target(), c.ask(), nil)
	h.unbegun(c)
	if h.StopReason != llm.StopAborted || !c.server.wasLeft() {
		c.Errorf("stop reason %s, or the server still waits", h.StopReason)
	}
}

func scenarioAbortMiddle(c *scenarioCell) {
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	c.server.serve(c.begun(c.answer(), "hang"))
	h := c.streamOn(ctx, c.target(), c.ask(), func(ev *llm.Event) {
		if ev.Type == llm.EventTextDelta {
			cancel()
		}
	})
	if h.StopReason != llm.StopAborted || llm.IsRetryable(h.Assistant) || llm.IsContextOverflow(h.Assistant, 0) {
		c.Errorf("stop reason %s, %q", h.StopReason, h.ErrorMessage)
	}
	h.keeps(c, c.kept())
	if !c.server.wasLeft() {
		c.Error("the client does not leave")
	}

	// A consumer that has enough closes the stream.
	c.server.serve(c.begun(c.answer(), "hang"))
	stream, err := c.format.Stream(c.Context(), c.target(), c.ask())
	if err != nil {
		c.Fatal(err)
	}
	for ev, ok := stream.Next(); ok && ev.Type != llm.EventTextDelta; ev, ok = stream.Next() {
	}
	stream.Close()
	stream.Close()
	if _, more := stream.Next(); more || !c.server.wasLeft() {
		c.Error("a closed stream goes on")
	}
}

func scenarioCut(c *scenarioCell) {
	whole := c.response(c.answer())
	for _, end := range []string{"", "cut"} {
		begun := c.begun(c.answer(), end)
		nothing := scenarioReply{status: 200, header: begun.header, end: end}
		half := begun // of the event behind the first piece
		next := whole.pieces[len(begun.pieces)]
		half.pieces = append(slices.Clone(begun.pieces), next[:len(next)/2])
		half.end = "cut"
		for _, cut := range []struct {
			name  string
			reply scenarioReply
			kept  string
		}{{"behind a piece", begun, c.kept()}, {"in front of everything", nothing, ""}, {"in the middle of an event", half, c.kept()}} {
			c.server.serve(cut.reply)
			h := c.stream(c.ask())
			if h.StopReason != llm.StopError || !llm.IsRetryable(h.Assistant) || llm.IsContextOverflow(h.Assistant, c.model.ContextWindow) {
				c.Errorf("cut %s (%q): %s, %q, which nobody tries again", cut.name, end, h.StopReason, h.ErrorMessage)
			}
			if got := llm.TextOf(h.Content, ""); got != cut.kept {
				c.Errorf("cut %s (%q): the text is %q, want %q", cut.name, end, got, cut.kept)
			}
		}
	}
	// No byte of an event is one behind which the end of a stream means something else.
	half := c.begun(c.answer(), "")
	next := whole.pieces[len(half.pieces)]
	half.pieces = append(half.pieces, nil)
	for n := range next {
		half.pieces[len(half.pieces)-1] = next[:n]
		c.server.serve(half)
		if h := c.stream(c.ask()); h.StopReason != llm.StopError || !llm.IsRetryable(h.Assistant) {
			c.Errorf("ended behind %q: %s, %q, which nobody tries again", next[:n], h.StopReason, h.ErrorMessage)
		}
	}
	// A call whose arguments are cut is no call that could be run.
	a := c.working()
	a.thinking, a.calls = "", a.calls[:1]
	r := c.response(a)
	r.pieces = r.pieces[:len(c.begun(a, "").pieces)+len(a.text)]
	c.server.serve(r)
	h := c.stream(c.ask())
	h.fails(c, "", true, false)
}

func scenarioIdle(c *scenarioCell) {
	const bound = 100 * time.Millisecond
	replies := map[string]scenarioReply{"hang": c.begun(c.answer(), "hang")}
	if c.keepAlive != nil {
		r := c.begun(c.answer(), "alive")
		r.alive = c.keepAlive
		replies["alive"] = r
	}
	for name, r := range replies {
		c.server.serve(r)
		req := c.ask()
		req.IdleTimeout = bound
		began := time.Now()
		h := c.stream(req)
		h.fails(c, "timed out: no data in the response within "+bound.String(), true, false)
		h.keeps(c, c.kept())
		if d := time.Since(began); d < bound || d > 60*time.Second {
			c.Errorf("%s: the answer is given up after %s", name, d)
		}
		if !c.server.wasLeft() {
			c.Errorf("%s: the client does not leave", name)
		}
	}
	// No response at all.
	c.server.serve(slices.Repeat([]scenarioReply{{end: "mute"}}, 1+c.retries)...)
	req := c.ask()
	req.Timeout = bound
	h := c.stream(req)
	h.fails(c, "timed out: no response headers within "+bound.String(), true, false)
	h.unbegun(c)
	for range 1 + c.retries {
		if !c.server.wasLeft() {
			c.Error("the client does not leave")
		}
	}
	// A slow consumer is no silent server.
	c.server.serve(c.response(c.answer()))
	req = c.ask()
	req.IdleTimeout = bound
	slow := 0
	c.streamOn(c.Context(), c.target(), req, func(ev *llm.Event) {
		if ev.Type == llm.EventTextDelta && slow == 0 {
			slow++
			time.Sleep(2 * bound)
		}
	}).done(c, llm.StopStop)
}

func scenarioKeyInNoError(c *scenarioCell) {
	const other = "gateway-secret-0001"
	both := c.key + " and " + other
	check := func(what string, h *scenarioHeard) {
		c.Helper()
		text := string(h.AppendJSON(nil))
		if h.StopReason != llm.StopError || strings.Contains(text, c.key) || strings.Contains(text, other) {
			c.Errorf("%s: %s", what, text)
		}
	}
	ask := func() *llm.Request {
		req := c.ask()
		req.Headers = map[string]*string{"X-Gateway-Token": new(other)}
		return req
	}
	quoting := func(body string) string {
		for _, name := range []string{"message", "detail", "errorMessage"} {
			body = strings.ReplaceAll(body, `"`+name+`":"`, `"`+name+`":"`+both+` `)
		}
		return body
	}
	for _, class := range scenarioClasses {
		f := c.failure(class)
		if f.body = quoting(f.body); !strings.Contains(f.body, both) {
			f.body += both
		}
		c.always(&f)
		check(class, c.stream(ask()))
	}
	for i, in := range c.inside {
		r := c.begun(c.answer(), "")
		in.event.data = quoting(in.event.data)
		r.pieces = append(r.pieces, c.encode(in.event))
		c.server.serve(r)
		check(fmt.Sprintf("inside %d", i), c.stream(ask()))
	}
	// A page, and nonsense, in place of events.
	for _, body := range []string{"<html>" + both + "</html>", `{"error":{"message":"` + both + `"}}`, "data: {" + both + "\n\n"} {
		c.server.serve(scenarioReply{status: 200, header: map[string]string{"Content-Type": "text/html"}, pieces: [][]byte{[]byte(body)}})
		check(body, c.stream(ask()))
	}
	// An address that cannot be used, with the key in it.
	m := c.target()
	m.BaseURL = "ht tp://" + c.key + "@host/" + c.key
	check("bad address", c.streamOn(c.Context(), m, ask(), nil))
	m = c.target()
	m.BaseURL += "/" + c.key
	c.server.Close()
	check("no server", c.streamOn(c.Context(), m, ask(), nil))
}
