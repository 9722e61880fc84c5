package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"

	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/all"
)

// Scenarios are what every wire format must be able to do, whatever its bytes
// look like. Each is written once and runs on all formats: the table of
// scenarios by formats has no hole.

// scenario is one row of the table.
type scenario struct {
	name string
	run  func(*scenarioCell)
}

// scenarioTable lists the rows.
func scenarioTable() []scenario {
	rows := []scenario{
		{"text", scenarioText},
		{"system", scenarioSystem},
		{"tools", scenarioTools},
		{"parallel tools", scenarioParallelTools},
		{"image of the user", scenarioUserImage},
		{"image in a result", scenarioResultImage},
		{"thinking", scenarioThinking},
		{"replay to the same model", scenarioReplaySame},
		{"replay from other formats", scenarioReplayOther},
		{"overflow", scenarioOverflow},
	}
	for _, class := range scenarioClasses {
		rows = append(rows, scenario{"error " + class, func(c *scenarioCell) { scenarioErrorResponse(c, class) }})
	}
	return append(rows,
		scenario{"error inside the stream", scenarioErrorInside},
		scenario{"error without a server", scenarioNoServer},
		scenario{"abort before the request", scenarioAbortBefore},
		scenario{"abort in the stream", scenarioAbortMiddle},
		scenario{"cut stream", scenarioCut},
		scenario{"idle stream", scenarioIdle},
		scenario{"usage and cost", scenarioUsageAndCost},
		scenario{"key in no error", scenarioKeyInNoError},
		scenario{"hooks", scenarioHooks},
		scenario{"retries with a server's delay", scenarioRetries},
		scenario{"proxy of the client", scenarioProxy},
		scenario{"header and base URL", scenarioHeaderAndBaseURL},
	)
}

// scenarioAnswer is an answer of a model, before any format makes bytes of it.
type scenarioAnswer struct {
	thinking string // with the format's own signature; "" for none
	text     []string
	calls    []scenarioCall
	stop     llm.StopReason // stop, length or toolUse
	usage    scenarioUsage
}

type scenarioCall struct{ id, name, args string }

// scenarioUsage counts tokens: read, of which none is cached; from and into the
// cache; written, with those of the reasoning.
type scenarioUsage struct{ input, cached, stored, output, reasoning int64 }

// scenarioEvent is one event of an answer, as its server names and sends it.
type scenarioEvent struct{ name, data string }

// scenarioSent is what a request says, read back from its body.
type scenarioSent struct {
	system string // all that stands in place of a system prompt
	items  []scenarioItem
	tools  []scenarioTool
	level  string // what is said about thinking, in the words of the format
}

// scenarioItem is one thing that a conversation holds, in order: text of a
// user, or text, thinking or a call of the model, or a result, or a picture.
type scenarioItem struct {
	kind      string // user, text, thinking, call, result, image
	text      string // of texts; the base64 of a picture
	signature string // of thinking
	id, name  string // of calls and results
	args      string
}

type scenarioTool struct {
	name, description string
	schema            any
}

// scenarioFailure is an error response of a service, in its own words.
type scenarioFailure struct {
	status int
	header map[string]string
	body   string
	says   string // part of the message that a user sees
	// final says that this format's words for a passing trouble tell nobody to
	// try again, as its service is not to be asked again soon.
	final bool
}

// scenarioDialect is all that scenarios know about one format.
type scenarioDialect struct {
	api   string
	model llm.Model // without BaseURL
	base  string    // path of the base URL
	path  string    // path of a request below the base URL
	key   string
	ids   []string // of calls, in the service's style; none when it gives none

	signature string   // of thinking, as it is in a request that replays it; "" for none
	marks     []string // what only the service that made an answer may get back
	levels    map[llm.ThinkingLevel]string
	verbatim  bool // messages are sent as they are, for a gateway to transform

	mediaType string
	encode    func(scenarioEvent) []byte
	events    func(*scenarioDialect, *scenarioAnswer) []scenarioEvent
	hidden    func(scenarioEvent) bool          // not shown to OnProviderEvent
	shown     func(scenarioEvent) string        // as OnProviderEvent sees it; nil for the data
	read      func(map[string]any) scenarioSent // of a body
	check     func(map[string]any) error        // what the service refuses
	overflow  []scenarioFailure                 // of a prompt that is too long
	failures  map[string]scenarioFailure        // by class
	inside    []scenarioInside                  // errors inside a stream
	keepAlive []byte                            // bytes that hold a connection and say nothing; nil for none
	counts    func(scenarioUsage) llm.Usage     // what is made of a usage, without its cost
	drops     bool                              // a failed answer has no content
	retries   int                               // attempts beyond the first whatever a caller says
	noRetries bool                              // MaxRetries says nothing
	failSeen  bool                              // OnResponse sees error responses
	noStatic  bool                              // headers of models are not sent
	accept    string                            // what is accepted whatever a request says
}

// scenarioInside is an error that comes inside a stream, behind a text.
type scenarioInside struct {
	event    scenarioEvent
	says     string
	retry    bool
	overflow bool
}

// scenarioDialects lists the formats in the order of llm/all.
func scenarioDialects() []*scenarioDialect {
	return []*scenarioDialect{
		scenarioAnthropic(), scenarioCompletions(),
		scenarioResponses(), scenarioAzure(), scenarioCodex(),
		scenarioGoogle(), scenarioVertex(), scenarioBedrock(), scenarioMistral(), scenarioPiMessages(),
	}
}

// The words of the conversations. They occur nowhere else in a request.
const (
	scenarioQuestion = "When is low water at the pier?"
	scenarioThought  = "Neap tide shifts it by nine minutes."
	scenarioPrompt   = "You keep the tide log."
)

var scenarioPieces = []string{"Low water ", "is at 04:12, ", "says the ünïcode table 🙈."}

// scenarioPixel is a picture, in base64.
const scenarioPixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func scenarioToolList() []llm.Tool {
	return []llm.Tool{
		{Name: "read_file", Description: "Reads a file of the log.", Parameters: jsontext.Value(`{"type":"object","properties":{"path":{"type":"string"},"line":{"type":"integer"}},"required":["path"]}`)},
		{Name: "list_files", Description: "Lists the files of a folder.", Parameters: jsontext.Value(`{"type":"object","properties":{"dir":{"type":"string"}},"required":["dir"]}`)},
	}
}

// answer is a plain answer in text.
func (d *scenarioDialect) answer() *scenarioAnswer {
	return &scenarioAnswer{text: scenarioPieces, stop: llm.StopStop, usage: scenarioUsage{input: 21, output: 9}}
}

// working is an answer that thinks, says something and calls two tools.
func (d *scenarioDialect) working() *scenarioAnswer {
	calls := []scenarioCall{{name: "read_file", args: `{"path":"log/ünï.md","line":7}`}, {name: "list_files", args: `{"dir":"log"}`}}
	for i := range calls {
		if len(d.ids) > 0 {
			calls[i].id = d.ids[i]
		}
	}
	return &scenarioAnswer{thinking: scenarioThought, text: scenarioPieces, calls: calls, stop: llm.StopToolUse, usage: scenarioUsage{input: 21, output: 30}}
}

// response is the reply of a server that gives an answer.
func (d *scenarioDialect) response(a *scenarioAnswer) scenarioReply {
	r := scenarioReply{status: 200, header: map[string]string{"Content-Type": d.mediaType, "X-Scenario": "yes"}}
	for _, ev := range d.events(d, a) {
		r.pieces = append(r.pieces, d.encode(ev))
	}
	return r
}

// begun is the reply of a server up to the event that brings the first piece of
// text of an answer.
func (d *scenarioDialect) begun(a *scenarioAnswer, end string) scenarioReply {
	r := d.response(a)
	first, _ := json.Marshal(a.text[0])
	for i, ev := range d.events(d, a) {
		if strings.Contains(ev.data, string(first[1:len(first)-1])) {
			r.pieces = r.pieces[:i+1]
			break
		}
	}
	r.end = end
	return r
}

func (f *scenarioFailure) response() scenarioReply {
	header := map[string]string{"Content-Type": "application/json"}
	for name, v := range f.header {
		header[name] = v
	}
	return scenarioReply{status: f.status, header: header, pieces: [][]byte{[]byte(f.body)}}
}

// scenarioCell is one cell of the table: a scenario on a format, with a server
// and a client of its own.
type scenarioCell struct {
	*testing.T
	*scenarioDialect
	server  *scenarioServer
	client  *http.Client
	format  llm.API
	waits   []time.Duration
	streams int
}

func newScenarioCell(t *testing.T, d *scenarioDialect) *scenarioCell {
	t.Helper()
	c := &scenarioCell{T: t, scenarioDialect: d, server: newScenarioServer(), client: wire.NewClient(nil)}
	formats := all.Formats(all.Config{
		Client: c.client, Version: "test", Getenv: noEnv, Random: func() float64 { return 0 },
		Wait: func(ctx context.Context, d time.Duration) error {
			c.waits = append(c.waits, d)
			return ctx.Err()
		},
	})
	i := slices.IndexFunc(formats, func(f llm.API) bool { return f.ID() == d.api })
	if i < 0 {
		t.Fatalf("llm/all has no format %s", d.api)
	}
	c.format = formats[i]
	return c
}

// close ends the server and the client, so that nothing may be left of a cell.
func (c *scenarioCell) close() {
	c.client.CloseIdleConnections()
	c.server.CloseClientConnections() // whoever has not left by now
	c.server.Close()
}

// target is the format's model on the cell's server.
func (c *scenarioCell) target() *llm.Model {
	m := c.model
	m.BaseURL = c.server.URL + c.base
	return &m
}

func (c *scenarioCell) request(messages ...llm.Message) *llm.Request {
	return &llm.Request{Messages: messages, Options: llm.Options{APIKey: c.key}}
}

// ask is a request of one question.
func (c *scenarioCell) ask() *llm.Request { return c.request(llm.UserText(scenarioQuestion, 1)) }

// scenarioHeard is what a consumer of a stream saw.
type scenarioHeard struct {
	*llm.Assistant
	events []string
}

// stream sends a request to the target and reads the answer to its end.
func (c *scenarioCell) stream(req *llm.Request) *scenarioHeard {
	c.Helper()
	return c.streamOn(c.Context(), c.target(), req, nil)
}

// streamOn is stream with a context and a model; see sees each event.
func (c *scenarioCell) streamOn(ctx context.Context, m *llm.Model, req *llm.Request, see func(*llm.Event)) *scenarioHeard {
	c.Helper()
	c.streams++
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute) // for a format that waits for ever
	defer cancel()
	stream, err := c.format.Stream(ctx, m, req)
	if err != nil {
		c.Fatalf("no request is made: %v", err)
	}
	h := &scenarioHeard{}
	deltas := map[int]string{}
	for ev := range stream.Events() {
		if h.Assistant != nil {
			c.Errorf("%s comes behind the last event", ev.Type)
		}
		h.events = append(h.events, ev.Type.String())
		switch ev.Type {
		case llm.EventTextDelta, llm.EventThinkingDelta, llm.EventToolCallDelta:
			deltas[ev.Index] += ev.Delta
		case llm.EventTextEnd, llm.EventThinkingEnd:
			if got := deltas[ev.Index]; got != ev.Text() {
				c.Errorf("block %d is %q, its deltas %q", ev.Index, ev.Text(), got)
			}
		case llm.EventDone, llm.EventError:
			h.Assistant = ev.Message
		}
		if see != nil {
			see(&ev)
		}
	}
	if h.Assistant == nil {
		c.Fatal("the stream ends without a last event")
	}
	h.law(c)
	return h
}

// law is what holds of every stream.
func (h *scenarioHeard) law(c *scenarioCell) {
	c.Helper()
	if h.API != c.api || h.Provider != c.model.Provider || h.Model != c.model.ID {
		c.Errorf("the answer is of %s, %s, %s", h.API, h.Provider, h.Model)
	}
	last := len(h.events) - 1
	failed := h.StopReason == llm.StopError || h.StopReason == llm.StopAborted
	if (h.events[last] == "error") != failed || failed != (h.ErrorMessage != "") {
		c.Errorf("the last event is %s, the stop reason %s, the error %q", h.events[last], h.StopReason, h.ErrorMessage)
	}
	if h.events[0] != "start" && (last > 0 || !failed) {
		c.Errorf("the first of %d events is %s", len(h.events), h.events[0])
	}
	if h.StopReason == llm.StopPending || h.Timestamp == 0 || h.DurationMs == nil || *h.DurationMs < 0 {
		c.Errorf("the message is not finished: stop reason %s, timestamp %d, duration %v", h.StopReason, h.Timestamp, h.DurationMs)
	}
	if h.Content == nil {
		c.Error("the content is nil")
	}
	for _, call := range h.ToolCalls() {
		if call.Streaming != nil {
			c.Errorf("call %s still streams", call.ID)
		}
	}
}

// done fails the cell when an answer did not end well.
func (h *scenarioHeard) done(c *scenarioCell, want llm.StopReason) *scenarioHeard {
	c.Helper()
	if h.StopReason != want {
		c.Fatalf("stop reason %s (%s), want %s", h.StopReason, h.ErrorMessage, want)
	}
	return h
}

// sent is what the n-th request said, with its body.
func (c *scenarioCell) sent(n int) (scenarioSent, string) {
	c.Helper()
	requests := c.server.taken()
	if n >= len(requests) {
		c.Fatalf("%d requests were sent, want more than %d", len(requests), n)
	}
	text, err := unpacked(requests[n].header, requests[n].body)
	if err != nil {
		c.Fatal(err)
	}
	var body map[string]any
	if err := json.Unmarshal(text, &body); err != nil {
		c.Fatalf("the body is no JSON: %v\n%s", err, text)
	}
	if c.check != nil {
		if err := c.check(body); err != nil {
			c.Errorf("the service would refuse this: %v\n%s", err, text)
		}
	}
	return c.read(body), string(text)
}

// of lists the items of a kind.
func (s *scenarioSent) of(kind string) []scenarioItem {
	return slices.DeleteFunc(slices.Clone(s.items), func(it scenarioItem) bool { return it.kind != kind })
}

// texts joins the texts of a kind.
func (s *scenarioSent) texts(kind string) string {
	var out []string
	for _, it := range s.of(kind) {
		out = append(out, it.text)
	}
	return strings.Join(out, "|")
}

// scenarioWhole is the text of a plain answer.
var scenarioWhole = strings.Join(scenarioPieces, "")

func TestScenarios(t *testing.T) {
	type cell struct{ scenario, format string }
	ran := map[cell]int{}
	for _, s := range scenarioTable() {
		t.Run(s.name, func(t *testing.T) {
			for _, d := range scenarioDialects() {
				t.Run(d.api, func(t *testing.T) {
					before := goleak.IgnoreCurrent()
					c := newScenarioCell(t, d)
					defer func() {
						c.close()
						if err := goleak.Find(before); err != nil {
							t.Errorf("something is left: %v", err)
						}
					}()
					s.run(c)
					ran[cell{s.name, d.api}] = c.streams
				})
			}
		})
	}
	t.Run("every cell", func(t *testing.T) {
		n := 0
		for _, s := range scenarioTable() {
			for _, f := range all.Formats(all.Config{}) {
				if n++; ran[cell{s.name, f.ID()}] == 0 {
					t.Errorf("%s has not run on %s", s.name, f.ID())
				}
			}
		}
		fmt.Printf("scenarios: %d cells of %d\n", len(ran), n)
	})
}
