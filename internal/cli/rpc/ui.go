package rpc

import (
	"bytes"
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/session"
)

// UI lets extensions ask the person behind the client, and show them something.
// Each call is a record of type extension_ui_request; the answer to a question
// comes as an extension_ui_response of its id. Questions wait for the answer, the
// timeout (0 for none) and the context, and count as cancelled when there is none
// of the right form. It is safe for concurrent use.
type UI struct {
	write func(fill func(dst []byte) []byte)

	mu        sync.Mutex
	questions map[string]chan *command // by id
}

// Select asks for one of some options; ok is false when it is cancelled.
func (u *UI) Select(ctx context.Context, title string, options []string, timeout time.Duration) (choice string, ok bool) {
	return u.askText(ctx, "select", timeout, func(o *jsonwire.Object) {
		o.Text("title", title)
		texts(o, "options", options)
	})
}

// Confirm asks a question to be answered with yes or no.
func (u *UI) Confirm(ctx context.Context, title, message string, timeout time.Duration) bool {
	a := u.ask(ctx, "confirm", timeout, func(o *jsonwire.Object) {
		o.Text("title", title)
		o.Text("message", message)
	})
	return a != nil && string(a.get("confirmed")) == "true"
}

// Input asks for a line of text. placeholder stands in the empty field.
func (u *UI) Input(ctx context.Context, title, placeholder string, timeout time.Duration) (text string, ok bool) {
	return u.askText(ctx, "input", timeout, func(o *jsonwire.Object) {
		o.Text("title", title)
		o.OptText("placeholder", placeholder)
	})
}

// Editor asks for a text of any length, beginning with prefill.
func (u *UI) Editor(ctx context.Context, title, prefill string) (text string, ok bool) {
	return u.askText(ctx, "editor", 0, func(o *jsonwire.Object) {
		o.Text("title", title)
		o.OptText("prefill", prefill)
	})
}

// Notify shows a message. kind is info, warning or error, "" for info.
func (u *UI) Notify(message, kind string) {
	u.tell("notify", func(o *jsonwire.Object) {
		o.Text("message", message)
		o.OptText("notifyType", kind)
	})
}

// SetStatus shows a text in the status line under a key; nil takes it away.
func (u *UI) SetStatus(key string, text *string) {
	u.tell("setStatus", func(o *jsonwire.Object) {
		o.Text("statusKey", key)
		o.TextPtr("statusText", text)
	})
}

// SetWidget shows lines beside the editor under a key; nil takes them away.
// placement is aboveEditor or belowEditor, "" for the first.
func (u *UI) SetWidget(key string, lines []string, placement string) {
	u.tell("setWidget", func(o *jsonwire.Object) {
		o.Text("widgetKey", key)
		if lines != nil {
			texts(o, "widgetLines", lines)
		}
		o.OptText("widgetPlacement", placement)
	})
}

// SetTitle names the window.
func (u *UI) SetTitle(title string) {
	u.tell("setTitle", func(o *jsonwire.Object) { o.Text("title", title) })
}

// SetEditorText puts a text into the editor.
func (u *UI) SetEditorText(text string) {
	u.tell("set_editor_text", func(o *jsonwire.Object) { o.Text("text", text) })
}

func (u *UI) askText(ctx context.Context, method string, timeout time.Duration, fields func(*jsonwire.Object)) (string, bool) {
	a := u.ask(ctx, method, timeout, fields)
	if a == nil {
		return "", false
	}
	return jsonwire.StringValue(a.get("value"))
}

// ask is the answer to a question, nil when it is cancelled.
func (u *UI) ask(ctx context.Context, method string, timeout time.Duration, fields func(*jsonwire.Object)) *command {
	id := newID()
	answer := make(chan *command, 1)
	u.mu.Lock()
	u.questions[id] = answer
	u.mu.Unlock()
	defer func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.questions, id)
	}()
	u.request(id, method, func(o *jsonwire.Object) {
		fields(o)
		if timeout > 0 {
			o.Int("timeout", timeout.Milliseconds())
		}
	})
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	select {
	case a := <-answer:
		if string(a.get("cancelled")) == "true" {
			return nil
		}
		return a
	case <-ctx.Done():
		return nil
	}
}

func (u *UI) tell(method string, fields func(*jsonwire.Object)) { u.request(newID(), method, fields) }

func (u *UI) request(id, method string, fields func(*jsonwire.Object)) {
	u.write(func(dst []byte) []byte {
		o := jsonwire.Begin(dst)
		o.Text("type", "extension_ui_request")
		o.Text("id", id)
		o.Text("method", method)
		fields(&o)
		return append(o.End(), '\n')
	})
}

func newID() string {
	id, err := session.NewID(time.Now(), rand.Reader)
	if err != nil {
		panic(err) // crypto/rand does not fail
	}
	return id
}

const responseType = "extension_ui_response"

// takes gives a line to who asked, if it is an answer. Answers do not wait for
// the commands before them, which may be what asks.
func (u *UI) takes(l line) bool {
	if !bytes.Contains(l.text, []byte(responseType)) {
		return false
	}
	c, err := parse(l.text)
	if err != nil || c.name != responseType {
		return false
	}
	id, _ := jsonwire.StringValue(jsontext.Value(c.id))
	u.mu.Lock()
	defer u.mu.Unlock()
	if answer := u.questions[id]; answer != nil {
		answer <- c
		delete(u.questions, id) // the first answer counts
	}
	return true // nobody asks, or not any more
}
