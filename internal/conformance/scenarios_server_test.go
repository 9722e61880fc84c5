package conformance

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"
)

// scenarioServer stands in for a service: it gives each request the next reply
// and keeps what was asked.
type scenarioServer struct {
	*httptest.Server
	left chan struct{} // gets one for each client that leaves a reply that hangs

	// next, when set, chooses the replies; requests are then not kept.
	next func(req scenarioRequest) scenarioReply

	mu       sync.Mutex
	replies  []scenarioReply
	requests []scenarioRequest
}

// scenarioReply is a response in pieces, each sent by itself.
type scenarioReply struct {
	status int
	header map[string]string
	pieces [][]byte
	// end is what comes behind the pieces: "" for the regular end, cut for a
	// connection that breaks, hang for silence until the client leaves, alive
	// for bytes that say nothing until then, and mute for no response at all.
	end   string
	alive []byte
}

type scenarioRequest struct {
	method, host, path string
	header             http.Header
	body               []byte
}

func newScenarioServer(replies ...scenarioReply) *scenarioServer {
	s := &scenarioServer{left: make(chan struct{}, 16), replies: replies}
	s.Server = httptest.NewServer(s)
	return s
}

// serve makes replies those of the next requests.
func (s *scenarioServer) serve(replies ...scenarioReply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies, s.requests = replies, nil
}

// taken lists the requests since serve.
func (s *scenarioServer) taken() []scenarioRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// wasLeft reports whether a client leaves within a time that is long for one
// that has left already.
func (s *scenarioServer) wasLeft() bool {
	select {
	case <-s.left:
		return true
	case <-time.After(60 * time.Second):
		return false
	}
}

func (s *scenarioServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	req := scenarioRequest{r.Method, r.Host, r.RequestURI, r.Header, body}
	reply := scenarioReply{status: http.StatusTeapot, pieces: [][]byte{[]byte("no reply is left")}}
	s.mu.Lock()
	if s.next != nil {
		reply = s.next(req)
	} else {
		if n := len(s.requests); n < len(s.replies) {
			reply = s.replies[n]
		}
		s.requests = append(s.requests, req)
	}
	s.mu.Unlock()
	gone := func() {
		<-r.Context().Done()
		s.left <- struct{}{}
	}
	if reply.end == "mute" {
		gone()
		return
	}
	for name, v := range reply.header {
		w.Header().Set(name, v)
	}
	w.WriteHeader(reply.status)
	flush := http.NewResponseController(w).Flush
	flush()
	for _, p := range reply.pieces {
		w.Write(p)
		flush()
	}
	switch reply.end {
	case "cut":
		panic(http.ErrAbortHandler)
	case "hang":
		gone()
	case "alive":
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-r.Context().Done():
				s.left <- struct{}{}
				return
			case <-tick.C:
				w.Write(reply.alive)
				flush()
			}
		}
	}
}
