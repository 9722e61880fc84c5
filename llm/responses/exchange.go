package responses

import (
	"context"
	"sync"

	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

// dialect is what one wire format of this package does its own way. All others
// of the protocol is shared.
type dialect struct {
	id string // llm.Model.API

	// strict is the default of Compat.SupportsStrictMode; notStrict is the JSON
	// of the member strict of tools that are not enforced, false or null.
	strict    bool
	notStrict string
	// callIDs are the providers that know ids made of a call and an item.
	callIDs []string

	// noSampling leaves out sampling parameters, which the service does not take.
	noSampling bool

	// offIsEffort sends an effort like others for thinking that is off.
	offIsEffort bool

	// prepare runs first and may set the exchange's name, url, session and own
	// options, or say why no request can be made; nil for nothing to do.
	prepare func(x *exchange) error
	// members appends the members of a body in the order of the service.
	members func(x *exchange, w *wire.Body, c *conversation)
	// call is the request around a body: address, header, wording of errors,
	// rule of retries.
	call func(x *exchange, body []byte) (*wire.Call, error)

	// errorEvent is the error of an event of type error, given whole with the
	// name that it had in the stream.
	errorEvent func(name, event []byte) error
	// failed is the error of the response of response.failed, whose status then
	// does not become the raw stop reason. Where it is nil, the words are those
	// of the format of OpenAI.
	failed func(response []byte) error
	// done takes response.done for response.completed.
	done bool
	// endTurn reads end_turn of the last response.
	endTurn bool
	// anyStatus takes a status that it does not know for none.
	anyStatus bool
}

// service is what a wire format keeps between requests.
type service struct {
	host    *wire.Host
	dialect *dialect

	mu      sync.Mutex
	compats map[compatKey]*Compat
}

func newService(c Config, d *dialect) *service { return &service{host: c.host(), dialect: d} }

// exchange is the exchange of a request with the plain options; with sets those
// of the wire format.
func (s *service) exchange(m *llm.Model, req *llm.Request) *exchange {
	return &exchange{dialect: s.dialect, host: s.host, model: m, compat: s.compat(m), req: req, name: m.ID}
}

// exchange is one request and its answer; it implements wire.Exchange.
type exchange struct {
	dialect *dialect
	host    *wire.Host
	model   *llm.Model
	compat  *Compat
	req     *llm.Request

	own     Options
	name    string // model name to send
	url     string // to send to, where the dialect finds that out while it prepares
	limited bool   // the token limit follows the rules of API.Stream

	retention string // none, short, long
	session   string // "" when nothing is to be cached
	effort    string // of the answer, where efforts are items of the input

	grammars wire.Grammars // of the request

	decoder
}

// simple sets the request up as llm.Options alone say.
func (x *exchange) simple() {
	x.limited = true
	if x.req.Reasoning != "" {
		x.with(Options{ReasoningEffort: x.model.ClampLevel(x.req.Reasoning)})
	}
}

// with sets the request up with the options of the wire format.
func (x *exchange) with(o Options) {
	x.own = o
	if o.ReasoningEffort == llm.LevelOff {
		x.own.ReasoningEffort = ""
	}
}

func (x *exchange) stream(ctx context.Context) *llm.Stream {
	return llm.NewStream(wire.NewSource(ctx, x.host, x.dialect.id, x.model, &x.req.Options, x))
}

// Request implements wire.Exchange.
func (x *exchange) Request() (*wire.Call, error) {
	x.retention = x.host.CacheRetention(&x.req.Options)
	if x.retention != "none" {
		x.session = x.req.SessionID
	}
	if x.dialect.prepare != nil {
		if err := x.dialect.prepare(x); err != nil {
			return nil, err
		}
	}
	body, err := x.body()
	if err != nil {
		return nil, err
	}
	if body, _, err = wire.Payload(body, x.model, &x.req.Options); err != nil {
		return nil, err
	}
	return x.dialect.call(x, body)
}

// Rejected implements wire.Exchange.
func (x *exchange) Rejected(*wire.StatusError) bool { return false }
