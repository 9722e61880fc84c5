package responses

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pinch-agent/pinch/internal/wire"
)

// codexToken makes an access token with these claims.
func codexToken(claims string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".sig"
}

const codexClaims = `{"https://api.openai.com/auth":{"chatgpt_account_id":"acct-1","x":"\u003e\u003f~~~"}}`

func TestAccountOf(t *testing.T) {
	padded := "e30." + base64.URLEncoding.EncodeToString([]byte(codexClaims+" ")) + ".sig"
	for name, c := range map[string]struct{ token, want string }{
		"a token":          {codexToken(codexClaims), "acct-1"},
		"padded":           {padded, "acct-1"},
		"not signed":       {strings.TrimSuffix(codexToken(codexClaims), "sig"), "acct-1"},
		"the last counts":  {codexToken(`{"https://api.openai.com/auth":{"chatgpt_account_id":"a","chatgpt_account_id":"b"}}`), "b"},
		"no token":         {"sk-key", ""},
		"nothing":          {"", ""},
		"two parts":        {"e30.e30", ""},
		"four parts":       {codexToken(codexClaims) + ".x", ""},
		"no base64":        {"e30.{}.x", ""},
		"no JSON":          {codexToken("x"), ""},
		"cut off":          {codexToken(codexClaims[:len(codexClaims)-1]), ""},
		"no object":        {codexToken("[]"), ""},
		"no claim":         {codexToken("{}"), ""},
		"no account":       {codexToken(`{"https://api.openai.com/auth":{}}`), ""},
		"empty account":    {codexToken(`{"https://api.openai.com/auth":{"chatgpt_account_id":""}}`), ""},
		"account a number": {codexToken(`{"https://api.openai.com/auth":{"chatgpt_account_id":1}}`), ""},
	} {
		got, err := accountOf(c.token)
		var bad *AccountError
		if got != c.want || (c.want == "") != errors.As(err, &bad) {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
}

var codexNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func codexStatus(status int, body string, header ...string) *wire.StatusError {
	e := &wire.StatusError{Status: status, Header: http.Header{}, Body: []byte(body)}
	for i := 0; i+1 < len(header); i += 2 {
		e.Header.Set(header[i], header[i+1])
	}
	e.Message = codexStatusText(e, codexNow)
	return e
}

func TestCodexStatusText(t *testing.T) {
	const limit = "You have hit your ChatGPT usage limit"
	for name, c := range map[string]struct {
		status     int
		body, want string
	}{
		"plan and time":         {429, `{"error":{"type":"usage_limit_reached","plan_type":"PLUS","resets_at":1767323450,"message":"m"}}`, limit + " (plus plan). Try again in ~7 min."},
		"plan":                  {403, `{"error":{"code":"usage_not_included","plan_type":"Free"}}`, limit + " (free plan)."},
		"seconds left":          {429, `{"error":{"code":"rate_limit_exceeded","resets_in_seconds":90.5}}`, limit + ". Try again in ~2 min."},
		"the end wins":          {429, `{"error":{"resets_at":1767323105,"resets_in_seconds":600}}`, limit + ". Try again in ~1 min."},
		"in the past":           {429, `{"error":{"resets_at":1,"plan_type":""}}`, limit + ". Try again in ~0 min."},
		"no numbers":            {429, `{"error":{"resets_at":"1767323450","resets_in_seconds":null,"plan_type":1}}`, limit + "."},
		"beyond all calendars":  {429, `{"error":{"resets_at":1e300,"resets_in_seconds":-5}}`, limit + "."},
		"429 without a code":    {429, `{"error":{"message":"slow down"}}`, limit + "."},
		"429 without an object": {429, `slow down`, "429 slow down"},
		"own words":             {400, `{"error":{"message":"bad input","code":"invalid"}}`, "bad input"},
		"no words":              {400, `{"error":{"code":"invalid"}}`, `400 {"code":"invalid"}`},
		"a text":                {400, `{"error":"bad"}`, `400 {"error":"bad"}`},
		"another object":        {401, `{"detail":"Unauthorized"}`, `401 {"detail":"Unauthorized"}`},
		"a page":                {502, "<html>bad gateway</html>\n", "502 <html>bad gateway</html>"},
		"nothing":               {503, "", "503 status code (no body)"},
		"long words":            {400, `{"error":{"message":"` + strings.Repeat("é", 4001) + `"}}`, strings.Repeat("é", 4000) + "... [truncated 1 chars]"},
	} {
		if got := codexStatus(c.status, c.body).Message; got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

func TestCodexRetry(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		attempt int
		delay   time.Duration
		asked   bool
		again   bool
	}{
		"503":                    {codexStatus(503, "busy"), 0, time.Second, false, true},
		"500 the third time":     {codexStatus(500, ""), 2, 4 * time.Second, false, true},
		"502 late":               {codexStatus(502, ""), 63, time.Minute, false, true},
		"504 with a delay":       {codexStatus(504, "", "retry-after-ms", "7", "retry-after", "9"), 5, 7 * time.Millisecond, true, true},
		"429 with seconds":       {codexStatus(429, "", "retry-after", "1.5"), 0, 1500 * time.Millisecond, true, true},
		"429 with a date":        {codexStatus(429, "", "retry-after", "Fri, 02 Jan 2026 03:04:15 GMT"), 0, 10 * time.Second, true, true},
		"429 rate limit":         {codexStatus(429, `{"error":{"code":"rate_limit_exceeded"}}`), 0, time.Second, false, true},
		"429 quota":              {codexStatus(429, `{"error":{"code":"insufficient_quota"}}`), 0, 0, false, false},
		"429 plan":               {codexStatus(429, `{"error":{"type":"usage_limit_reached"}}`), 0, 0, false, false},
		"403 plan":               {codexStatus(403, `{"error":{"code":"usage_not_included","message":"overloaded"}}`), 0, 0, false, false},
		"400":                    {codexStatus(400, `{"error":{"message":"bad"}}`), 0, 0, false, false},
		"400 with words":         {codexStatus(400, `{"error":{"message":"Overloaded, try later"}}`), 1, 2 * time.Second, false, true},
		"401":                    {codexStatus(401, ``, "retry-after", "1"), 0, 0, false, false},
		"the status says 5xx":    {codexStatus(501, ``), 0, 0, false, false},
		"503 which speaks money": {codexStatus(503, `billing service is down`), 0, time.Second, false, true},
		"no connection":          {&wire.ConnectionError{Cause: errors.New("refused")}, 1, 2 * time.Second, false, true},
		"no headers":             {&wire.TimeoutError{What: "no response headers", After: time.Second}, 0, time.Second, false, true},
		"another error":          {errors.New("no"), 0, time.Second, false, false},
		"a context's end":        {context.Canceled, 0, time.Second, false, false},
	} {
		d, asked, again := codexRetry(c.err, c.attempt, codexNow)
		if again != c.again || again && (d != c.delay || asked != c.asked) {
			t.Errorf("%s: %v, %v, %v; want %v, %v, %v", name, d, asked, again, c.delay, c.asked, c.again)
		}
	}
}

func TestCodexEventError(t *testing.T) {
	for event, want := range map[string]string{
		`{"type":"error","code":"c","message":"m"}`:                      "Codex error: m",
		`{"type":"error","code":"c","message":""}`:                       "Codex error: c",
		`{"type":"error","error":{"code":"c","message":"m"}}`:            "Codex error: m",
		`{"type":"error","message":null,"error":{"code":"c"}}`:           "Codex error: c",
		`{"type":"error",  "x":1.50}`:                                    `Codex error: {"type":"error","x":1.5}`,
		`{"type":"error","message":"` + strings.Repeat("x", 4002) + `"}`: "Codex error: " + strings.Repeat("x", 4000) + "... [truncated 2 chars]",
	} {
		if got := codexEventError(nil, []byte(event)).Error(); got != want {
			t.Errorf("%.60s: got %.80s, want %.80s", event, got, want)
		}
	}
}

func TestCodexFailed(t *testing.T) {
	for response, want := range map[string]string{
		`{"status":"failed","error":{"code":"c","message":"m"}}`:               "m",
		`{"status":"failed","error":{"code":"c"}}`:                             "Codex response failed: c",
		`{"status":"failed","error":null,"incomplete_details":{"reason":"r"}}`: "Codex response failed: r",
		`{"status":"failed"}`: "Codex response failed",
		``:                    "Codex response failed",
	} {
		if got := codexFailed([]byte(response)).Error(); got != want {
			t.Errorf("%s: got %q, want %q", response, got, want)
		}
	}
}

// FuzzCodexWords feeds what a service may say to all that reads it.
func FuzzCodexWords(f *testing.F) {
	f.Add(429, `{"error":{"code":"usage_limit_reached","plan_type":"Plus","resets_at":1767323450.5,"resets_in_seconds":1e308}}`, "1")
	f.Add(503, "busy", "Fri, 02 Jan 2026 03:04:15 GMT")
	f.Add(400, `{"type":"error","error":{"code":"c"}}`, "-1")
	f.Add(200, codexToken(codexClaims), "1e300")
	f.Fuzz(func(t *testing.T, status int, text, delay string) {
		e := codexStatus(status, text, "Retry-After", delay)
		if e.Message == "" {
			t.Error("an error without words")
		}
		if d, _, again := codexRetry(e, 3, codexNow); again && d < 0 {
			t.Errorf("a wait of %v", d)
		}
		if err := codexEventError(nil, []byte(text)); err == nil || err.Error() == "" {
			t.Error("an event without words")
		}
		if err := codexFailed([]byte(text)); err.Error() == "" {
			t.Error("a failure without words")
		}
		if account, err := accountOf(text); (account == "") == (err == nil) {
			t.Errorf("account %q, %v", account, err)
		}
	})
}
