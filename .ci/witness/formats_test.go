package witness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/pinch-agent/pinch/llm"
)

// format is a wire format of pinch with the library that knows its protocol.
type format struct {
	api string // folder of its vectors
	new func() llm.API
	// stream is the entry with the format's own options.
	stream func(ctx context.Context, api llm.API, m *llm.Model, req *llm.Request, options []byte) (*llm.Stream, error)
	// repeat sends a body of pinch through the library's types to the server
	// at base and reads the answer. path is that of pinch's request, which the
	// library has to arrive at too. An error that is no *statusError says that
	// the library could not read the body or the answer.
	repeat func(ctx context.Context, base, path string, body []byte) (*answer, error)

	exceptions []exception
	dissents   []dissent
}

// statusError is a library's typed error for a response of another status than success.
type statusError struct {
	status int
	error
}

func (e *statusError) Unwrap() error { return e.error }

// formats are those whose vendors publish a library for Go. Mistral does not.
var formats = []format{
	anthropicFormat, completionsFormat, responsesFormat, azureFormat, codexFormat,
	googleFormat, vertexFormat, bedrockFormat,
}

func TestFormats(t *testing.T) {
	for i := range formats {
		f := &formats[i]
		t.Run(f.api, func(t *testing.T) {
			w := &witness{format: f, needed: map[string]bool{}}
			srv := newServer(t)
			names, steps := cases(t, vectors(), f.api, srv.URL)
			for _, name := range names {
				t.Run(name, func(t *testing.T) {
					api, memo := f.new(), &llm.Memo{}
					for i := range steps[name] {
						w.hear(t, name, srv, api, memo, &steps[name][i])
					}
				})
			}
			t.Logf("%d requests and %d answers agree or differ as listed", w.requests, w.answers)
			if w.requests == 0 || w.answers == 0 {
				t.Error("nothing was compared")
			}
			// Other vectors need not have what the entries are for.
			if !t.Failed() && os.Getenv("PINCH_VECTORS") == "" {
				w.checkTables(t)
			}
		})
	}
}

// witness compares a format with its library, and books which entries of the
// tables it needed.
type witness struct {
	*format
	needed            map[string]bool
	requests, answers int
}

// hear lets pinch and then the library have the same exchange.
func (w *witness) hear(t *testing.T, name string, srv *server, api llm.API, memo *llm.Memo, x *exchange) {
	t.Helper()
	srv.load(x.Script...)
	message := x.ask(t, w.format, api, memo)
	sent := srv.taken()
	for i, own := range sent {
		var script response
		if i < len(x.Script) {
			script = x.Script[i]
		}
		srv.load(script)
		theirs, err := w.repeat(t.Context(), srv.URL, own.path, own.body)
		again := srv.taken()
		if len(again) != 1 {
			t.Errorf("the library sent %d requests: %v\n%s", len(again), err, own.body)
			return
		}
		w.compareRequest(t, own, again[0])
		var refused *statusError
		switch {
		case script.Status != 200:
			// Before the last one, pinch asked again.
			if i == len(sent)-1 && message.StopReason != llm.StopError {
				t.Errorf("pinch takes status %d for %s", script.Status, message.StopReason)
			}
			if !errors.As(err, &refused) || refused.status != script.Status {
				w.dissent(t, name, "status", fmt.Sprintf("%v for status %d", err, script.Status))
			}
			w.answers++
		case i < len(sent)-1, message == nil, message.StopReason == llm.StopError, message.StopReason == llm.StopAborted:
			// Libraries leave most verdicts on an answer to their callers.
		case err != nil:
			w.dissent(t, name, "error", err.Error())
			w.answers++
		default:
			for field, detail := range theirs.differsFrom(answerOf(message)) {
				w.dissent(t, name, field, detail)
			}
			w.answers++
		}
	}
}

func (w *witness) compareRequest(t *testing.T, own, theirs request) {
	t.Helper()
	w.requests++
	ownPath, _, _ := strings.Cut(own.path, "?")
	theirPath, _, _ := strings.Cut(theirs.path, "?")
	if ownPath != theirPath {
		t.Errorf("the library asks %s, pinch %s", theirPath, ownPath)
	}
	want, err := parse(own.body)
	if err != nil {
		t.Fatal(err)
	}
	got, err := parse(theirs.body)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range differences("", want, got) {
		known := false
		for _, e := range w.exceptions {
			if e.change == d.change && covers(e.path, d.path) {
				w.needed[e.path+" "+e.change] = true
				known = true
			}
		}
		if !known {
			t.Errorf("request: %s", d)
		}
	}
}

func (w *witness) dissent(t *testing.T, name, field, detail string) {
	t.Helper()
	for _, d := range w.dissents {
		if d.field == field && covers(d.vectors, name) {
			w.needed[d.vectors+" "+d.field] = true
			return
		}
	}
	t.Errorf("answer: %s: the library has %s", field, detail)
}

func (w *witness) checkTables(t *testing.T) {
	t.Helper()
	for _, e := range w.exceptions {
		if !w.needed[e.path+" "+e.change] {
			t.Errorf("exceptions: %s %s (%s) is not needed", e.path, e.change, e.vendor)
		}
	}
	for _, d := range w.dissents {
		if !w.needed[d.vectors+" "+d.field] {
			t.Errorf("dissents: %s %s is not needed", d.vectors, d.field)
		}
	}
}

// decode reads a body into a parameter type of a library. Such a type may keep
// JSON that it does not know as it came, which would make the comparison say
// nothing; that is an error here.
func decode(body []byte, params any) error {
	if err := json.Unmarshal(body, params); err != nil {
		return err
	}
	return keepsRaw("", reflect.ValueOf(params).Elem())
}

func keepsRaw(path string, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return keepsRaw(path, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := keepsRaw(path+"[]", v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Struct:
		if p, ok := v.Interface().(interface{ Overrides() (any, bool) }); ok {
			if raw, ok := p.Overrides(); ok && raw != nil {
				if text, isJSON := raw.(json.RawMessage); isJSON && string(text) != "null" {
					return fmt.Errorf("%s is not known: %s", path, text)
				}
			}
		}
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				if err := keepsRaw(path+"."+f.Name, v.Field(i)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// options reads the options of a vector into those of a format, whose fields
// have the same names.
func options[T any](raw []byte) (T, error) {
	var o T
	err := json.Unmarshal(raw, &o)
	return o, err
}

// before cuts the end that a library adds to its base URL off a path of pinch.
func before(base, path, end string) (string, error) {
	path, _, _ = strings.Cut(path, "?")
	prefix, ok := strings.CutSuffix(path, end)
	if !ok {
		return "", fmt.Errorf("the path %s does not end in %s", path, end)
	}
	return base + prefix, nil
}

// TestLossIsSeen adds a member that no library knows to a request, and at each
// object of its messages: every one has to be missed.
func TestLossIsSeen(t *testing.T) {
	for i := range formats {
		f := &formats[i]
		t.Run(f.api, func(t *testing.T) {
			srv := newServer(t)
			question := question(t, f.api, srv.URL)
			srv.load(question.Script...)
			question.ask(t, f, f.new(), &llm.Memo{})
			own := srv.taken()[0]
			body, err := parse(own.body)
			if err != nil {
				t.Fatal(err)
			}
			seen := 0
			for path, object := range objects("", body) {
				object["made_up"] = json.Number("1")
				changed, err := json.Marshal(body)
				if err != nil {
					t.Fatal(err)
				}
				delete(object, "made_up")
				srv.load(question.Script...)
				_, err = f.repeat(t.Context(), srv.URL, own.path, changed)
				if sent := srv.taken(); err == nil && bytes.Contains(sent[0].body, []byte("made_up")) {
					t.Errorf("the library takes %s", member(path, "made_up"))
				}
				seen++
			}
			if seen < 3 {
				t.Errorf("only %d objects in %s", seen, own.body)
			}
		})
	}
}

// objects ranges over the objects in a JSON value.
func objects(path string, v any) iter.Seq2[string, map[string]any] {
	return func(yield func(string, map[string]any) bool) {
		var visit func(path string, v any) bool
		visit = func(path string, v any) bool {
			switch v := v.(type) {
			case []any:
				for _, element := range v {
					if !visit(path+"[]", element) {
						return false
					}
				}
			case map[string]any:
				if !yield(path, v) {
					return false
				}
				for name, value := range v {
					if !visit(member(path, name), value) {
						return false
					}
				}
			}
			return true
		}
		visit(path, v)
	}
}
