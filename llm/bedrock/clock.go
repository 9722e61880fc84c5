package bedrock

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/pinch-agent/pinch/internal/wire"
)

// Signatures hold the time, and the service refuses those that are some minutes
// off its own.

// amzDate is the form of times in signatures and in what is said about them.
const amzDate = "20060102T150405Z"

// minSkew is the difference from which on a clock is taken to be wrong: less
// than the service allows, more than a slow response explains.
const minSkew = 2 * time.Minute

// serviceTime is the time that a response tells: in its header, else in a
// message such as "Signature expired: … is now earlier than … (20260102T030405Z
// - 5 min.)", whose last time it is.
func serviceTime(header http.Header, message string) (time.Time, bool) {
	if t, err := http.ParseTime(header.Get("Date")); err == nil {
		return t, true
	}
	for i := len(message) - len(amzDate); i >= 0; i-- {
		if t, err := time.Parse(amzDate, message[i:i+len(amzDate)]); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// clockRefused reports whether an error is about the time of the signature. Some
// of its codes stand for other faults of a signature too.
func (x *exchange) clockRefused(err *wire.StatusError, code, message string) bool {
	switch code {
	case "RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture":
		return true
	case "InvalidSignatureException", "SignatureDoesNotMatch", "AuthFailure", "SignatureExpired":
		if strings.Contains(message, "Signature expired") || strings.Contains(message, "Signature not yet current") {
			return true
		}
		skew, ok := x.skewBy(err, message)
		return ok && (skew-time.Duration(x.api.skew.Load())).Abs() >= minSkew
	}
	return false
}

// skewBy is what the service's clock is ahead of ours.
func (x *exchange) skewBy(err *wire.StatusError, message string) (time.Duration, bool) {
	t, ok := serviceTime(err.Header, message)
	if !ok {
		return 0, false
	}
	return t.Sub(x.api.host.Now()).Round(time.Second), true
}

// correctClock takes over the service's time from a refusal for the time, and
// reports whether that makes a difference.
func (x *exchange) correctClock(err *wire.StatusError, code, message string) bool {
	if !x.clockRefused(err, code, message) {
		return false
	}
	skew, ok := x.skewBy(err, message)
	if !ok || (skew-time.Duration(x.api.skew.Load())).Abs() < minSkew {
		return false
	}
	x.api.skew.Store(int64(skew))
	return true
}

// clockText says what to do about a refusal for the time.
func (x *exchange) clockText(err *wire.StatusError, message string) string {
	skew, ok := x.skewBy(err, message)
	switch {
	case !ok || skew.Abs() < minSkew:
		return "AWS refuses the request because of its time: set the clock of this machine right."
	case skew > 0:
		return fmt.Sprintf("The clock of this machine is %s behind that of AWS, which refuses the request: set it right.", skew)
	default:
		return fmt.Sprintf("The clock of this machine is %s ahead of that of AWS, which refuses the request: set it right.", -skew)
	}
}
