package catalog

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pinch-agent/pinch/auth"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// lister serves one list and notes what it was asked.
type lister struct {
	*httptest.Server
	body     string
	etag     string
	status   int
	handle   http.HandlerFunc
	requests []*http.Request
}

func serveList(t *testing.T, body string) *lister {
	t.Helper()
	l := &lister{body: body}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.requests = append(l.requests, r)
		switch {
		case l.handle != nil:
			l.handle(w, r)
		case l.status != 0:
			w.WriteHeader(l.status)
		case l.etag != "" && r.Header.Get("If-None-Match") == l.etag:
			w.WriteHeader(http.StatusNotModified)
		default:
			if l.etag != "" {
				w.Header().Set("Etag", l.etag)
			}
			fmt.Fprint(w, l.body)
		}
	}))
	t.Cleanup(l.Close)
	return l
}

// later is a time after that of the built-in facts.
func later() time.Time { return generated().Add(24 * time.Hour) }

func refreshable(t *testing.T, env map[string]string) *Catalog {
	t.Helper()
	c := open(t, "", env)
	c.o.StoreFile = filepath.Join(filepath.Dir(c.o.ModelsFile), "models-store.json")
	return c
}

const openRouterList = `{"data":[
	{"id":"anthropic/claude-opus-4.8","name":"Anthropic: Claude Opus 4.8","context_length":900000,"architecture":{"input_modalities":["text","image"],"output_modalities":["text"]},
	 "pricing":{"prompt":"0.000006","completion":"0.00003","input_cache_read":"0.0000006"},"top_provider":{"context_length":800000,"max_completion_tokens":120000},"supported_parameters":["tools","reasoning"]},
	{"id":"new/model","name":"New","context_length":64000,"architecture":{"input_modalities":["text"],"output_modalities":["text"]},"pricing":{"prompt":"0","completion":"0"},"top_provider":{"max_completion_tokens":null},"supported_parameters":["tools"]},
	{"id":"new/router","context_length":64000,"pricing":{"prompt":"-1","completion":"-1"},"supported_parameters":["tools"]},
	{"id":"draws/pictures","architecture":{"output_modalities":["image"]},"pricing":{"prompt":"0"}},
	{"id":"no/tools","supported_parameters":["temperature"]}]}`

func TestRefresh(t *testing.T) {
	c := refreshable(t, map[string]string{"OPENROUTER_API_KEY": "secret-key"})
	l := serveList(t, openRouterList)
	l.etag = `"one"`
	now := later()
	refresh := func(force bool) Refreshed {
		t.Helper()
		got, err := c.Refresh(t.Context(), RefreshOptions{
			Providers: []string{"openrouter"}, URL: l.URL + "/models", Force: force, Now: func() time.Time { return now },
		})
		if err != nil || len(got) != 1 {
			t.Fatalf("%v %v", got, err)
		}
		return got[0]
	}
	before := len(c.ModelsOf("openrouter"))
	if r := refresh(false); r.Outcome != RefreshUpdated || r.Models != 3 || r.Provider != "openrouter" {
		t.Errorf("%+v", r)
	}
	opus := c.Find("openrouter", "anthropic/claude-opus-4.8")
	if opus.Cost.Input != 6 || opus.Cost.Output != 30 || opus.Cost.CacheRead != 0.6 || opus.Cost.CacheWrite != 6.25 ||
		opus.ContextWindow != 800_000 || opus.MaxTokens != 120_000 || opus.ThinkingLevelMap[llm.LevelXHigh] == nil || opus.BaseURL != "https://openrouter.ai/api/v1" {
		t.Errorf("%+v", opus)
	}
	fresh := c.Find("openrouter", "new/model")
	if fresh == nil || fresh.API != apiCompletions || fresh.BaseURL != "https://openrouter.ai/api/v1" || fresh.Name != "New" ||
		fresh.ContextWindow != 64_000 || fresh.MaxTokens != defaultMaxTokens || fresh.Reasoning || fresh.AcceptsImages() {
		t.Errorf("%+v", fresh)
	}
	if router := c.Find("openrouter", "new/router"); router == nil || router.Cost.Input != 0 {
		t.Errorf("%+v", router)
	}
	if c.Find("openrouter", "draws/pictures") != nil || c.Find("openrouter", "no/tools") != nil || len(c.ModelsOf("openrouter")) != before+2 {
		t.Error("models that are of no use were taken over, or others lost")
	}
	if choice, err := c.Resolve("new/model", ""); err != nil || choice.Model.Provider != "openrouter" {
		t.Errorf("%+v %v", choice, err)
	}
	for _, r := range l.requests {
		for name, values := range r.Header {
			if strings.Contains(strings.Join(values, " "), "secret-key") {
				t.Errorf("the key was sent in %s", name)
			}
		}
	}
	// Not again within four hours, unless it is forced; then the service may say
	// that nothing changed.
	now = now.Add(3 * time.Hour)
	if r := refresh(false); r.Outcome != RefreshRecent || len(l.requests) != 1 {
		t.Errorf("%+v after %d requests", r, len(l.requests))
	}
	if r := refresh(true); r.Outcome != RefreshUnchanged || l.requests[1].Header.Get("If-None-Match") != `"one"` {
		t.Errorf("%+v", r)
	}
	now = now.Add(3 * time.Hour)
	if r := refresh(false); r.Outcome != RefreshRecent {
		t.Errorf("an unchanged list does not count as asked for: %+v", r)
	}
	now = now.Add(5 * time.Hour)
	l.etag, l.body = `"two"`, `{"data":[{"id":"newer/model"}]}`
	if r := refresh(false); r.Outcome != RefreshUpdated || c.Find("openrouter", "newer/model") == nil {
		t.Errorf("%+v", r)
	}
	// Another catalogue finds it in the file, which anyone may read.
	other := New(Options{StoreFile: c.o.StoreFile})
	if other.Find("openrouter", "newer/model") == nil {
		t.Error("the list is not in the file")
	}
	info, err := os.Stat(c.o.StoreFile)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o644 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(c.o.StoreFile), ".*.tmp"))
	if err != nil || left != nil {
		t.Errorf("%v %v", left, err)
	}
}

// What stands in the file counts only when it is newer than the built-in facts,
// and the entries of others stay as they are.
func TestStoreFile(t *testing.T) {
	for _, cse := range []struct {
		name, text string
		found      bool
	}{
		{"newer", `{"deepseek":{"models":[{"id":"x"}],"checkedAt":%d}}`, true},
		{"from the service's own time", `{"deepseek":{"models":[{"id":"x"}],"checkedAt":%d,"lastModified":"Tue, 07 Jan 2020 10:00:00 GMT"}}`, false},
		{"pi's form", `{"deepseek":{"models":{"openai-completions":{"chat:x":{"name":"X"}}},"checkedAt":%d}}`, true},
		{"another host", `{"deepseek":{"models":[{"id":"x","baseUrl":"https://evil.example/v1"}],"checkedAt":%d}}`, false},
		{"no list", `{"deepseek":{"models":7,"checkedAt":%d}}`, false},
		{"no entry", `{"deepseek":[%d]}`, false},
		{"no JSON", `{"deepseek":{"models":[{"id":"x"}],"checkedAt":%d}`, false},
	} {
		path := filepath.Join(t.TempDir(), "models-store.json")
		if err := os.WriteFile(path, fmt.Appendf(nil, cse.text, later().UnixMilli()), 0o600); err != nil {
			t.Fatal(err)
		}
		c := New(Options{StoreFile: path})
		if got := c.Find("deepseek", "x") != nil; got != cse.found {
			t.Errorf("%s: found %v", cse.name, got)
		}
		if c.Find("deepseek", "deepseek-v4-pro") == nil {
			t.Errorf("%s: a built-in model is gone", cse.name)
		}
	}
	old := filepath.Join(t.TempDir(), "models-store.json")
	if err := os.WriteFile(old, fmt.Appendf(nil, `{"deepseek":{"models":[{"id":"x"}],"checkedAt":%d},"other":{"mine":[1, 2]}}`, generated().Add(-time.Hour).UnixMilli()), 0o600); err != nil {
		t.Fatal(err)
	}
	c := New(Options{StoreFile: old})
	if c.Find("deepseek", "x") != nil {
		t.Error("a list older than the built-in one counts")
	}
	l := serveList(t, `[{"id":"y","contextWindow":1000}]`)
	if _, err := c.Refresh(t.Context(), RefreshOptions{Providers: []string{"groq"}, URL: l.URL, Now: later}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(old)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(jsonwire.Get(text, "other")); got != `{"mine":[1, 2]}` || jsonwire.Get(text, "deepseek") == nil {
		t.Errorf("the other entries became %s", text)
	}
	if m := c.Find("groq", "y"); m == nil || m.ContextWindow != 1000 || m.MaxTokens != 1000 {
		t.Errorf("%+v", m)
	}
}

// Whatever a service answers, a bad list changes nothing and says why.
func TestBadLists(t *testing.T) {
	many := "[" + strings.Repeat(`{"id":"a"},`, maxListed) + `{"id":"a"}]`
	for _, cse := range []struct{ name, body, want string }{
		{"empty", "", "it is empty"},
		{"page", "<!DOCTYPE html><html></html>", "it is a web page"},
		{"no JSON", `{"data":[`, "it is no JSON"},
		{"text", `"models"`, "it has no list of models"},
		{"no list", `{"error":{"message":"no"}}`, "it has no models that could be used"},
		{"wrong list", `{"data":{"a":1}}`, "it has no list of models"},
		{"no models", `{"data":[]}`, "it has no models that could be used"},
		{"nothing of use", `{"data":[{"id":"a","supported_parameters":[]}]}`, "it has no models that could be used"},
		{"elements", `{"models":["a"]}`, "entry 0 is no object"},
		{"no id", `{"models":[{"id":"a"},{"name":"b"}]}`, "entry 1: id is required"},
		{"wrong type", `{"models":[{"id":"a","contextWindow":"many"}]}`, "entry 0: contextWindow expected a number, found a string"},
		{"wrong price", `{"data":[{"id":"a","pricing":{"prompt":"cheap"}}]}`, "entry 0: cost/input expected a number, found a string"},
		{"negative price", `{"models":[{"id":"a","cost":{"input":-1}}]}`, "entry 0 (a) has a price that is negative"},
		{"negative price per token", `{"data":[{"id":"a","pricing":{"prompt":"-0.5"}}]}`, "entry 0 (a) has a price that is negative"},
		{"absurd price", `{"models":[{"id":"a","cost":{"tiers":[{"inputTokensAbove":1,"input":1e9,"output":1,"cacheRead":1,"cacheWrite":1}]}}]}`, "entry 0 (a) has a price"},
		{"absurd window", `{"models":[{"id":"a","contextWindow":1e15}]}`, "entry 0 (a) has limits of tokens that no model has"},
		{"another host", `{"models":[{"id":"a","baseUrl":"https://evil.example/v1"}]}`, "entry 0 (a) names an address that groq does not have"},
		{"window beyond numbers", `{"data":[{"id":"a","context_length":1e30}]}`, "entry 0: contextWindow expected a number of tokens"},
		{"window below one", `{"models":[{"id":"a","contextWindow":0.5}]}`, "entry 0: contextWindow expected a number of tokens"},
		{"direction of writing", `{"models":[{"id":"a\u202eb"}]}`, "entry 0 has a name that cannot be shown"},
		{"another path", `{"models":[{"id":"a","baseUrl":"https://api.groq.com/other"}]}`, "entry 0 (a) names an address that groq does not have"},
		{"another format", `{"models":[{"id":"a","api":"anthropic-messages"}]}`, "entry 0 (a) names a wire format that groq does not speak"},
		{"control characters", `{"models":[{"id":"a\u001b[31m"}]}`, "entry 0 has a name that cannot be shown"},
		{"blanks", `{"models":[{"id":" a"}]}`, "entry 0 has a name that cannot be shown"},
		{"too many", many, "it has more than 10000 models"},
		{"catalogue of another format", `{"anthropic-messages":{"chat:a":{}}}`, "entry 0 (a) names a wire format that groq does not speak"},
	} {
		c := refreshable(t, nil)
		l := serveList(t, cse.body)
		got, err := c.Refresh(t.Context(), RefreshOptions{Providers: []string{"groq"}, URL: l.URL, Now: later})
		if err != nil || len(got) != 1 {
			t.Fatalf("%s: %v %v", cse.name, got, err)
		}
		r := got[0]
		wrong, ok := errors.AsType[*RefreshError](r.Err)
		if r.Outcome != RefreshFailed || !ok || !strings.HasPrefix(wrong.Cause.Error(), cse.want) || strings.Contains(r.Err.Error(), "\n") {
			t.Errorf("%s: %+v", cse.name, r)
		}
		if _, err := os.Stat(c.o.StoreFile); err == nil {
			t.Errorf("%s: something was kept", cse.name)
		}
		if len(c.ModelsOf("groq")) != len(New(Options{}).ModelsOf("groq")) {
			t.Errorf("%s: the models are others", cse.name)
		}
	}
}

// A list sets facts alone: no headers, no members of the request's body.
func TestListsSetFactsAlone(t *testing.T) {
	c := refreshable(t, nil)
	l := serveList(t, `{"models":[{"id":"a","headers":{"X-Key":"$GROQ_API_KEY"},"samplingParams":{"store":true},"provider":"openai",
		"compat":{"supportsStore":false,"thinkingFormat":"qwen","chatTemplateKwargs":{"x":1},"thinkingTokenBudgetField":"y","openRouterRouting":{"only":["evil"]},"allowedFallbackModels":[{}],"vllmPriority":3}}]}`)
	if r, err := c.Refresh(t.Context(), RefreshOptions{Providers: []string{"groq"}, URL: l.URL, Now: later}); err != nil || r[0].Outcome != RefreshUpdated {
		t.Fatalf("%+v %v", r, err)
	}
	m := c.Find("groq", "a")
	if m.Headers != nil || m.SamplingParams != nil || m.Provider != "groq" || string(m.Compat) != `{"supportsStore":false,"thinkingFormat":"qwen"}` {
		t.Errorf("%+v", m)
	}
	if text, err := os.ReadFile(c.o.StoreFile); err != nil || strings.Contains(string(text), "GROQ_API_KEY") {
		t.Errorf("%s %v", text, err)
	}
}

func TestRefreshFailures(t *testing.T) {
	c := refreshable(t, nil)
	groq := func(o RefreshOptions) RefreshOptions {
		o.Providers, o.Now = []string{"groq"}, later
		return o
	}
	l := serveList(t, `[{"id":"a"}]`)
	l.status = http.StatusBadGateway
	r, err := c.Refresh(t.Context(), groq(RefreshOptions{URL: l.URL}))
	if err != nil || r[0].Outcome != RefreshFailed || !strings.Contains(r[0].Err.Error(), "502 Bad Gateway") || len(l.requests) != refreshTries {
		t.Errorf("%+v %v after %d requests", r, err, len(l.requests))
	}
	l.status, l.requests = http.StatusNotFound, nil
	r, err = c.Refresh(t.Context(), groq(RefreshOptions{URL: l.URL}))
	if err != nil || !strings.Contains(r[0].Err.Error(), "404 Not Found") || len(l.requests) != 1 {
		t.Errorf("%+v %v after %d requests", r, err, len(l.requests))
	}
	// One failure that passes.
	l.status = 0
	tries := 0
	l.handle = func(w http.ResponseWriter, _ *http.Request) {
		if tries++; tries == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, l.body)
	}
	if r, err = c.Refresh(t.Context(), groq(RefreshOptions{URL: l.URL})); err != nil || r[0].Outcome != RefreshUpdated {
		t.Errorf("%+v %v", r, err)
	}
	// Too much of it.
	l.handle = func(w http.ResponseWriter, _ *http.Request) {
		chunk := []byte(strings.Repeat(" ", 1<<20))
		for range 17 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
	if r, err = c.Refresh(t.Context(), groq(RefreshOptions{URL: l.URL, Force: true})); err != nil || !strings.Contains(r[0].Err.Error(), "larger than 16 MiB") {
		t.Errorf("%+v %v", r, err)
	}
	if c.Find("groq", "a") == nil {
		t.Error("a failed refresh lost the last good list")
	}
	// A password in the address stays out of what is said.
	address := strings.Replace(l.URL, "http://", "http://me:hush@", 1)
	l.handle, l.status = nil, http.StatusForbidden
	if r, err = c.Refresh(t.Context(), groq(RefreshOptions{URL: address, Force: true})); err != nil || strings.Contains(fmt.Sprint(r[0].Err, r[0].URL), "hush") {
		t.Errorf("%+v %v", r, err)
	}
	l.Close()
	if r, err = c.Refresh(t.Context(), groq(RefreshOptions{URL: address, Force: true})); err != nil || r[0].Outcome != RefreshFailed || strings.Contains(r[0].Err.Error(), "hush") {
		t.Errorf("%+v %v", r, err)
	}
	// The context ends everything.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Refresh(ctx, groq(RefreshOptions{URL: address, Force: true})); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestRefreshMisuse(t *testing.T) {
	for _, cse := range []struct {
		name string
		o    RefreshOptions
		env  string
		want string
	}{
		{"unknown provider", RefreshOptions{Providers: []string{"nobody"}}, "", `Unknown provider "nobody"`},
		{"no address", RefreshOptions{Providers: []string{"groq"}}, "", "set modelsUrl for it in models.json"},
		{"an address for all", RefreshOptions{URL: "https://x.example"}, "", "an address needs the one provider"},
		{"no web address", RefreshOptions{Providers: []string{"groq"}, URL: "file:///etc/passwd"}, "", "must begin with https://"},
		{"offline", RefreshOptions{}, "PINCH_OFFLINE", ErrOffline.Error()},
		{"offline like pi", RefreshOptions{}, "PI_OFFLINE", ErrOffline.Error()},
	} {
		c := refreshable(t, map[string]string{cse.env: "1"})
		if _, err := c.Refresh(t.Context(), cse.o); err == nil || !strings.Contains(err.Error(), cse.want) {
			t.Errorf("%s: %v", cse.name, err)
		}
	}
	if _, err := New(Options{Env: auth.Env{Process: func(string) string { return "" }}}).Refresh(t.Context(), RefreshOptions{}); err == nil {
		t.Error("a refresh without a file to keep it")
	}
	// The store cannot be written.
	c := refreshable(t, nil)
	c.o.StoreFile = filepath.Join(c.o.ModelsFile, "below-a-file", "models-store.json")
	if err := os.WriteFile(c.o.ModelsFile, []byte(`{"providers":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	l := serveList(t, `[{"id":"a"}]`)
	if _, err := c.Refresh(t.Context(), RefreshOptions{Providers: []string{"groq"}, URL: l.URL}); err == nil {
		t.Error("a list that could not be kept counts as kept")
	}
}

// A provider of models.json may name its list, and its models then come from it.
func TestModelsURL(t *testing.T) {
	l := serveList(t, `{"object":"list","data":[{"id":"qwen3-coder","object":"model"},{"id":"mine","object":"model"}]}`)
	c := open(t, fmt.Sprintf(`{"providers":{
		"local": {"baseUrl":"http://127.0.0.1:1/v1","api":"openai-completions","apiKey":"none","modelsUrl":"%s/v1/models","models":[{"id":"mine","contextWindow":5000,"maxTokens":100}]},
		"together": {"modelsUrl":"%s/other"}
	}}`, l.URL, l.URL), nil)
	c.o.StoreFile = filepath.Join(filepath.Dir(c.o.ModelsFile), "models-store.json")
	if err := c.Problem(); err != nil {
		t.Fatal(err)
	}
	targets, err := c.targets(RefreshOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, target := range targets {
		ids = append(ids, target.provider.ID)
	}
	if got := strings.Join(ids, " "); got != "openrouter together local" {
		t.Errorf("without a choice it asks %s", got)
	}
	if r, err := c.Refresh(t.Context(), RefreshOptions{Providers: []string{"local"}, Now: later}); err != nil || r[0].Models != 2 {
		t.Fatalf("%+v %v", r, err)
	}
	if m := c.Find("local", "qwen3-coder"); m == nil || m.BaseURL != "http://127.0.0.1:1/v1" || m.API != apiCompletions || m.ContextWindow != defaultContextWindow {
		t.Errorf("%+v", m)
	}
	if m := c.Find("local", "mine"); m.ContextWindow != 5000 {
		t.Errorf("models.json does not win: %+v", m)
	}
}

func FuzzListing(f *testing.F) {
	for _, seed := range []string{
		openRouterList, "", "<html>", "[]", `{"data":[{"id":"a","pricing":{"prompt":1}}]}`, `{"models":[{"id":"a","cost":{"input":1e400}}]}`,
		`{"openai-completions":{"chat:a":{"id":"b"},"image:c":{}},"generatedAt":"x"}`, "\uFEFF[{\"id\":\"a\"}]",
		`[{"id":"openai/gpt-oss-20b","maxTokens":99999999,"thinkingLevelMap":{"off":null},"compat":{"supportsStore":true}}]`,
	} {
		f.Add([]byte(seed))
	}
	known, _ := builtinProvider("groq")
	existing := builtinModels(&known)
	f.Fuzz(func(t *testing.T, body []byte) {
		entries, err := readListing(body, &known, existing)
		if err != nil {
			if entries != nil || err.Error() == "" {
				t.Fatal("an error with a result or without words")
			}
			return
		}
		list := learn(&known, existing, entries)
		if len(list) < len(existing) {
			t.Fatal("a list took models away")
		}
		for _, m := range list {
			if m.ID == "" || m.Name == "" || m.Provider != "groq" || m.API != apiCompletions || m.BaseURL != known.BaseURL || m.Headers != nil ||
				m.Cost.Input < 0 || m.ContextWindow <= 0 || m.MaxTokens <= 0 || m.MaxTokens > m.ContextWindow || m.SamplingParams != nil {
				t.Fatalf("a list made %+v", m)
			}
		}
		// What was kept reads the same again.
		again, err := readListing(joined(entries), &known, existing)
		if err != nil || string(joined(again)) != string(joined(entries)) {
			t.Fatalf("kept %s, read %s, %v", joined(entries), joined(again), err)
		}
	})
}

func FuzzStore(f *testing.F) {
	f.Add([]byte(`{"groq":{"models":[{"id":"a"}],"checkedAt":1893456000000,"etag":"x","lastModified":"Tue, 07 Jan 2031 10:00:00 GMT"}}`))
	f.Add([]byte(`{"groq":{"models":{},"checkedAt":"2031-01-01T00:00:00Z"},"x":[]}`))
	f.Add([]byte(`{"groq":{"checkedAt":1e300,"models":[{}]}`))
	path := filepath.Join(f.TempDir(), "models-store.json")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		c := New(Options{StoreFile: path})
		if c.Find("groq", "openai/gpt-oss-120b") == nil {
			t.Fatal("a built-in model is gone")
		}
		if err := c.save("groq", &storeEntry{models: []byte(`[{"id":"saved"}]`), checkedAt: later()}); err != nil {
			t.Fatal(err)
		}
		if New(Options{StoreFile: path}).Find("groq", "saved") == nil {
			t.Fatal("what was saved is not there")
		}
	})
}

// What stands in the place of the store and is no file is left alone, also
// behind a symbolic link.
func TestRefreshReplacesOnlyFiles(t *testing.T) {
	c := refreshable(t, nil)
	l := serveList(t, `{"data":[{"id":"new"}]}`)
	folder := filepath.Join(t.TempDir(), "folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	places := []string{folder}
	if err := os.Symlink(folder, c.o.StoreFile); err == nil { // not everywhere allowed
		places = append(places, c.o.StoreFile)
	}
	for _, place := range places {
		c.o.StoreFile = place
		_, err := c.Refresh(t.Context(), RefreshOptions{Providers: []string{"groq"}, URL: l.URL, Force: true})
		if err == nil || !strings.Contains(err.Error(), "is not a regular file") {
			t.Errorf("%s: got %v", place, err)
		}
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			t.Errorf("%s: the folder is gone: %v", place, err)
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(place), ".*.tmp")); left != nil {
			t.Errorf("left: %v", left)
		}
	}
}
