package print

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/settings"
	"github.com/pinch-agent/pinch/llm"
)

// Explain says in one line why an answer failed and what a person can do. saved
// says whether the session is on disk, where -c finds it.
func Explain(m *llm.Assistant, window int, saved bool) string {
	text := OneLine(m.ErrorMessage)
	if text == "" {
		text = "the model failed without a reason"
	}
	said := plainly(m.Provider, text)
	if advice := advise(m, text, window, saved); advice != "" {
		said = strings.TrimRight(said, ". ") + ". " + advice
	}
	return "Error: " + said
}

// maxQuote is how much of what a service says is shown, in bytes. The session
// has more.
const maxQuote = 500

// plainly puts what a service sends into words: a refusal, which is a status
// with the body of the response, or an error object.
func plainly(provider, text string) string {
	if strings.HasPrefix(text, "Server requested ") {
		// The refusal stands behind the sentence on the delay.
		if i := strings.Index(text, "). "); i >= 0 {
			return text[:i+3] + plainly(provider, text[i+3:])
		}
	}
	status, body := refusal(text)
	if status == "" {
		return cut(message(text))
	}
	if body == "" || body == "status code (no body)" {
		body = "no reason given"
	}
	return provider + " answers " + status + ": " + cut(message(body))
}

// message is the sentence in what a service sends: that of an error object, the
// title of a page, else the text itself.
func message(text string) string {
	if strings.HasPrefix(text, "{") {
		for _, path := range [][]string{{"error", "message"}, {"message"}, {"error"}, {"detail"}, {"error", "status"}} {
			v := jsontext.Value(text)
			for _, name := range path {
				v = jsonwire.Get(v, name)
			}
			if s, ok := jsonwire.StringValue(v); ok {
				if s = OneLine(s); s != "" {
					return message(s) // it may be a whole page
				}
			}
		}
	}
	lower := strings.ToLower(text)
	if !strings.HasPrefix(lower, "<!doctype html") && !strings.HasPrefix(lower, "<html") {
		// The words of the status line may stand before a page.
		if reason, rest, ok := strings.Cut(text, ": <"); ok && len(reason) <= maxReason {
			if page := message("<" + rest); strings.HasPrefix(page, aPage) {
				return page
			}
		}
		return text
	}
	if len(lower) == len(text) { // so that positions fit
		if _, after, ok := strings.Cut(lower, "<title>"); ok {
			from := len(text) - len(after)
			if n := strings.Index(after, "</title>"); n > 0 {
				return aPage + ", " + strings.TrimSpace(text[from:from+n])
			}
		}
	}
	return aPage
}

const (
	aPage     = "a web page"
	maxReason = 100 // bytes of the words of a status line
)

func cut(s string) string {
	if len(s) <= maxQuote {
		return s
	}
	n := maxQuote
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

func advise(m *llm.Assistant, text string, window int, saved bool) string {
	lower := strings.ToLower(text)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(lower, w) {
				return true
			}
		}
		return false
	}
	status, body := refusal(text)
	switch {
	case m.StopReason == llm.StopAborted:
		return ""
	case llm.IsContextOverflow(m, window):
		return "The conversation is too long for " + m.Model + ": start a new session, or take a model with a larger window (--model)."
	case status == "401" || status == "403" || has("no api key", "authentication_error", "invalid api key", "unauthorized"):
		return "Check the key of " + m.Provider + ": its environment variable, auth.json, models.json or --api-key; pinch auth status shows which one counts."
	case status == "407":
		return "Put the user and the password of the proxy into its address, in HTTP_PROXY or the httpProxy setting."
	case status == "402" || has("insufficient_quota", "quota exceeded", "billing", "available balance"):
		return "Check the account of " + m.Provider + ", or take another model (--model)."
	case status == "404" || has("not_found_error", "model not found"):
		return "Check the model id and the provider's address; --list-models shows what is set up."
	case strings.HasPrefix(lower, "the recording ") && has(" is over: "):
		return "Record a longer run (--record), or take another model (--model)."
	case (status == "429" || has("rate limit", "too many requests")) && !saved:
		return "Wait a while and try again, or take another model (--model)."
	case status == "429" || has("rate limit", "too many requests"):
		return "Wait a while and go on with -c, or take another model (--model)."
	case has("proxyconnect", "the proxy cannot be used"):
		return "Check the proxy that HTTPS_PROXY, HTTP_PROXY or the httpProxy setting names."
	case strings.Contains(lower, "the proxy ") && strings.Contains(lower, " refuses to connect ("):
		return "" // it says what to do
	case has("certificate", "does not speak tls"):
		return "Check baseUrl of " + m.Provider + " in models.json, and the certificates that this system trusts."
	case has("connection refused", "no such host", "network is unreachable", "econnrefused", "enotfound"):
		return "Check the network and the provider's address in models.json."
	case strings.HasPrefix(status, "2") && !saysError(body):
		return "Check baseUrl and api of " + m.Provider + " in models.json: they have to name a service that streams its answers."
	case strings.HasPrefix(status, "3"):
		return "Check baseUrl of " + m.Provider + " in models.json: the service has another address."
	case (llm.IsRetryable(m) || strings.HasPrefix(status, "5")) && !saved:
		return "Try again in a while."
	case llm.IsRetryable(m) || strings.HasPrefix(status, "5"):
		return "Try again in a while: -c goes on with this session."
	case status != "":
		return "The provider refused the request: change what it names, or take another model (--model)."
	case m.StopReason != llm.StopError || has("models.json", " --", " -c "):
		return ""
	case !saved:
		return "Try again, or take another model (--model)."
	}
	return "Try again with -c, which goes on with this session, or take another model (--model)."
}

// saysError reports whether a response of any status is an error in its own words.
func saysError(body string) bool {
	said := message(body)
	return strings.HasPrefix(body, "{") && said != body && !strings.HasPrefix(said, "{") && !strings.HasPrefix(said, aPage)
}

// refusal is the HTTP status and the body in an error text that tells of a
// response, "" and the text for others. The wire formats put it as "401 body",
// "401: body" or "ACME API error (401): body", or leave the status in the body.
func refusal(text string) (status, body string) {
	if status = leadingStatus(text); status != "" {
		return status, strings.TrimSpace(strings.TrimPrefix(text[len(status):], ":"))
	}
	if name, rest, ok := strings.Cut(text, " API error ("); ok && !strings.ContainsAny(name, ":{<") {
		if number, rest, ok := strings.Cut(rest, "):"); ok && len(number) == 3 && leadingStatus(number) != "" {
			rest = strings.TrimSpace(rest)
			if again, inner := refusal(rest); again == number {
				rest = inner
			}
			return number, rest
		}
	}
	if strings.HasPrefix(text, "{") {
		code := string(jsonwire.Get(jsonwire.Get([]byte(text), "error"), "code"))
		if len(code) == 3 && leadingStatus(code) != "" {
			return code, text
		}
	}
	return "", text
}

// leadingStatus is the HTTP status that an error text begins with, "" for none.
func leadingStatus(text string) string {
	if len(text) < 3 || strings.Trim(text[:3], "0123456789") != "" {
		return ""
	}
	if len(text) > 3 && text[3] >= '0' && text[3] <= '9' {
		return ""
	}
	return text[:3]
}

// OneLine is text as one line that does nothing to a terminal but being shown:
// other people's words, such as names of files and answers of services, may hold
// sequences that move the cursor or turn the direction of writing. Passwords in
// addresses are left out.
func OneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return utf8.RuneError
		}
		return r
	}, strings.Join(strings.Fields(settings.WithoutPasswords(s)), " "))
}
