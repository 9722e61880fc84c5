package bedrock

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

// exchange is one request and its answer; it implements wire.Exchange.
type exchange struct {
	api      *API
	model    *llm.Model
	messages []llm.Message
	opts     llm.Options
	own      Options
	neutral  bool // Options has nothing to say
	kind     kind
	source   *wire.Source

	region     string
	origin     string // of the credentials that were used last
	chainKey   string // under which they are kept; "" when they are not
	signed     bool   // with credentials, not with a bearer token
	loose      bool   // send preferred strict tools without
	strictSent bool   // the last body had a preferred strict tool
	toolless   bool   // the last body declared no tools
	standIns   bool   // declare those that the history calls
	skewed     bool   // the clock was corrected for this request
	renewed    bool   // credentials that had expired were looked up anew

	decoder
}

// retries are attempts beyond the first, as the vendor's clients make them.
const retries = 2

// signingName is what signatures call the service.
const signingName = "bedrock"

func (x *exchange) env(name string) string { return x.api.host.Env(&x.opts, name) }

// Request implements wire.Exchange.
func (x *exchange) Request() (*wire.Call, error) {
	m, o := x.model, &x.opts
	x.loose = x.loose || x.api.loose.Has(o.SessionID)
	at, err := x.site()
	if err != nil {
		return nil, err
	}
	x.region = at.region
	body, err := x.body()
	if err != nil {
		return nil, err
	}
	sent, _, err := wire.Payload(body, m, o)
	if err != nil {
		return nil, err
	}
	c := &wire.Call{
		URL: at.endpoint + "/model/" + escapeID(m.ID) + "/converse-stream", Header: x.header(), Body: sent,
		ErrorText: x.errorText, AllResponses: true, Retry: x.retry, Frames: &x.frames, OwnStart: true,
	}
	if token := x.bearer(); token != "" {
		c.Header.Set("Authorization", "Bearer "+token)
		return c, nil
	}
	x.signed = true
	sum := sha256.Sum256(sent)
	hash := hex.EncodeToString(sum[:])
	c.Prepare = func(req *http.Request) error {
		keys, err := x.credentials(req.Context(), at)
		if err != nil {
			return err
		}
		x.origin = keys.origin
		c.Secrets = []string{keys.secret, keys.token}
		req.Header.Set("X-Amz-Content-Sha256", hash)
		now := x.api.host.Now().Add(time.Duration(x.api.skew.Load()))
		changing := takeChanging(req.Header)
		defer maps.Copy(req.Header, changing)
		return x.api.signer.SignHTTP(req.Context(), aws.Credentials{
			AccessKeyID: keys.id, SecretAccessKey: keys.secret, SessionToken: keys.token,
		}, req, hash, signingName, x.region, now)
	}
	return c, nil
}

// takeChanging takes the fields out of a header that connections and proxies own,
// so that a signature over them would not hold.
func takeChanging(h http.Header) http.Header {
	taken := http.Header{}
	for _, name := range [...]string{
		"Cache-Control", "Connection", "From", "Keep-Alive", "Max-Forwards", "Pragma", "Proxy-Connection", "Referer", "Te", "Trailer", "Upgrade",
	} {
		if v, ok := h[name]; ok {
			taken[name] = v
			delete(h, name)
		}
	}
	return taken
}

// skipsAuth reports whether a proxy signs in our place.
func (x *exchange) skipsAuth() bool { return x.env("AWS_BEDROCK_SKIP_AUTH") == "1" }

// bearer is the API key, "" to sign.
func (x *exchange) bearer() string {
	switch {
	case x.skipsAuth():
		return ""
	case x.own.BearerToken != "":
		return x.own.BearerToken
	case x.opts.APIKey != "":
		return x.opts.APIKey
	}
	return x.env("AWS_BEARER_TOKEN_BEDROCK")
}

// header makes the header fields. Those of the caller are part of what is
// signed, so that the ones that signing itself sets are not theirs to choose.
func (x *exchange) header() http.Header {
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", x.api.host.UserAgent(x.opts.Identity.UserAgent))
	for name, v := range x.opts.Headers {
		lower := strings.ToLower(name)
		switch {
		case strings.HasPrefix(lower, "x-amz-") || lower == "authorization" || lower == "host":
		case v != nil:
			h.Set(name, *v)
		case lower == "user-agent":
			h.Set(name, "") // absent, it would be Go's own
		default:
			h.Del(name)
		}
	}
	return h
}

// escapeID is a model's id as one segment of a path.
func escapeID(id string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for _, c := range []byte(id) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.', c == '~':
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
		}
	}
	return b.String()
}

// Rejected implements wire.Exchange: what the service's clock says, that
// credentials have expired, what its limits on strict tools are and whether it
// takes calls in the history of a request without tools is found out by asking.
func (x *exchange) Rejected(err *wire.StatusError) bool {
	code, message := errorCode(err), errorMessage(err.Body)
	switch {
	case x.strictSent && !x.loose && code == "ValidationException" && wire.ExceedsStrictLimits(message):
		x.loose = true
		x.api.loose.Add(x.opts.SessionID)
		x.diagnose("bedrock_strict_tools_fallback", errors.New(message), []byte(`{"reason":"strict_tool_limits_exceeded"}`))
		return true
	case x.toolless && !x.standIns && wire.WantsTools(err):
		x.standIns = true
		return true
	case x.signed && !x.skewed && x.correctClock(err, code, message):
		x.skewed = true
		return true
	case x.signed && !x.renewed && credentialsExpired(code) && x.api.chain.forget(x.chainKey):
		x.renewed = true
		return true
	}
	x.diagnose("bedrock_response_failure", nil, failureDetails(err.Status, code, requestID(err.Header)))
	return false
}

// retry implements Call.Retry by the rules of the vendor's own clients.
func (x *exchange) retry(err error, attempt int) (d time.Duration, asked, again bool) {
	base := 100 * time.Millisecond
	var status *wire.StatusError
	if errors.As(err, &status) {
		switch {
		case throttled(status):
			base = 500 * time.Millisecond
		case !transient(status):
			return 0, false, false
		}
		if d, ok := wire.ServerDelay(status.Header, x.api.host.Now()); ok {
			return d, true, true
		}
	} else if !wire.Retryable(err) {
		return 0, false, false
	}
	most := min(base<<attempt, 20*time.Second)
	return time.Duration(x.api.host.Random() * float64(most)), false, true
}

func throttled(err *wire.StatusError) bool {
	switch errorCode(err) {
	case "Throttling", "ThrottlingException", "ThrottledException", "RequestThrottled", "RequestThrottledException",
		"TooManyRequestsException", "ProvisionedThroughputExceededException", "RequestLimitExceeded",
		"BandwidthLimitExceeded", "SlowDown", "PriorRequestNotComplete", "ModelNotReadyException":
		return true
	}
	return err.Status == http.StatusTooManyRequests
}

func transient(err *wire.StatusError) bool {
	switch errorCode(err) {
	case "RequestTimeout", "RequestTimeoutException":
		return true
	}
	switch err.Status {
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

func credentialsExpired(code string) bool {
	switch code {
	case "ExpiredToken", "ExpiredTokenException", "UnrecognizedClientException", "InvalidClientTokenId":
		return true
	}
	return false
}

// errorCode is the service's name for an error response, "" for none.
func errorCode(err *wire.StatusError) string {
	code := err.Header.Get("X-Amzn-Errortype")
	for _, name := range [...]string{"code", "__type"} {
		if code == "" {
			code, _ = jsonwire.StringValue(jsonwire.Get(err.Body, name))
		}
	}
	code, _, _ = strings.Cut(code, ":")
	code, _, _ = strings.Cut(code, ",")
	if _, bare, ok := strings.Cut(code, "#"); ok {
		code = bare
	}
	return strings.TrimSpace(code)
}

// requestID is the service's number for a request, by which its support finds it.
func requestID(h http.Header) string {
	for _, name := range [...]string{"X-Amzn-Requestid", "X-Amzn-Request-Id", "X-Amz-Request-Id"} {
		if v := strings.TrimSpace(h.Get(name)); v != "" && len(v) <= maxRequestID {
			return v
		}
	}
	return ""
}

// maxRequestID bounds a request's number in bytes. A longer one is none, and
// one that is cut finds nothing.
const maxRequestID = 200

// failureDetails are the details of a diagnostic; what is not known is left out.
func failureDetails(status int, code, request string) []byte {
	o := jsonwire.Begin(nil)
	if status != 0 {
		o.Int("status", int64(status))
	}
	if strings.HasSuffix(code, "Exception") { // the service's own errors are all called so
		o.OptText("errorCode", code)
	}
	o.OptText("requestId", request)
	return o.End()
}

// errorText implements Call.ErrorText.
func (x *exchange) errorText(e *wire.StatusError) string {
	code := errorCode(e)
	if code == "" {
		return withHint(wire.PlainError(e))
	}
	message := errorMessage(e.Body)
	if message == "" {
		message = "status " + strconv.Itoa(e.Status)
	}
	switch text := errorText(code, message); {
	case !x.signed:
		return text
	case x.clockRefused(e, code, message):
		return x.clockText(e, message) + " (" + text + ")"
	case credentialsExpired(code) || code == "InvalidSignatureException":
		return text + " (signed with " + x.origin + ")"
	default:
		return text
	}
}

// errorText is an error of the service in words that tell what kind it is.
func errorText(code, message string) string {
	switch code {
	case "InternalServerException":
		code = "Internal server error"
	case "ModelStreamErrorException":
		code = "Model stream error"
	case "ValidationException":
		code = "Validation error"
	case "ThrottlingException":
		code = "Throttling error"
	case "ServiceUnavailableException":
		code = "Service unavailable"
	case "":
		return withHint(message)
	}
	return withHint(code + ": " + message)
}

// withHint says where a mode of data retention is set when an error is about it.
func withHint(text string) string {
	if strings.Contains(strings.ToLower(text), "data retention mode") {
		text += " See https://docs.aws.amazon.com/bedrock/latest/userguide/data-retention.html for supported data retention modes."
	}
	return text
}
