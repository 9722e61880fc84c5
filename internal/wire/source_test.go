package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/llm"
)

// lines is a wire format for tests: each event is one word of text, "call x"
// one piece of a tool call, "used" ten tokens, "bad" an error, "end" the end.
type lines struct {
	url      string
	requests int
	retry    bool // ask for a second request
	fail     error
	text     *Block
	call     *Block
	cause    error
}

func (l *lines) Request() (*Call, error) {
	l.requests++
	return &Call{URL: l.url, Body: []byte("{}")}, l.fail
}

func (l *lines) Rejected(*StatusError) bool { return l.retry && l.requests == 1 }

func (l *lines) Event(a *Answer, _, data []byte) error {
	switch piece, isCall := strings.CutPrefix(string(data), "call "); {
	case isCall:
		// Two events of ours for one of theirs.
		if l.call == nil {
			l.call = a.ToolCall("id", "tool", nil)
		}
		l.call.Append([]byte(piece))
	case piece == "used":
		a.Message.Usage.Output += 10
	case piece == "bad":
		return &ProviderError{Message: "bad"}
	case piece == "end":
		return ErrFinished
	default:
		if l.text == nil {
			l.text = a.Text(nil)
		}
		l.text.Append(data)
	}
	return nil
}

func (l *lines) End(a *Answer, cause error) error {
	l.cause = cause
	for _, b := range a.Blocks() {
		b.End()
	}
	a.Message.StopReason = llm.StopStop
	return cause
}

// trace reads a stream and writes each event with the content as of then.
func trace(s *llm.Stream, after func(n int)) string {
	var out []string
	n := 0
	for ev := range s.Events() {
		line := ev.Type.String()
		if ev.Delta != "" {
			line += " " + ev.Delta
		}
		m := ev.Partial
		if ev.Message != nil {
			m = ev.Message
			line += " " + string(m.StopReason)
			if m.ErrorMessage != "" {
				line += " (" + m.ErrorMessage + ")"
			}
		}
		for _, b := range m.Content {
			switch b := b.(type) {
			case *llm.Text:
				line += fmt.Sprintf(" [%s]", b.Text)
			case *llm.ToolCall:
				line += fmt.Sprintf(" [%s]", b.Current())
			}
		}
		out = append(out, line)
		n++
		if after != nil {
			after(n)
		}
	}
	return strings.Join(out, "\n")
}

func TestSource(t *testing.T) {
	for _, c := range []struct {
		name, body, want string
	}{
		{"text", "data: a\n\ndata: b\n\n", "start\ntext_start []\ntext_delta a [a]\ntext_delta b [ab]\ntext_end [ab]\ndone stop [ab]"},
		{"events show their own moment", "data: call {\"x\":1\n\ndata: call }\n\n",
			"start\ntoolcall_start [{}]\ntoolcall_delta {\"x\":1 [{\"x\":1}]\ntoolcall_delta } [{\"x\":1}]\ntoolcall_end [{\"x\":1}]\ndone stop [{\"x\":1}]"},
		{"error", "data: a\n\ndata: bad\n\ndata: b\n\n", "start\ntext_start []\ntext_delta a [a]\ntext_end [a]\nerror error (bad) [a]"},
		{"finished", "data: a\n\ndata: end\n\ndata: b\n\n", "start\ntext_start []\ntext_delta a [a]\ntext_end [a]\ndone stop [a]"},
		{"nothing", "", "start\ndone stop"},
	} {
		t.Run(c.name, func(t *testing.T) {
			url, h, _ := serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, c.body) })
			s := llm.NewStream(NewSource(t.Context(), h, "lines", &llm.Model{}, &llm.Options{}, &lines{url: url}))
			if got := trace(s, nil); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if _, ok := s.Next(); ok {
				t.Error("an event behind the terminal one")
			}
		})
	}
}

func TestSourceBeforeTheResponse(t *testing.T) {
	url, h, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no", http.StatusForbidden)
	})
	run := func(ctx context.Context, l *lines, o llm.Options) string {
		return trace(llm.NewStream(NewSource(ctx, h, "lines", &llm.Model{}, &o, l)), nil)
	}
	l := &lines{url: url}
	if got := run(t.Context(), l, llm.Options{}); got != "error error (403 no)" {
		t.Errorf("refused: %s", got)
	}
	l = &lines{url: url, retry: true}
	if got := run(t.Context(), l, llm.Options{}); got != "error error (403 no)" || l.requests != 2 {
		t.Errorf("asked for again: %s, %d requests", got, l.requests)
	}
	l = &lines{url: url, fail: errors.New("no body")}
	if got := run(t.Context(), l, llm.Options{}); got != "error error (no body)" {
		t.Errorf("no request: %s", got)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	l = &lines{url: url}
	if got := run(cancelled, l, llm.Options{}); got != "error aborted (Request was aborted)" || l.requests != 0 {
		t.Errorf("cancelled: %s, %d requests", got, l.requests)
	}
	fine, h2, _ := serve(t, func(http.ResponseWriter, *http.Request) {})
	h = h2
	o := llm.Options{OnResponse: func(int, http.Header, *llm.Model) error { return errors.New("not wanted") }}
	if got := run(t.Context(), &lines{url: fine}, o); got != "error error (not wanted)" {
		t.Errorf("OnResponse: %s", got)
	}
}

func TestSourceAbort(t *testing.T) {
	const start = "start\ntext_start []\ntext_delta a [a]\n"
	for _, c := range []struct {
		name, body, want string
		output           int64
	}{
		{"what was received counts", "data: a\n\ndata: b\n\ndata: used\n\ndata: c\n\n", "text_delta b [ab]\ntext_delta c [abc]\ntext_end [abc]\nerror aborted (Request was aborted) [abc]", 10},
		{"all was received", "data: a\n\ndata: used\n\ndata: end\n\n", "text_end [a]\nerror aborted (Request was aborted) [a]", 10},
		{"an error was received", "data: a\n\ndata: used\n\ndata: bad\n\ndata: used\n\n", "text_end [a]\nerror aborted (Request was aborted) [a]", 10},
		{"half an event was received", "data: a\n\ndata: used\n\ndata: b", "text_end [a]\nerror aborted (Request was aborted) [a]", 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			url, h, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, c.body)
				http.NewResponseController(w).Flush()
				<-r.Context().Done()
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			l := &lines{url: url}
			s := llm.NewStream(NewSource(ctx, h, "lines", &llm.Model{}, &llm.Options{}, l))
			got := trace(s, func(n int) {
				if n == 3 {
					cancel()
				}
			})
			if got != start+c.want || !errors.Is(l.cause, ErrAborted) {
				t.Errorf("got\n%s\nwant\n%s\ncause %v", got, start+c.want, l.cause)
			}
			if n := s.Result().Usage.Output; n != c.output {
				t.Errorf("%d tokens, want %d", n, c.output)
			}
		})
	}
	t.Run("while a read waits", func(t *testing.T) {
		url, h, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "data: a\n\ndata: b\n\n")
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
		ctx, cancel := context.WithCancel(t.Context())
		got := trace(llm.NewStream(NewSource(ctx, h, "lines", &llm.Model{}, &llm.Options{}, &lines{url: url})), func(n int) {
			if n == 4 {
				go cancel()
			}
		})
		if !strings.HasSuffix(got, "error aborted (Request was aborted) [ab]") {
			t.Errorf("got\n%s", got)
		}
	})
}

func TestSourceClose(t *testing.T) {
	left := make(chan struct{})
	url, h, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "data: a\n\n")
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(left)
	})
	s := llm.NewStream(NewSource(t.Context(), h, "lines", &llm.Model{}, &llm.Options{}, &lines{url: url}))
	for ev := range s.Events() {
		if ev.Type == llm.EventTextDelta {
			break
		}
	}
	<-left
	s.Close()
	if _, ok := s.Next(); ok {
		t.Error("an event of a closed stream")
	}
}

// An answer that ends well leaves its connection for the next request.
func TestSourceReusesConnections(t *testing.T) {
	var addresses []string
	url, h, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		addresses = append(addresses, r.RemoteAddr)
		io.WriteString(w, "data: a\n\ndata: end\n\n: more\n\n")
	})
	for range 3 {
		llm.NewStream(NewSource(t.Context(), h, "lines", &llm.Model{}, &llm.Options{}, &lines{url: url})).Result()
	}
	if len(addresses) != 3 || addresses[0] != addresses[2] {
		t.Errorf("connections from %v", addresses)
	}
}

func TestBlocksHoldBackHalves(t *testing.T) {
	a := &Answer{Message: NewMessage("lines", &llm.Model{})}
	b := a.Text(nil)
	b.Append([]byte("x\xED\xA0\xBD"))
	a.seal(false)
	if got := a.Message.Content[0].(*llm.Text).Text; got != "x\xED\xA0\xBD" {
		t.Errorf("got %q", got)
	}
}
