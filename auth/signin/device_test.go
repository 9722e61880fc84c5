package signin

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pinch-agent/pinch/auth"
)

// canned answers requests in memory, so that a bubble's clock can run ahead.
type canned struct {
	device, poll string
	polls        []string    // answers of the polls before the good one, "" for a lost one
	at           []time.Time // of the polls
	last         http.Header
	form         url.Values
}

func (c *canned) RoundTrip(req *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(req.Body)
	c.form, _ = url.ParseQuery(string(body))
	c.last = req.Header
	answer := func(status int, text string) (*http.Response, error) {
		return &http.Response{
			StatusCode: status, Status: http.StatusText(status), Header: http.Header{"Content-Type": {"application/json; charset=utf-8"}},
			Body: io.NopCloser(strings.NewReader(text)), Request: req,
		}, nil
	}
	if strings.HasSuffix(req.URL.Path, "/device") {
		return answer(200, c.device)
	}
	c.at = append(c.at, time.Now())
	i := len(c.at) - 1
	switch {
	case i >= len(c.polls) && c.poll == "":
		return answer(400, `{"error":"authorization_pending"}`)
	case i >= len(c.polls):
		return answer(200, c.poll)
	case c.polls[i] == "":
		return nil, errors.New("connection reset")
	case strings.HasPrefix(c.polls[i], "<"):
		return answer(502, c.polls[i])
	}
	return answer(400, c.polls[i])
}

func TestDevicePolling(t *testing.T) {
	const (
		pending  = `{"error":"authorization_pending"}`
		slowDown = `{"error":"slow_down"}`
		token    = `{"access_token":"access-secret-1","refresh_token":"refresh-secret-1","expires_in":60}`
		device   = `{"device_code":"device-secret","user_code":"AB-12","verification_uri":"https://acme.example/enter","expires_in":900,"interval":2}`
	)
	for _, c := range []struct {
		name   string
		device string
		polls  []string
		token  string
		kind   Kind
		words  string
		gaps   []int // seconds between the polls, from the start
	}{
		{"at once", device, nil, token, "", "", []int{2}},
		{"pending", device, []string{pending, pending}, token, "", "", []int{2, 2, 2}},
		{"slow down", device, []string{slowDown, pending, slowDown}, token, "", "", []int{2, 7, 7, 12}},
		{"no interval", `{"device_code":"device-secret","user_code":"AB-12","verification_uri":"https://acme.example/enter","expires_in":900}`,
			[]string{pending}, token, "", "", []int{5, 5}},
		{"denied", device, []string{pending, `{"error":"access_denied"}`}, token, Denied, "access was denied", []int{2, 2}},
		{"expired there", device, []string{`{"error":"expired_token","error_description":"device-secret is old"}`}, token, TimedOut, "the code expired", []int{2}},
		{"expired here", strings.Replace(device, "900", "9", 1), nil, "", TimedOut, "the code expired before it was entered", []int{2, 2, 2, 2}},
		{"lost answers", device, []string{"", "<html>", pending}, token, "", "", []int{2, 10, 20, 20}},
		{"lost for good", device, []string{"", "", "", "", "", "", ""}, token, Unreachable, "acme.example cannot be reached", []int{2, 10, 20, 40, 60, 60}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &canned{device: c.device, polls: c.polls, poll: c.token}
				var steps []Step
				start := time.Now()
				got, err := SignIn(t.Context(), Definition{
					Provider: "acme", ClientID: "own-client", Scopes: []string{"s"},
					DeviceURL: "https://acme.example/device", TokenURL: "https://acme.example/token",
				}, Options{Client: &http.Client{Transport: server}, Show: func(s Step) { steps = append(steps, s) }})
				if c.kind != "" {
					wantError(t, err, c.kind, c.words)
				} else if err != nil || got.Access.Reveal() != access || got.Refresh.Reveal() != refresh {
					t.Errorf("got %v, %v", got, err)
				}
				var gaps []int
				last := start
				for _, at := range server.at {
					gaps = append(gaps, int(at.Sub(last)/time.Second))
					last = at
				}
				if len(gaps) != len(c.gaps) {
					t.Fatalf("polls after %v s, want %v", gaps, c.gaps)
				}
				for i := range gaps {
					if gaps[i] != c.gaps[i] {
						t.Errorf("polls after %v s, want %v", gaps, c.gaps)
						break
					}
				}
				if s, ok := steps[0].(DeviceStep); !ok || s.Code != "AB-12" || s.URL != "https://acme.example/enter" || s.Opened {
					t.Errorf("steps %v", steps)
				}
			})
		})
	}
}

func TestDeviceCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &canned{device: `{"device_code":"d","user_code":"u","verification_uri":"https://acme.example/"}`}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := SignIn(ctx, Definition{Provider: "acme", ClientID: "c", DeviceURL: "https://acme.example/device", TokenURL: "https://acme.example/token"},
			Options{Client: &http.Client{Transport: server}})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestDeviceAnswers(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		kind   Kind
		words  string
	}{
		{"no code", say(200, "application/json", `{"error":"device_flow_disabled"}`), BadAnswer, "no code"},
		{"page with a scheme of its own", say(200, "application/json", `{"device_code":"d","user_code":"u","verification_uri":"file:///etc/passwd"}`), BadAnswer, "no usable page"},
		{"page on another machine without encryption", say(200, "application/json", `{"device_code":"d","user_code":"u","verification_uri":"http://acme.example"}`), BadAnswer, "no usable page"},
		{"refused", say(400, "application/json", `{"error":"unauthorized_client"}`), Refused, "unauthorized_client"},
		{"web page", say(404, "text/html", "<html>"), BadAnswer, "a web page (404"},
		{"huge", func(w http.ResponseWriter, _ *http.Request) { w.Write(bytes.Repeat([]byte("x"), 3<<20)) }, BadAnswer, "more than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			is := newIssuer(t)
			is.device = c.answer
			d := is.definition()
			d.AuthorizeURL, d.DeviceURL = "", is.url+"/device"
			_, err := is.person().signIn(t.Context(), d, is.person().options())
			wantError(t, err, c.kind, c.words)
		})
	}
}

func TestDeviceFlow(t *testing.T) {
	is := newIssuer(t)
	p := is.person()
	o := p.options()
	o.Flow = Device
	opened := ""
	o.Open = func(_ context.Context, address string) error { opened = address; return nil }
	d := is.definition()
	d.DeviceURL = is.url + "/device"
	d.DeviceParams = map[string]string{"audience": "x"}
	d.ClientSecret, d.ClientAuth = "client-secret", InHeader
	c, err := p.signIn(t.Context(), d, o)
	if err != nil || c.Access.Reveal() != access {
		t.Fatal(c, err)
	}
	if opened != is.url+"/enter" || !(<-p.steps).(DeviceStep).Opened {
		t.Errorf("opened %q", opened)
	}
	if f := is.forms[0]; f.Get("audience") != "x" || f.Get("scope") != "a b" || f.Get("client_secret") != "" {
		t.Errorf("device request %v", f)
	}
	for i, h := range is.headers {
		if user, pass, ok := (&http.Request{Header: h}).BasicAuth(); !ok || user != "own-client" || pass != "client-secret" {
			t.Errorf("request %d: %q", i, user)
		}
	}
}

// A sign-in with a second exchange, and its renewal, in the way of GitHub Copilot.
func TestMint(t *testing.T) {
	is := newIssuer(t)
	d := is.definition()
	d.AuthorizeURL, d.DeviceURL = "", is.url+"/device"
	d.Mint = &Mint{URL: is.url + "/mint", Scheme: "token", Headers: map[string]string{"X-Editor": "own"}}
	d.BaseURL = BaseURL{FromToken: "proxy-ep", Fixed: "https://copilot-api.{domain}"}
	d.Domain, d.PublicDomain = "corp.example", "public.example"
	p := is.person()
	c, err := p.signIn(t.Context(), d, p.options())
	if err != nil {
		t.Fatal(err)
	}
	if c.Refresh.Reveal() != access || !strings.HasPrefix(c.Access.Reveal(), "tid=1;") || c.Extra("enterpriseUrl") != "corp.example" {
		t.Errorf("stored %v, domain %q", c, c.Extra("enterpriseUrl"))
	}
	if left := time.Until(c.Expires); left < 58*time.Minute || left > time.Hour {
		t.Errorf("expires in %v", left)
	}
	h := is.headers[len(is.headers)-1]
	if h.Get("Authorization") != "token "+access || h.Get("X-Editor") != "own" {
		t.Errorf("second exchange with %v", h)
	}
	if got := NewDefinitions(d).Use("acme", c); got != (auth.Use{BaseURL: "https://api.team.example.com"}) {
		t.Errorf("requests %v", got)
	}

	is.mint = say(200, "application/json", `{"token":"tid=2;x=y","expires_at":"2100-01-01T00:00:00Z"}`)
	again, err := Renew(t.Context(), d, c, Options{Client: is.client()})
	if err != nil || again.Access.Reveal() != "tid=2;x=y" || again.Refresh.Reveal() != access || again.Expires.Year() != 2100 || again.Extra("clientId") != "own-client" {
		t.Errorf("renewed %v, %v", again, err)
	}
	if got := NewDefinitions(d).Use("acme", again); got != (auth.Use{BaseURL: "https://copilot-api.corp.example"}) {
		t.Errorf("requests %v", got)
	}
	if !strings.HasPrefix(c.Access.Reveal(), "tid=1;") {
		t.Error("renewing changed the credential that was given")
	}
	for _, bad := range []struct {
		answer http.HandlerFunc
		kind   Kind
		words  string
	}{
		{say(401, "application/json", `{"message":"Bad credentials access-secret-1"}`), Ended, "(401 Unauthorized: Bad credentials (hidden))"},
		{say(404, "application/json", `{"message":"Not Found"}`), Refused, "no token is given for the account"},
		{say(200, "application/json", `{}`), BadAnswer, `no "token"`},
		{say(200, "application/json", `{"token":"t","expires_at":"soon"}`), BadAnswer, `no time in "expires_at"`},
		{say(200, "text/html", `<html>`), BadAnswer, "a web page"},
	} {
		is.mint = bad.answer
		_, err := Renew(t.Context(), d, c, Options{Client: is.client()})
		wantError(t, err, bad.kind, bad.words)
		if errors.Is(err, auth.ErrSignInEnded) != (bad.kind == Ended) {
			t.Errorf("%v: an end of the sign-in?", err)
		}
	}
}
