package wire

import "context"

// TransportError words an error of an HTTP client as Send does, for requests that
// formats make beside their call, as for a token: ErrAborted when outer, the
// caller's context, ended, the *TimeoutError that is the cause of inner's end, a
// *ConnectionError, or what no other attempt would change.
func TransportError(inner, outer context.Context, err error) error {
	return failure(inner, outer, err)
}
