package conformance

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/pinch-agent/pinch/llm"
)

// What a conversation holds, on the way out and back.

func scenarioText(c *scenarioCell) {
	c.server.serve(c.response(c.answer()))
	h := c.stream(c.ask()).done(c, llm.StopStop)
	if text := llm.TextOf(h.Content, ""); text != scenarioWhole || len(h.Content) != 1 {
		c.Errorf("%d blocks with the text %q, want one with %q", len(h.Content), text, scenarioWhole)
	}
	deltas := slices.DeleteFunc(slices.Clone(h.events), func(e string) bool { return e != "text_delta" })
	if len(deltas) < len(scenarioPieces) || !slices.Contains(h.events, "text_end") {
		c.Errorf("%d pieces make the events %v", len(scenarioPieces), h.events)
	}
	if h.RawStopReason == "" && !c.verbatim {
		c.Error("the service's own word for the end is lost")
	}
	if s, _ := c.sent(0); s.texts("user") != scenarioQuestion {
		c.Errorf("the question is %q", s.texts("user"))
	}

	// The next question has the answer in front of it.
	c.server.serve(c.response(&scenarioAnswer{text: scenarioPieces, stop: llm.StopLength, usage: scenarioUsage{input: 40, output: 9}}))
	req := c.request(llm.UserText(scenarioQuestion, 1), h.Assistant, llm.UserText("And later?", 3))
	c.stream(req).done(c, llm.StopLength)
	s, _ := c.sent(0)
	if s.texts("user") != scenarioQuestion+"|And later?" || s.texts("text") != scenarioWhole {
		c.Errorf("the second request says %+v", s.items)
	}
}

func scenarioSystem(c *scenarioCell) {
	c.server.serve(c.response(c.answer()))
	messages := llm.Fold(scenarioPrompt, nil, []llm.Message{
		llm.UserText("first", 1),
		&llm.System{Content: llm.Plain("Answer in one line."), Sections: []llm.Section{{Name: "place", Text: "The harbour is Brackwater."}}, Timestamp: 2},
		llm.UserText(scenarioQuestion, 3),
	})
	c.stream(c.request(messages...)).done(c, llm.StopStop)
	s, body := c.sent(0)
	for _, want := range []string{scenarioPrompt, "Answer in one line.", "The harbour is Brackwater."} {
		if !strings.Contains(s.system, want) {
			c.Errorf("%q is not in place of the system prompt: %s", want, body)
		}
	}
	if s.texts("user") != "first|"+scenarioQuestion {
		c.Errorf("the user says %q", s.texts("user"))
	}
}

// called is a request with tools that is answered by calls, and the answer.
func (c *scenarioCell) called(a *scenarioAnswer) (history []llm.Message, h *scenarioHeard) {
	c.Helper()
	c.server.serve(c.response(a))
	history = llm.Fold(scenarioPrompt, scenarioToolList(), []llm.Message{llm.UserText(scenarioQuestion, 1)})
	req := c.request(history...)
	if a.thinking != "" {
		req.Reasoning = llm.LevelHigh
	}
	h = c.stream(req).done(c, llm.StopToolUse)
	calls := h.ToolCalls()
	if len(calls) != len(a.calls) {
		c.Fatalf("%d calls, want %d: %s", len(calls), len(a.calls), h.AppendJSON(nil))
	}
	seen := map[string]bool{}
	for i, call := range calls {
		want := a.calls[i]
		if call.Name != want.name || string(call.Arguments) != want.args || call.ArgumentsError != "" {
			c.Errorf("call %d is %s(%s) %s, want %s(%s)", i, call.Name, call.Arguments, call.ArgumentsError, want.name, want.args)
		}
		if want.id != "" && call.ID != want.id || call.ID == "" || seen[call.ID] {
			c.Errorf("call %d has the id %q, want %q", i, call.ID, want.id)
		}
		seen[call.ID] = true
	}
	return append(history, h.Assistant), h
}

// scenarioPairs reports whether a result answers a call. Where a service knows no ids,
// names pair them; ids of items are behind those of calls.
func scenarioPairs(call, result *scenarioItem) bool {
	return (result.id == call.id || strings.HasPrefix(call.id, result.id+"|")) && (result.name == "" || result.name == call.name)
}

func scenarioTools(c *scenarioCell) {
	a := c.working()
	a.thinking, a.calls = "", a.calls[:1]
	history, h := c.called(a)
	for _, kind := range []string{"toolcall_start", "toolcall_delta", "toolcall_end"} {
		if !slices.Contains(h.events, kind) {
			c.Errorf("no %s in %v", kind, h.events)
		}
	}
	s, body := c.sent(0)
	want := scenarioToolList()
	if len(s.tools) != len(want) {
		c.Fatalf("%d tools are declared, want %d: %s", len(s.tools), len(want), body)
	}
	for i, t := range s.tools {
		var schema map[string]any
		if err := json.Unmarshal(want[i].Parameters, &schema); err != nil {
			c.Fatal(err)
		}
		for _, member := range []string{"type", "properties", "required"} {
			if got := scenarioJSON(scenarioAt(t.schema, member)); got != scenarioJSON(schema[member]) {
				c.Errorf("%s of tool %s is %s, want %s", member, t.name, got, scenarioJSON(schema[member]))
			}
		}
		if t.name != want[i].Name || t.description != want[i].Description {
			c.Errorf("tool %d is declared as %q, %q", i, t.name, t.description)
		}
	}

	// The result goes back, and an error says that it is one to those who can hear it.
	call := h.ToolCalls()[0]
	for _, failed := range []bool{false, true} {
		c.server.serve(c.response(c.answer()))
		c.stream(c.request(append(slices.Clone(history),
			&llm.ToolResult{ToolCallID: call.ID, ToolName: call.Name, Content: []llm.Block{&llm.Text{Text: "line 7: 04:12"}}, IsError: failed, Timestamp: 3})...)).done(c, llm.StopStop)
		s, body := c.sent(0)
		calls, results := s.of("call"), s.of("result")
		if len(calls) != 1 || len(results) != 1 || !scenarioPairs(&calls[0], &results[0]) {
			c.Fatalf("calls %+v, results %+v", calls, results)
		}
		if calls[0].name != call.Name || calls[0].args != scenarioCanonical(string(call.Arguments)) || len(c.ids) > 0 && calls[0].id != call.ID {
			c.Errorf("the call comes back as %+v", calls[0])
		}
		if !strings.HasSuffix(results[0].text, "line 7: 04:12") {
			c.Errorf("the result is %q: %s", results[0].text, body)
		}
	}
}

func scenarioParallelTools(c *scenarioCell) {
	a := c.working()
	a.thinking = ""
	history, h := c.called(a)
	calls := h.ToolCalls()
	result := func(i int, text string, failed bool) llm.Message {
		return &llm.ToolResult{ToolCallID: calls[i].ID, ToolName: calls[i].Name, Content: []llm.Block{&llm.Text{Text: text}}, IsError: failed, Timestamp: 3}
	}
	// Results come in the order in which the tools end.
	for _, order := range [][2]int{{0, 1}, {1, 0}} {
		c.server.serve(c.response(c.answer()))
		texts := []string{"result of the first", "result of the second"}
		c.stream(c.request(append(slices.Clone(history), result(order[0], texts[order[0]], false), result(order[1], texts[order[1]], true), llm.UserText("go on", 5))...)).done(c, llm.StopStop)
		s, body := c.sent(0)
		scenarioAnswered(c, &s, texts, body)
	}
	// A call that nobody answered is answered in its place.
	c.server.serve(c.response(c.answer()))
	c.stream(c.request(append(slices.Clone(history), result(0, "result of the first", false), llm.UserText("go on", 5))...)).done(c, llm.StopStop)
	s, body := c.sent(0)
	if c.verbatim {
		if n := len(s.of("result")); n != 1 {
			c.Errorf("the gateway gets %d results, want the one that there is: %s", n, body)
		}
		return
	}
	scenarioAnswered(c, &s, []string{"result of the first", "No result provided"}, body)
}

// scenarioAnswered checks that the two calls of a request have these results.
func scenarioAnswered(c *scenarioCell, s *scenarioSent, texts []string, body string) {
	c.Helper()
	calls, results := s.of("call"), s.of("result")
	if len(calls) != 2 || len(results) != 2 {
		c.Fatalf("%d calls, %d results: %s", len(calls), len(results), body)
	}
	for i := range calls {
		k := slices.IndexFunc(results, func(r scenarioItem) bool { return scenarioPairs(&calls[i], &r) })
		if k < 0 || !strings.HasSuffix(results[k].text, texts[i]) {
			c.Errorf("call %d (%+v) is not answered by %q but by %+v", i, calls[i], texts[i], results)
		}
	}
}

const (
	scenarioNoImage       = "(image omitted: model does not support images)"
	scenarioNoResultImage = "(tool image omitted: model does not support images)"
)

// blind is the target without eyes.
func (c *scenarioCell) blind() *llm.Model {
	m := c.target()
	m.Input = []string{"text"}
	return m
}

func scenarioUserImage(c *scenarioCell) {
	question := &llm.User{Content: llm.Blocks(&llm.Text{Text: scenarioQuestion}, &llm.Image{Data: scenarioPixel, MimeType: "image/png"}), Timestamp: 1}
	c.server.serve(c.response(c.answer()), c.response(c.answer()))
	c.stream(c.request(question)).done(c, llm.StopStop)
	s, body := c.sent(0)
	if s.texts("image") != scenarioPixel || s.texts("user") != scenarioQuestion || !strings.Contains(body, "png") {
		c.Errorf("the picture is not sent: %s", body)
	}
	c.streamOn(c.Context(), c.blind(), c.request(question), nil).done(c, llm.StopStop)
	s, body = c.sent(1)
	if c.verbatim {
		if s.texts("image") != scenarioPixel {
			c.Errorf("the gateway does not get the picture: %s", body)
		}
		return
	}
	if strings.Contains(body, scenarioPixel) || !strings.Contains(s.texts("user"), scenarioNoImage) {
		c.Errorf("a model that sees nothing gets %s", body)
	}
}

func scenarioResultImage(c *scenarioCell) {
	a := c.working()
	a.thinking, a.calls = "", a.calls[:1]
	history, h := c.called(a)
	call := h.ToolCalls()[0]
	picture := &llm.Image{Data: scenarioPixel, MimeType: "image/png"}
	for _, content := range [][]llm.Block{{&llm.Text{Text: "the chart:"}, picture}, {picture}} {
		messages := append(slices.Clone(history), &llm.ToolResult{ToolCallID: call.ID, ToolName: call.Name, Content: content, Timestamp: 3}, llm.UserText("What does it show?", 4))
		c.server.serve(c.response(c.answer()), c.response(c.answer()))
		c.stream(c.request(messages...)).done(c, llm.StopStop)
		s, body := c.sent(0)
		result := slices.IndexFunc(s.items, func(it scenarioItem) bool { return it.kind == "result" })
		image := slices.IndexFunc(s.items, func(it scenarioItem) bool { return it.kind == "image" })
		if result < 0 || image < result || s.texts("image") != scenarioPixel {
			c.Errorf("the picture does not come with the result: %s", body)
		}
		if len(content) > 1 && !strings.Contains(s.items[max(result, 0)].text, "the chart:") {
			c.Errorf("the text of the result is lost: %s", body)
		}
		c.streamOn(c.Context(), c.blind(), c.request(messages...), nil).done(c, llm.StopStop)
		s, body = c.sent(1)
		switch {
		case c.verbatim:
			if s.texts("image") != scenarioPixel {
				c.Errorf("the gateway does not get the picture: %s", body)
			}
		case strings.Contains(body, scenarioPixel) || !strings.Contains(s.texts("result"), scenarioNoResultImage):
			c.Errorf("a model that sees nothing gets %s", body)
		}
	}
}

func scenarioThinking(c *scenarioCell) {
	for _, level := range []llm.ThinkingLevel{"", llm.LevelLow, llm.LevelHigh} {
		a := c.answer()
		if level != "" {
			a.thinking = scenarioThought
		}
		c.server.serve(c.response(a))
		req := c.ask()
		req.Reasoning = level
		h := c.stream(req).done(c, llm.StopStop)
		if s, body := c.sent(0); s.level != c.levels[level] {
			c.Errorf("level %q is sent as %q, want %q: %s", level, s.level, c.levels[level], body)
		}
		if text := llm.TextOf(h.Content, ""); text != scenarioWhole {
			c.Errorf("the text is %q", text)
		}
		if level == "" {
			continue
		}
		thinking, ok := h.Content[0].(*llm.Thinking)
		if !ok || thinking.Thinking != scenarioThought || thinking.Redacted {
			c.Fatalf("the answer begins with %s", h.Content[0].AppendJSON(nil))
		}
		if signature := thinking.Signature; c.signature != "" && (signature == nil || !strings.Contains(*signature, c.signature)) {
			c.Errorf("the signature is %v, want %q", signature, c.signature)
		}
		for _, kind := range []string{"thinking_start", "thinking_delta", "thinking_end"} {
			if !slices.Contains(h.events, kind) {
				c.Errorf("no %s in %v", kind, h.events)
			}
		}
	}
	// A model that does not think is not asked to.
	m := c.target()
	m.Reasoning = false
	c.server.serve(c.response(c.answer()))
	req := c.ask()
	req.Reasoning = llm.LevelHigh
	c.streamOn(c.Context(), m, req, nil).done(c, llm.StopStop)
	want := ""
	if c.verbatim {
		want = c.levels[llm.LevelHigh]
	}
	if s, body := c.sent(0); s.level != want {
		c.Errorf("a model that does not think gets the level %q: %s", s.level, body)
	}
}

// worked is a history whose answer thinks, speaks and calls two tools, which
// are answered.
func (c *scenarioCell) worked() []llm.Message {
	c.Helper()
	history, h := c.called(c.working())
	for i, call := range h.ToolCalls() {
		history = append(history, &llm.ToolResult{ToolCallID: call.ID, ToolName: call.Name, Content: []llm.Block{&llm.Text{Text: []string{"result of the first", "result of the second"}[i]}}, Timestamp: 3})
	}
	return append(history, llm.UserText("And later?", 5))
}

func scenarioReplaySame(c *scenarioCell) {
	history := c.worked()
	c.server.serve(c.response(c.answer()))
	req := c.request(history...)
	req.Reasoning = llm.LevelHigh
	c.stream(req).done(c, llm.StopStop)
	s, body := c.sent(0)
	thinking := s.of("thinking")
	if len(thinking) != 1 || thinking[0].text != scenarioThought || thinking[0].signature != c.signature {
		c.Errorf("thinking comes back as %+v, want %q with the signature %q", thinking, scenarioThought, c.signature)
	}
	for _, mark := range c.marks {
		if !strings.Contains(body, mark) {
			c.Errorf("%q does not come back: %s", mark, body)
		}
	}
	if s.texts("text") != scenarioWhole {
		c.Errorf("the text comes back as %q", s.texts("text"))
	}
	scenarioAnswered(c, &s, []string{"result of the first", "result of the second"}, body)
	for i, call := range s.of("call") {
		want := c.working().calls[i]
		if call.id != want.id || call.name != want.name || call.args != scenarioCanonical(want.args) {
			c.Errorf("call %d comes back as %+v, want %+v", i, call, want)
		}
	}

	// What is remembered of the conversation changes no byte of it.
	req.Memo = &llm.Memo{}
	for end := len(history) - 3; end <= len(history); end += 3 {
		c.server.serve(c.response(c.answer()))
		req.Messages = history[:end]
		c.stream(req).done(c, llm.StopStop)
	}
	if _, again := c.sent(0); again != body {
		c.Errorf("with a memory %s is sent, without %s", again, body)
	}

	// Another model of the same service has no use for this one's thinking.
	m := c.target()
	m.ID = strings.Replace(m.ID, "scenario", "sibling", 1)
	if c.api == "bedrock-converse-stream" {
		m.ID = "us.anthropic.claude-haiku-4-5-v1:0"
	}
	c.server.serve(c.response(c.answer()))
	stream, err := c.format.Stream(c.Context(), m, c.request(history...))
	if err != nil {
		c.Fatal(err)
	}
	if answer := stream.Result(); answer.StopReason != llm.StopStop || answer.Model != m.ID {
		c.Fatalf("the sibling's answer ends with %s, %q", answer.StopReason, answer.ErrorMessage)
	}
	s, body = c.sent(0)
	if thinking := s.of("thinking"); (len(thinking) > 0) != c.verbatim || strings.Contains(body, scenarioThought) != c.verbatim {
		c.Errorf("a sibling gets %s", body)
	}
	for _, mark := range c.marks {
		if strings.Contains(body, mark) != c.verbatim {
			c.Errorf("%q is sent to a sibling: %v, %s", mark, !c.verbatim, body)
		}
	}
	scenarioAnswered(c, &s, []string{"result of the first", "result of the second"}, body)
}

func scenarioReplayOther(c *scenarioCell) {
	for _, other := range scenarioDialects() {
		if other.api == c.api {
			continue
		}
		from := newScenarioCell(c.T, other)
		history := from.worked()
		from.close()
		c.server.serve(c.response(c.answer()))
		req := c.request(history...)
		req.Reasoning = llm.LevelHigh
		c.stream(req).done(c, llm.StopStop)
		s, body := c.sent(0)
		fail := func(format string, args ...any) {
			c.Helper()
			c.Errorf("what %s said: "+format+"\n%s", append(append([]any{other.api}, args...), body)...)
		}
		if s.texts("user") != scenarioQuestion+"|And later?" || s.texts("text") != scenarioWhole || !strings.Contains(s.system, scenarioPrompt) {
			fail("the texts are %q and %q", s.texts("user"), s.texts("text"))
		}
		scenarioAnswered(c, &s, []string{"result of the first", "result of the second"}, body)
		for i, call := range s.of("call") {
			if want := other.working().calls[i]; call.name != want.name || call.args != scenarioCanonical(want.args) {
				fail("call %d is %+v, want %+v", i, call, want)
			}
		}
		if c.verbatim {
			// The gateway transforms, so it gets what there is.
			for _, m := range history {
				if json := string(m.AppendJSON(nil)); !strings.Contains(body, json) {
					fail("this is not sent as it is: %s", json)
				}
			}
			continue
		}
		if strings.Contains(body, scenarioThought) {
			fail("its thinking is sent")
		}
		for _, mark := range other.marks {
			if strings.Contains(body, mark) {
				fail("%q is sent", mark)
			}
		}
	}
}
