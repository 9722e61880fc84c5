package wire

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"testing"

	"github.com/pinch-agent/pinch/llm"
)

func TestHeader(t *testing.T) {
	h := Host{Version: "1.2"}.Default()
	product := &llm.Attribution{Name: "pinch", URL: "https://x.test", Categories: []string{"a", "b"}}
	for _, c := range []struct {
		name  string
		model llm.Model
		opts  llm.Options
		want  map[string]string
	}{
		{"plain", llm.Model{}, llm.Options{Identity: llm.Identity{Attribution: product}}, nil},
		{"OpenRouter", llm.Model{BaseURL: "https://openrouter.ai/api"}, llm.Options{Identity: llm.Identity{Attribution: product}},
			map[string]string{"Http-Referer": "https://x.test", "X-Openrouter-Title": "pinch", "X-Openrouter-Categories": "a,b"}},
		{"NVIDIA", llm.Model{Provider: "nvidia"}, llm.Options{Identity: llm.Identity{Attribution: product}},
			map[string]string{"X-Billing-Invoke-Origin": "Pinch"}},
		{"OpenCode", llm.Model{BaseURL: "https://opencode.ai/inference"}, llm.Options{SessionID: "s", Identity: llm.Identity{Attribution: product}},
			map[string]string{"X-Opencode-Session": "s", "X-Opencode-Client": "pinch"}},
		{"a host below OpenCode's", llm.Model{BaseURL: "https://a.opencode.ai"}, llm.Options{SessionID: "s", Identity: llm.Identity{Attribution: product}}, nil},
		{"without attribution", llm.Model{Provider: "openrouter"}, llm.Options{}, nil},
		{"overridden", llm.Model{Headers: map[string]string{"x-a": "model", "X-B": "model"}},
			llm.Options{Headers: map[string]*string{"X-A": new("request"), "accept": nil}},
			map[string]string{"X-A": "request", "X-B": "model", "Accept": "-"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			header := h.Header(&c.model, &c.opts)
			Override(header, &c.model, &c.opts)
			want := map[string]string{"Accept": "application/json", "Content-Type": "application/json"}
			maps.Copy(want, c.want)
			maps.DeleteFunc(want, func(_, v string) bool { return v == "-" })
			agent := header.Get("User-Agent")
			header.Del("User-Agent")
			got := map[string]string{}
			for k := range header {
				got[k] = header.Get(k)
			}
			if !maps.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			if !regexp.MustCompile(`^pinch/1\.2 \(\w+; go; \w+\)$`).MatchString(agent) {
				t.Errorf("user agent %q", agent)
			}
		})
	}
}

func TestUserAgentSuppressed(t *testing.T) {
	var seen []string
	url, h, _ := serve(t, func(w http.ResponseWriter, r *http.Request) { seen = r.Header.Values("User-Agent") })
	o := &llm.Options{Headers: map[string]*string{"user-agent": nil}}
	header := h.Header(&llm.Model{}, o)
	Override(header, &llm.Model{}, o)
	resp, err := h.Send(t.Context(), &Call{URL: url, Header: header}, &llm.Model{}, o)
	if err != nil {
		t.Fatal(err)
	}
	resp.Close()
	if len(seen) != 0 {
		t.Errorf("sent %q", seen)
	}
}

func TestCopilot(t *testing.T) {
	image := &llm.Image{Data: "x", MimeType: "image/png"}
	for _, c := range []struct {
		messages []llm.Message
		want     []string // initiator, vision
	}{
		{[]llm.Message{llm.UserText("hi", 1)}, []string{"user", ""}},
		{[]llm.Message{&llm.User{Content: llm.Blocks(image)}, &llm.Assistant{}}, []string{"agent", "true"}},
		{[]llm.Message{&llm.ToolResult{Content: []llm.Block{image}}}, []string{"agent", "true"}},
		{nil, []string{"agent", ""}},
	} {
		h := http.Header{}
		Copilot(h, c.messages)
		if got := []string{h.Get("X-Initiator"), h.Get("Copilot-Vision-Request")}; !slices.Equal(got, c.want) {
			t.Errorf("got %v, want %v", got, c.want)
		}
	}
}

func TestCacheRetention(t *testing.T) {
	h := Host{Getenv: func(name string) string { return map[string]string{"PI_CACHE_RETENTION": "long"}[name] }}.Default()
	for _, c := range []struct {
		opts llm.Options
		want string
	}{
		{llm.Options{}, "long"},
		{llm.Options{CacheRetention: "none"}, "none"},
		{llm.Options{Env: map[string]string{"PI_CACHE_RETENTION": ""}}, "short"},
	} {
		if got := h.CacheRetention(&c.opts); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
