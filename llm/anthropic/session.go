package anthropic

import (
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
)

// exceedsStrictLimits reports whether a service refuses a request because of
// what its strict tools ask for together.
func exceedsStrictLimits(err *wire.StatusError) bool {
	obj := err.ErrorObject()
	typ, _ := jsonwire.StringValue(jsonwire.Get(obj, "type"))
	if err.Status != 400 || typ != "invalid_request_error" {
		return false
	}
	msg, _ := jsonwire.StringValue(jsonwire.Get(obj, "message"))
	return wire.ExceedsStrictLimits(msg)
}
