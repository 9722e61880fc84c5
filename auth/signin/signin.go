package signin

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/pinch-agent/pinch/auth"
)

// Options are the options of SignIn. The zero value prints and opens nothing,
// which leaves a person no way to act: set Show.
type Options struct {
	Client *http.Client // nil for http.DefaultClient
	Flow   Flow
	// Show tells the person what to do. It is called before anything waits, and
	// may be called from another goroutine, but not twice at a time.
	Show func(Step)
	// Open opens an address in a browser; nil opens none. Its error is shown as
	// a Note, as the person can open the address by hand.
	Open func(ctx context.Context, address string) error
	// Paste reads what the person pastes: the address that the browser was sent
	// to, or the code in it. It must return when ctx ends. It is called again
	// after text of no use. io.EOF ends the reading and nothing else; any other
	// error ends the sign-in. Nil reads nothing.
	Paste func(ctx context.Context) (string, error)
	// Wait bounds how long a person may take; 0 for 10 minutes. A device code may
	// end sooner.
	Wait time.Duration
	Env  auth.Env    // for the client secret
	Run  auth.Runner // likewise; nil for auth.RunCommand
	Now  func() time.Time
}

// Step is something that a person is shown: a BrowserStep, a DeviceStep or a
// Note.
type Step interface{ step() }

// BrowserStep asks the person to open a page.
type BrowserStep struct {
	URL string
	// Opened is whether a browser is on its way to it.
	Opened bool
}

// DeviceStep asks the person to open a page and to enter a code there.
type DeviceStep struct {
	URL     string
	Code    string
	Expires time.Time
	Opened  bool
}

// Note is a remark in a sentence.
type Note string

func (BrowserStep) step() {}
func (DeviceStep) step()  {}
func (Note) step()        {}

// defaultWait is how long a person may take: as long as the codes of the issuers
// live.
const defaultWait = 10 * time.Minute

// flow is one sign-in or renewal.
type flow struct {
	d      Definition // with its addresses filled in
	o      Options
	client *http.Client // bounded; ends with ctx
	secret string       // of the client
	hide   secrets
	// renewal is set when nobody is asked: a stored sign-in is renewed.
	renewal bool
	// registered is the secret of a client that was registered for this sign-in.
	registered string
}

// SignIn signs the person in and gives what is to be stored. It fails with an
// *IncompleteError, an *Error, or the cause of ctx's end.
func SignIn(ctx context.Context, d Definition, o Options) (*auth.OAuth, error) {
	if err := d.Ready(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f, err := begin(ctx, d, d.Domain, o)
	if err != nil {
		return nil, err
	}
	if err := f.discover(ctx); err != nil {
		return nil, err
	}
	kind := o.Flow
	if kind == Auto || kind == Browser && f.d.AuthorizeURL == "" || kind == Device && f.d.DeviceURL == "" {
		kind = Browser
		if f.d.AuthorizeURL == "" {
			kind = Device
		}
	}
	if kind == Device {
		return f.device(ctx)
	}
	return f.browser(ctx)
}

// begin makes the flow of a definition in a domain.
func begin(ctx context.Context, d Definition, domain string, o Options) (*flow, error) {
	f := &flow{d: d.in(domain), o: o}
	if f.o.Now == nil {
		f.o.Now = time.Now
	}
	if f.o.Show == nil {
		f.o.Show = func(Step) {}
	}
	f.o.Wait = cmp.Or(o.Wait, defaultWait)
	f.client = f.bounded(ctx)
	if d.ClientSecret == "" {
		return f, nil
	}
	secret, err := auth.ResolveFor(ctx, "client secret of "+d.DisplayName(), d.ClientSecret, o.Env, o.Run)
	if err != nil {
		return nil, err
	}
	f.setSecret(secret)
	return f, nil
}

func (f *flow) setSecret(secret string) {
	f.secret = secret
	if secret != "" {
		_, header, _ := strings.Cut(basicAuth(f.d.ClientID, secret), " ")
		f.hide = append(f.hide, secret, header)
	}
}
