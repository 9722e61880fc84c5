package tool

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/env"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

//go:embed read.md
var readText string

// Read is the tool that reads text files and pictures.
func Read(opts ReadOptions) *agent.Tool {
	t := declare("read", readText,
		param{name: "path", typ: "string", required: true},
		param{name: "offset", typ: "number"},
		param{name: "limit", typ: "number"})
	t.ReplaySafe = true
	t.Execute = func(ctx context.Context, call agent.Call) (agent.Result, error) {
		args, err := parseReadArgs(call.Args)
		if err != nil {
			return agent.Result{}, err
		}
		r, err := opts.read(ctx, args)
		return r, systemError(err)
	}
	return t
}

type readArgs struct {
	path   string
	offset *float64
	limit  *float64
}

func parseReadArgs(raw jsontext.Value) (readArgs, error) {
	var a readArgs
	var r jsonwire.Reader
	number := func() *float64 {
		if r.Kind() != '0' {
			r.Skip()
			return nil
		}
		return new(r.Float())
	}
	r.Reset(raw)
	found := false
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "path":
			a.path, found = jsonwire.ToValidUTF8(r.Text()), true
		case "offset":
			a.offset = number()
		case "limit":
			a.limit = number()
		default:
			r.Skip()
		}
	}
	if !found {
		return a, errors.New("path must be a string")
	}
	return a, r.Err()
}

// sniffLen is how much of a file decides whether it is a picture.
const sniffLen = 4100

func (o *ReadOptions) read(ctx context.Context, args readArgs) (agent.Result, error) {
	fs := o.Env
	path := findReadable(ctx, fs, resolvePath(fs, args.path))
	if err := fs.Access(ctx, path, env.Readable); err != nil {
		return agent.Result{}, err
	}
	f, err := openRegular(ctx, fs, path)
	if err != nil {
		return agent.Result{}, err
	}
	defer f.Close()
	head := make([]byte, sniffLen)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return agent.Result{}, err
	}
	head = head[:n]
	if mime := sniffImage(head); mime != "" && f.Size() > maxImageFile {
		return textOnly("Read image file [" + mime + "]\n" + imageTooBig), nil
	} else if mime != "" {
		rest, err := env.ReadAll(f)
		if err != nil {
			return agent.Result{}, err
		}
		return o.image(mime, append(head, rest...)), nil
	}
	var src io.Reader = f
	if size := f.Size(); size > 0 {
		src = io.LimitReader(f, max(0, size-int64(n)))
	}
	sel, err := newSelection(args, func() (int, error) { return o.countLines(ctx, path) })
	if err != nil {
		return agent.Result{}, err
	}
	if err := sel.scan(head, src); err != nil {
		return agent.Result{}, err
	}
	return sel.result(args)
}

// countLines counts the lines of a file, what follows its last line feed included.
func (o *ReadOptions) countLines(ctx context.Context, path string) (int, error) {
	f, err := o.Env.Open(ctx, path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	buf := make([]byte, 64<<10)
	lines := 1
	for {
		n, err := f.Read(buf)
		lines += bytes.Count(buf[:n], lf)
		if err == io.EOF {
			return lines, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// selection walks through a file and keeps what may be shown of the selected
// lines. Lines are counted from 0 and the piece after the last line feed is one.
//
// Offsets and limits may be any numbers: fractions and negative limits act as
// they do on JavaScript arrays, whose slice the peers use.
type selection struct {
	start float64 // index of the first line as asked for
	limit *float64
	first int // index of the first selected line
	end   int // index behind the last one; -1 for the end of the file

	line     int    // line that the walk is in
	kept     []byte // decoded text of the selection, as much as can be shown
	whole    extent // of the decoded selection
	firstLen int64  // bytes of the first selected line
	pending  []byte // start of a UTF-8 sequence that the next chunk may complete
}

func newSelection(args readArgs, count func() (int, error)) (*selection, error) {
	s := &selection{end: -1, limit: args.limit, whole: extent{endsLine: true}}
	if args.offset != nil {
		s.start = math.Max(0, *args.offset-1)
	}
	s.first = index(s.start)
	if s.limit != nil {
		end := s.start + *s.limit
		s.end = index(end)
		if math.Trunc(end) < 0 {
			// Counted from the end of the file, which must be known then.
			total, err := count()
			if err != nil {
				return nil, err
			}
			s.end = max(0, total+int(math.Max(math.Trunc(end), -1e9)))
		}
	}
	return s, nil
}

// index is a number as an index: cut to an integer, bounded.
func index(f float64) int {
	return int(math.Min(math.Max(0, math.Trunc(f)), math.MaxInt32))
}

// scan walks through head and the rest of the file.
func (s *selection) scan(head []byte, rest io.Reader) error {
	s.walk(head)
	buf := make([]byte, 64<<10)
	for {
		n, err := rest.Read(buf)
		s.walk(buf[:n])
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	if len(s.pending) > 0 {
		s.take(replacementChar)
	}
	return nil
}

func (s *selection) walk(chunk []byte) {
	// Lines before the selection.
	for s.line < s.first {
		n := bytes.Count(chunk, lf)
		if s.line+n < s.first {
			s.line += n
			return
		}
		// The selection begins in this chunk.
		for s.line < s.first {
			chunk = chunk[bytes.IndexByte(chunk, '\n')+1:]
			s.line++
		}
	}
	// The selected lines. The line feed that ends the last one is no part of
	// the selection.
	if s.end < 0 || s.line < s.end {
		n := bytes.Count(chunk, lf)
		if s.end < 0 || s.line+n < s.end {
			s.line += n
			s.decode(chunk)
			return
		}
		at := 0
		for s.line < s.end {
			at += bytes.IndexByte(chunk[at:], '\n') + 1
			s.line++
		}
		s.decode(chunk[:at-1])
		if len(s.pending) > 0 {
			s.pending = nil
			s.take(replacementChar)
		}
		chunk = chunk[at:]
	}
	s.line += bytes.Count(chunk, lf)
}

// decode takes bytes as UTF-8, invalid ones replaced. A sequence that the end
// of the chunk cuts waits for the next chunk.
func (s *selection) decode(chunk []byte) {
	if len(s.pending) > 0 {
		chunk = append(s.pending, chunk...)
		s.pending = nil
	}
	chunk, cut := jsonwire.SplitUTF8(chunk)
	s.pending = bytes.Clone(cut)
	if !utf8.Valid(chunk) {
		chunk = jsonwire.AppendUTF8(nil, chunk)
	}
	s.take(chunk)
}

// take adds decoded text to the selection.
func (s *selection) take(text []byte) {
	if len(text) == 0 {
		return
	}
	if s.whole.newlines == 0 {
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			s.firstLen += int64(i)
		} else {
			s.firstLen += int64(len(text))
		}
	}
	s.whole.bytes += int64(len(text))
	s.whole.newlines += bytes.Count(text, lf)
	s.whole.endsLine = text[len(text)-1] == '\n'
	if room := MaxBytes + 1 - len(s.kept); room > 0 {
		s.kept = append(s.kept, text[:min(room, len(text))]...)
	}
}

var replacementChar = []byte("\uFFFD")

// result shows the selection.
func (s *selection) result(args readArgs) (agent.Result, error) {
	total := s.line + 1
	if s.start >= float64(total) {
		return agent.Result{}, fmt.Errorf("Offset %s is beyond end of file (%d lines total)", number(*args.offset), total)
	}
	t := truncateHead(s.kept, s.whole)
	text := t.content
	from := s.start + 1
	switch {
	case t.firstTooBig:
		text = fmt.Sprintf("[Line %s is %s, exceeds %s limit. Use bash: sed -n '%sp' %s | head -c %d]",
			number(from), sizeText(s.firstLen), sizeText(MaxBytes), number(from), args.path, MaxBytes)
	case t.truncated:
		last := from + float64(t.lines) - 1
		limit := ""
		if t.by == "bytes" {
			limit = " (" + sizeText(MaxBytes) + " limit)"
		}
		text += fmt.Sprintf("\n\n[Showing lines %s-%s of %d%s. Use offset=%s to continue.]",
			number(from), number(last), total, limit, number(last+1))
	case s.limit != nil:
		if end := math.Min(s.start+*s.limit, float64(total)); end < float64(total) {
			text += fmt.Sprintf("\n\n[%s more lines in file. Use offset=%s to continue.]",
				number(float64(total)-end), number(end+1))
		}
	}
	r := textOnly(text)
	if t.truncated {
		r.Details = append(t.appendJSON([]byte(`{"truncation":`)), '}')
	}
	return r, nil
}

// number prints a number as JavaScript does.
func number(f float64) string { return string(jsonwire.AppendFloat(nil, f)) }

// image shows a picture.
func (o *ReadOptions) image(mime string, data []byte) agent.Result {
	var model *llm.Model
	if o.Model != nil {
		model = o.Model()
	}
	shown := showImage(mime, data, imageLimitsOf(model), !o.KeepImageSize)
	note := "Read image file [" + shown.mime + "]"
	if len(shown.hints) > 0 {
		note += "\n" + strings.Join(shown.hints, "\n")
	}
	if shown.data == nil {
		return textOnly(note)
	}
	r := agent.TextResult(note)
	encoded := base64.StdEncoding.EncodeToString(shown.data)
	r.Content = append(r.Content, &llm.Image{Data: encoded, MimeType: shown.mime})
	b := append([]byte(`{"type":"image","data":"`), encoded...)
	b = append(append(append(b, `","mimeType":"`...), shown.mime...), `","note":`...)
	r.StructuredContent = append(jsonwire.AppendString(b, note), '}')
	if model != nil && !model.AcceptsImages() {
		r.Details = append(jsonwire.AppendString([]byte(`{"imageUnsupportedByModel":`), model.ID), '}')
	}
	return r
}

// textOnly is a text that is also the structured content.
func textOnly(text string) agent.Result {
	r := agent.TextResult(text)
	r.StructuredContent = jsonwire.AppendString(nil, text)
	return r
}
