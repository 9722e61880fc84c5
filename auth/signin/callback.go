package signin

import (
	"context"
	"crypto/subtle"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

//go:embed page.html
var page string

// callback is what came back from an issuer, to the server or pasted.
type callback struct {
	code, state      string
	issuer           string // of RFC 9207; "" when it was not given
	errorCode, words string
	bare             bool // pasted without a state
}

// parseCallback reads the parameters of an answer. Where the state travels in
// the path, it is the last part of it.
func parseCallback(u *url.URL, stateInPath bool) callback {
	q := u.Query()
	c := callback{
		code:      q.Get("code"),
		state:     q.Get("state"),
		issuer:    q.Get("iss"),
		errorCode: q.Get("error"),
		words:     q.Get("error_description"),
	}
	if stateInPath {
		c.state = u.Path[strings.LastIndexByte(u.Path, '/')+1:]
	}
	return c
}

// receiver is the server on the loopback interface that takes one answer.
type receiver struct {
	listener net.Listener
	address  string // of the redirect
	server   *http.Server
	got      chan callback // one
	once     sync.Once
	foreign  atomic.Int32 // answers to other sign-ins
	served   chan struct{}
}

// listen opens the port of a redirect. path has the state in it where it travels
// there.
func listen(ctx context.Context, r Redirect, path string) (*receiver, error) {
	host := r.Host
	if host == "" {
		host = "127.0.0.1"
	}
	bind := host
	if host == "localhost" {
		bind = "127.0.0.1" // never another interface, whatever the name means here
	}
	var lc net.ListenConfig
	on := func(port int) (net.Listener, error) {
		return lc.Listen(ctx, "tcp", net.JoinHostPort(bind, fmt.Sprint(port)))
	}
	l, err := on(r.Port)
	if err != nil && r.Port != 0 && !r.ExactPort && ctx.Err() == nil {
		l, err = on(0)
	}
	if err != nil {
		return nil, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return &receiver{
		listener: l,
		address:  "http://" + net.JoinHostPort(host, fmt.Sprint(port)) + path,
		got:      make(chan callback, 1),
		served:   make(chan struct{}),
	}, nil
}

// serve takes the first answer to this sign-in that comes to the redirect's path.
// Other requests, such as for an icon, are turned away, and so are answers with
// another state: whoever finds the port, a page in the browser too, can send one,
// and must not end the sign-in by that.
func (r *receiver) serve(path string, stateInPath bool, state string) {
	prefix := path
	if stateInPath {
		prefix = path[:strings.LastIndexByte(path, '/')+1]
	}
	mine := func(p string) bool {
		if stateInPath {
			// Another state is an answer, too: to another sign-in.
			rest, ok := strings.CutPrefix(p, prefix)
			return ok && rest != "" && !strings.Contains(rest, "/")
		}
		return p == path
	}
	r.server = &http.Server{
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      10 * time.Second,
		MaxHeaderBytes:    64 << 10,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Connection", "close")
			if req.Method != http.MethodGet || !mine(req.URL.Path) {
				http.NotFound(w, req)
				return
			}
			c := parseCallback(req.URL, stateInPath)
			if c.code == "" && c.errorCode == "" {
				writePage(w, http.StatusBadRequest, "This page waits for the answer of a sign-in, and there is none in the address.")
				return
			}
			if !sameText(c.state, state) {
				r.foreign.Add(1)
				writePage(w, http.StatusBadRequest, "This answer belongs to another sign-in, and nothing was stored. Open the address that the terminal shows.")
				return
			}
			first := false
			r.once.Do(func() { first = true })
			switch {
			case !first:
				writePage(w, http.StatusConflict, "This sign-in has its answer already.")
				return
			case c.errorCode != "":
				writePage(w, http.StatusOK, "The sign-in was not completed; the terminal says why. You can close this page.")
			default:
				writePage(w, http.StatusOK, "pinch has received the answer. You can close this page and go back to the terminal.")
			}
			r.got <- c
		}),
	}
	go func() {
		defer close(r.served)
		_ = r.server.Serve(r.listener) // ends with stop
	}()
}

// stop ends the server once a page that is being written is out.
func (r *receiver) stop() {
	if r.server == nil {
		r.listener.Close()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := r.server.Shutdown(ctx); err != nil {
		r.server.Close()
	}
	<-r.served
}

func writePage(w http.ResponseWriter, status int, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	w.WriteHeader(status)
	fmt.Fprint(w, strings.Replace(page, "{text}", text, 1))
}

func sameText(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

var errNothingPasted = errors.New("nothing")

// parsePasted reads what a person pastes: the address that the browser was sent
// to, its query, the pair code#state that some pages show, or the code alone.
func parsePasted(text string, stateInPath bool) (callback, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return callback{}, errNothingPasted
	case strings.ContainsAny(text, " \t\r\n"):
		return callback{}, errors.New("it has blanks in it")
	}
	if strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://") {
		u, err := url.Parse(text)
		if err != nil {
			return callback{}, errors.New("it is no address")
		}
		c := parseCallback(u, stateInPath)
		if c.code == "" && c.errorCode == "" {
			return callback{}, errors.New("there is no code in the address; it has to be the one that the browser ends at")
		}
		return c, nil
	}
	if query := strings.TrimPrefix(text, "?"); strings.HasPrefix(query, "code=") || strings.Contains(query, "&code=") || strings.HasPrefix(query, "error=") {
		c := parseCallback(&url.URL{RawQuery: query}, false)
		if c.code == "" && c.errorCode == "" {
			return callback{}, errors.New("there is no code in it")
		}
		c.bare = stateInPath || c.state == ""
		return c, nil
	}
	code, state, paired := strings.Cut(text, "#")
	if code == "" {
		return callback{}, errors.New("there is no code in it")
	}
	return callback{code: code, state: state, bare: !paired || state == ""}, nil
}
