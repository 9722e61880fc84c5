package print

import (
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/llm"
)

func TestExplain(t *testing.T) {
	for _, c := range []struct{ message, want string }{
		{`400 {"error":{"type":"invalid_request_error","message":"shape wrong"}}`, "Error: acme answers 400: shape wrong. The provider refused"},
		{`400: {"message":"shape wrong."}`, "Error: acme answers 400: shape wrong. The provider refused"},
		{`401 {"error":{"message":"bad key"}}`, "Error: acme answers 401: bad key. Check the key of acme"},
		{`402 no money`, "Error: acme answers 402: no money. Check the account"},
		{`407 status code (no body)`, "Error: acme answers 407: no reason given. Put the user and the password of the proxy"},
		{`404 {"error":"gone"}`, "Error: acme answers 404: gone. Check the model id"},
		{`429 {"detail":"slow\ndown"}`, "Error: acme answers 429: slow down. Wait a while"},
		{`500 oops`, "Error: acme answers 500: oops. Try again"},
		{`529`, "Error: acme answers 529: no reason given. Try again"},
		{`400 status code (no body)`, "Error: acme answers 400: no reason given. The provider refused"},
		{`302 {"message":"over there"}`, "Error: acme answers 302: over there. Check baseUrl of acme"},
		{`200 <!DOCTYPE html><html><head><TITLE> Log in </TITLE></head></html>`, "Error: acme answers 200: a web page, Log in. Check baseUrl and api of acme"},
		{`502 <html>` + strings.Repeat("x", 5000), "Error: acme answers 502: a web page. Try again"},
		{`500 ` + strings.Repeat("é", 5000), strings.Repeat("é", 250) + "…. Try again"},
		{`{"type":"error","error":{"message":"broken inside"}}`, "Error: broken inside. Try again with -c"},
		{`Server requested 90s retry delay (max: 60s). 429 {"error":{"message":"slow"}}`, "retry delay (max: 60s). acme answers 429: slow. "},
		{"404 {\"error\":{\"message\":\"\\u001b[2Jred\\u202e\"}}", "Error: acme answers 404: \uFFFD[2Jred\uFFFD. Check"},
		{`prompt is too long: 200001 tokens > 200000 maximum`, "start a new session"},
		{`Connection error: dial tcp: lookup acme.example: no such host`, "Check the network"},
		{`Connection error: proxyconnect tcp: dial tcp 127.0.0.1:9: connect: connection refused`, "Check the proxy"},
		{`Connection error: the proxy cannot be used (is HTTPS_PROXY or the httpProxy setting right?): dial tcp 127.0.0.1:9: connect: connection refused (ECONNREFUSED)`, "Check the proxy"},
		{`200 {"error":{"message":"quota gone"}}`, "Error: acme answers 200: quota gone. The provider refused"},
		{`200 {"error":{"message":"servers are currently busy"}}`, "Error: acme answers 200: servers are currently busy. Try again in a while"},
		{`{"error":{"message":"{\"ok\":true}","code":200,"status":"OK"}}`, "Error: acme answers 200: {\"ok\":true}. Check baseUrl and api of acme"},
		{`{"error":{"message":"<html><title>Log in</title></html>","code":200,"status":"OK"}}`, "Error: acme answers 200: a web page, Log in. Check baseUrl and api of acme"},
		{`200 {"ok":true}`, "Error: acme answers 200: {\"ok\":true}. Check baseUrl and api of acme"},
		{`the certificate of the server is refused: x509: unknown authority`, "Check baseUrl of acme"},
		{`ACME API error (401): {"message":"bad key","type":"auth"}`, "Error: acme answers 401: bad key. Check the key of acme"},
		{`Azure OpenAI API error (404): 404 <html>` + strings.Repeat("x", 5000), "Error: acme answers 404: a web page. Check the model id"},
		{`ACME API error (302): 302 status code (no body)`, "Error: acme answers 302: no reason given. Check baseUrl"},
		{`ACME API error (429): slow`, "Error: acme answers 429: slow. Wait a while"},
		{`ACME API error (high): slow`, "Error: ACME API error (high): slow. Try again"},
		{`{"error":{"message":"","code":302,"status":"Found"}}`, "Error: acme answers 302: Found. Check baseUrl"},
		{`{"error":{"message":"gone","code":404,"status":"NOT_FOUND"}}`, "Error: acme answers 404: gone. Check the model id"},
		{`{"error":{"message":"gone","code":"404"}}`, "Error: gone. Try again"},
		{`200: OK: <!DOCTYPE html><title>Log in</title>`, "Error: acme answers 200: a web page, Log in. Check baseUrl and api"},
		{`{"error":{"message":"<html><title>Log in</title></html>","code":404}}`, "Error: acme answers 404: a web page, Log in. Check the model id"},
		{`5000 apples`, "Error: 5000 apples. Try again with -c"},
		{``, "Error: the model failed without a reason"},
		{`the recording x.jsonl is over: it holds 2 requests`, "2 requests. Record a longer run (--record)"},
	} {
		got := Explain(&llm.Assistant{Provider: "acme", Model: "m", StopReason: llm.StopError, ErrorMessage: c.message}, 200_000, true)
		if !strings.Contains(got, c.want) || strings.Contains(got, "\n") {
			t.Errorf("%q\n got %q\nwant %q", c.message, got, c.want)
		}
	}
	if got := Explain(&llm.Assistant{Provider: "acme", StopReason: llm.StopAborted, ErrorMessage: "Request was aborted"}, 0, true); got != "Error: Request was aborted" {
		t.Error(got)
	}
}

// Without a session on disk there is nothing that -c could go on with.
func TestExplainUnsaved(t *testing.T) {
	for message, want := range map[string]string{
		"429 slow":    "Error: acme answers 429: slow. Wait a while and try again, or take another model (--model).",
		"500 oops":    "Error: acme answers 500: oops. Try again in a while.",
		"5000 apples": "Error: 5000 apples. Try again, or take another model (--model).",
	} {
		m := &llm.Assistant{Provider: "acme", Model: "m", StopReason: llm.StopError, ErrorMessage: message}
		if got := Explain(m, 200_000, false); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
