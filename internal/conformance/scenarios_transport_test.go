package conformance

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

// What callers steer and see of a request: its price, its hooks, its retries
// and its way.

func scenarioUsageAndCost(c *scenarioCell) {
	tier := c.model.Cost.Tiers[0]
	stored := c.counts(scenarioUsage{stored: 30}).CacheWrite // 0 where nobody counts it
	for _, u := range []scenarioUsage{
		{input: 100, cached: 40, stored: 30, output: 50, reasoning: 20},
		{input: tier.InputTokensAbove - 40 - stored, cached: 40, stored: 30, output: 50, reasoning: 20},
		{input: tier.InputTokensAbove - 40 - stored + 1, cached: 40, stored: 30, output: 50, reasoning: 20},
		{input: 7, output: 3},
	} {
		a := c.answer()
		a.usage = u
		c.server.serve(c.response(a))
		got := c.stream(c.ask()).done(c, llm.StopStop).Usage
		want := c.counts(u)
		want.Cost = got.Cost
		if g, w := scenarioJSON(got), scenarioJSON(want); g != w {
			c.Errorf("%+v is counted as %s, want %s", u, g, w)
		}
		in, out, read, write := c.model.Cost.Input, c.model.Cost.Output, c.model.Cost.CacheRead, c.model.Cost.CacheWrite
		if want.Input+want.CacheRead+want.CacheWrite > tier.InputTokensAbove {
			in, out, read, write = tier.Input, tier.Output, tier.CacheRead, tier.CacheWrite
		}
		dollars := func(rate float64, n int64) float64 { return rate * float64(n) / 1e6 }
		cost := llm.Cost{Input: dollars(in, want.Input), Output: dollars(out, want.Output), CacheRead: dollars(read, want.CacheRead), CacheWrite: dollars(write, want.CacheWrite)}
		cost.Total = cost.Input + cost.Output + cost.CacheRead + cost.CacheWrite
		if c.verbatim { // the gateway knows what it bills
			cost = llm.Cost{Input: 0.1, Output: 0.2, CacheRead: 0.3, CacheWrite: 0.4, Total: 1}
		} else if got.Cost.TotalFromProvider == nil || *got.Cost.TotalFromProvider {
			c.Errorf("%+v: the cost is said to be the provider's", u)
		}
		near := func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }
		if g := got.Cost; !near(g.Input, cost.Input) || !near(g.Output, cost.Output) || !near(g.CacheRead, cost.CacheRead) || !near(g.CacheWrite, cost.CacheWrite) || !near(g.Total, cost.Total) {
			c.Errorf("%+v costs %+v, want %+v", u, g, cost)
		}
	}
}

func scenarioHooks(c *scenarioCell) {
	a := c.answer()
	var payload jsontext.Value
	var shown []string
	statuses := 0
	req := c.ask()
	req.OnPayload = func(p jsontext.Value, m *llm.Model) (jsontext.Value, error) {
		payload = append(jsontext.Value(nil), p...)
		if m.ID != c.model.ID {
			c.Errorf("OnPayload gets the model %s", m.ID)
		}
		return scenarioWithMember(p, `"scenario":true`), nil
	}
	req.OnResponse = func(status int, header http.Header, m *llm.Model) error {
		if statuses++; status != 200 || header.Get("X-Scenario") != "yes" || m.ID != c.model.ID {
			c.Errorf("OnResponse gets %d, %v of %s", status, header, m.ID)
		}
		return nil
	}
	req.OnProviderEvent = func(event jsontext.Value, m *llm.Model) error {
		if m.ID != c.model.ID {
			c.Errorf("OnProviderEvent gets the model %s", m.ID)
		}
		shown = append(shown, string(event))
		return nil
	}
	c.server.serve(c.response(a))
	c.streamOn(c.Context(), c.target(), req, func(ev *llm.Event) {
		if ev.Type == llm.EventStart && statuses != 1 {
			c.Errorf("the answer starts after %d calls of OnResponse", statuses)
		}
	}).done(c, llm.StopStop)
	_, body := c.sent(0)
	if scenarioCanonical(body) != scenarioCanonical(string(scenarioWithMember(payload, `"scenario":true`))) {
		c.Errorf("sent is %s, not %s with the member that OnPayload added", body, payload)
	}
	var want []string
	for _, ev := range c.events(c.scenarioDialect, a) {
		switch {
		case c.hidden != nil && c.hidden(ev):
		case c.shown != nil:
			want = append(want, c.shown(ev))
		default:
			want = append(want, ev.data)
		}
	}
	if !slices.Equal(shown, want) {
		c.Errorf("OnProviderEvent sees\n%s\nwant\n%s", strings.Join(shown, "\n"), strings.Join(want, "\n"))
	}

	// An error of a hook ends the answer in its words.
	refuse := errors.New("the caller refuses")
	for _, hook := range []struct {
		name     string
		set      func(*llm.Request)
		requests int
	}{
		{"OnPayload", func(r *llm.Request) {
			r.OnPayload = func(jsontext.Value, *llm.Model) (jsontext.Value, error) { return nil, refuse }
		}, 0},
		{"OnResponse", func(r *llm.Request) {
			r.OnResponse = func(int, http.Header, *llm.Model) error { return refuse }
		}, 1},
		{"OnProviderEvent", func(r *llm.Request) {
			r.OnProviderEvent = func(jsontext.Value, *llm.Model) error { return refuse }
		}, 1},
	} {
		c.server.serve(c.response(a))
		req := c.ask()
		hook.set(req)
		h := c.stream(req)
		if h.StopReason != llm.StopError || h.ErrorMessage != refuse.Error() || len(c.server.taken()) != hook.requests {
			c.Errorf("%s: %s, %q after %d requests", hook.name, h.StopReason, h.ErrorMessage, len(c.server.taken()))
		}
	}

	// Error responses are shown by those whose peers show them.
	f := c.failure("invalid")
	c.always(&f)
	seen := 0
	req = c.ask()
	req.OnResponse = func(status int, _ http.Header, _ *llm.Model) error {
		if seen++; status != f.status {
			c.Errorf("OnResponse gets %d", status)
		}
		return nil
	}
	c.stream(req).fails(c, f.says, false, false)
	if (seen == 1) != c.failSeen || seen > 1 {
		c.Errorf("OnResponse was called %d times for an error response", seen)
	}
}

func scenarioRetries(c *scenarioCell) {
	for _, class := range []string{"limited", "overloaded"} {
		f := c.failure(class)
		f.header = map[string]string{"Retry-After": "2", "X-Amzn-Errortype": f.header["X-Amzn-Errortype"]}
		again := !c.noRetries || c.retries > 0

		// The server is asked again when it says so.
		c.waits = nil
		c.server.serve(f.response(), c.response(c.answer()))
		req := c.ask()
		req.MaxRetries = 2
		h := c.stream(req)
		switch n := len(c.server.taken()); {
		case again:
			if h.done(c, llm.StopStop); n != 2 || !slices.Equal(c.waits, []time.Duration{2 * time.Second}) {
				c.Errorf("%s: %d requests, waits %v", class, n, c.waits)
			}
		default:
			if h.fails(c, f.says, true, false); n != 1 || len(c.waits) != 0 {
				c.Errorf("%s: %d requests, waits %v, want one attempt", class, n, c.waits)
			}
		}
		if !again {
			continue
		}

		// It is not asked for ever.
		c.waits = nil
		c.always(&f)
		h = c.stream(req)
		h.fails(c, f.says, !f.final, false)
		if n := len(c.server.taken()); n != 3 || len(c.waits) != 2 {
			c.Errorf("%s: %d requests, waits %v, want three attempts", class, n, c.waits)
		}

		// A wait that is too long is an error at once.
		c.waits = nil
		f.header["Retry-After"] = "30"
		c.always(&f)
		req = c.ask()
		req.MaxRetries, req.MaxRetryDelay = 2, 2*time.Second
		h = c.stream(req)
		h.fails(c, "Server requested 30s retry delay (max: 2s). ", true, false)
		if n := len(c.server.taken()); n != 1 || len(c.waits) != 0 {
			c.Errorf("%s: %d requests, waits %v, want one attempt", class, n, c.waits)
		}
	}
	// What no attempt can change is not tried again.
	f := c.failure("invalid")
	c.always(&f)
	req := c.ask()
	req.MaxRetries = 2
	c.stream(req).fails(c, f.says, false, false)
	if n := len(c.server.taken()); n != 1 {
		c.Errorf("%d requests for one that is wrong", n)
	}
}

func scenarioProxy(c *scenarioCell) {
	address, err := url.Parse(c.server.URL)
	if err != nil {
		c.Fatal(err)
	}
	client := wire.NewClient(http.ProxyURL(address))
	defer client.CloseIdleConnections()
	m := c.target()
	m.BaseURL = "http://model.invalid" + c.base
	c.server.serve(c.response(c.answer()))
	req := c.ask()
	req.Client = client
	c.streamOn(c.Context(), m, req, nil).done(c, llm.StopStop)
	sent := c.server.taken()
	if len(sent) != 1 || sent[0].host != "model.invalid" || sent[0].path != "http://model.invalid"+c.base+c.path {
		c.Errorf("the proxy gets %+v", sent)
	}
}

func scenarioHeaderAndBaseURL(c *scenarioCell) {
	for _, slash := range []string{"", "/"} {
		m := c.target()
		m.BaseURL = c.server.URL + "/deep/below" + c.base + slash
		m.Headers = map[string]string{"X-Model": "of the model", "X-Both": "of the model"}
		c.server.serve(c.response(c.answer()))
		req := c.ask()
		req.Headers = map[string]*string{"x-custom": new("of the request"), "x-both": new("of the request"), "accept": nil}
		c.streamOn(c.Context(), m, req, nil).done(c, llm.StopStop)
		sent := c.server.taken()[0]
		if want := "/deep/below" + c.base + c.path; sent.path != want || sent.method != http.MethodPost {
			c.Errorf("%s %s, want POST %s", sent.method, sent.path, want)
		}
		static := "of the model"
		if c.noStatic {
			static = ""
		}
		for name, want := range map[string]string{"X-Model": static, "X-Custom": "of the request", "X-Both": "of the request", "Accept": c.accept, "Content-Type": "application/json"} {
			if got := sent.header.Get(name); got != want {
				c.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		carried := 0
		for _, values := range sent.header {
			if strings.Contains(strings.Join(values, ","), c.key) {
				carried++
			}
		}
		if carried != 1 || strings.Contains(sent.path, c.key) {
			c.Errorf("the key is in %d header fields", carried)
		}
		if agent := sent.header.Get("User-Agent"); !strings.HasPrefix(agent, "pinch/test ") {
			c.Errorf("the sender calls itself %q", agent)
		}
		var body map[string]any
		text, err := unpacked(sent.header, sent.body)
		if err == nil {
			err = json.Unmarshal(text, &body)
		}
		if err != nil {
			c.Error(err)
		}
	}
}
