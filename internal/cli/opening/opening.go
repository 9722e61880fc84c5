// Package opening assembles what a command line says to a model: piped input,
// @files and messages.
package opening

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/env"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// Prompt is one thing to say to the model.
type Prompt struct {
	Text   string
	Images []*llm.Image
	// Continue says nothing: the model is to go on from the conversation as it is.
	Continue bool
}

// Say says the prompt and returns the answer, as harness.Prompt does.
func (p Prompt) Say(ctx context.Context, h *harness.Harness) (*llm.Assistant, error) {
	if p.Continue {
		return h.Continue(ctx)
	}
	return h.Prompt(ctx, p.Text, p.Images...)
}

// Attachment is what an @file adds to the first prompt.
type Attachment struct {
	Text  string
	Image *llm.Image
}

// Prompts turns piped input, files and messages into the prompts of a run. The
// first joins the trimmed input, the texts of the files and the first message
// without anything between them; every further message is a prompt of its own.
// A first prompt without any content is none.
func Prompts(stdin string, files []Attachment, messages []string) []Prompt {
	var text strings.Builder
	var first Prompt
	text.WriteString(jsonwire.Trim(stdin))
	for _, f := range files {
		text.WriteString(f.Text)
		if f.Image != nil {
			first.Images = append(first.Images, f.Image)
		}
	}
	var further []string
	if len(messages) > 0 {
		text.WriteString(messages[0])
		further = messages[1:]
	}
	first.Text = text.String()
	var out []Prompt
	if first.Text != "" || len(first.Images) > 0 {
		out = append(out, first)
	}
	for _, m := range further {
		out = append(out, Prompt{Text: m})
	}
	return out
}

// Files reads @files.
type Files struct {
	Env env.FileSystem
	// Read is the read tool, which knows how to fit pictures to a model.
	Read *agent.Tool
}

// Load reads the files of the given names in order. Empty ones add nothing. A
// file that cannot be read is an error that names it.
func (f Files) Load(ctx context.Context, names []string) ([]Attachment, error) {
	var out []Attachment
	for _, name := range names {
		a, err := f.load(ctx, name)
		if err != nil {
			return nil, err
		}
		out = append(out, a...)
	}
	return out, nil
}

func (f Files) load(ctx context.Context, name string) ([]Attachment, error) {
	path := f.resolve(name)
	if name == "" {
		return nil, errors.New("@ stands alone: write the name of a file behind it, as in @notes.txt")
	}
	exists, err := f.Env.Exists(ctx, path)
	if err == nil && !exists {
		return nil, fmt.Errorf("File not found: %s", path)
	}
	var b []byte
	if err == nil {
		b, err = f.read(ctx, path)
	}
	if e, ok := errors.AsType[*env.Error](err); ok && e.Code == env.IsDirectory {
		return nil, fmt.Errorf("%s is a folder: name a file in it, or name it in the message without the @ and let the model look", path)
	}
	if err != nil {
		return nil, fmt.Errorf("Could not read file %s: %w", path, err)
	}
	if len(b) == 0 {
		return nil, nil
	}
	if looksLikeImage(b) {
		if a, ok := f.picture(ctx, path); ok {
			return []Attachment{a}, nil
		}
	}
	if bytes.IndexByte(b, 0) >= 0 {
		return nil, fmt.Errorf("%s is no text in UTF-8, as it holds zero bytes: convert it, or name it in the message without the @ and let the model look", path)
	}
	b = bytes.TrimPrefix(b, []byte("\xEF\xBB\xBF"))
	return []Attachment{{Text: fileTag(path, string(jsonwire.AppendUTF8(nil, b)))}}, nil
}

// MaxFile is the size in bytes up to which a file, or what is piped in, is put
// into a prompt. No model
// reads as much; a stream without an end must not fill the memory.
const MaxFile = 64 << 20

func (f Files) read(ctx context.Context, path string) ([]byte, error) {
	file, err := f.Env.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var b []byte
	if file.Size() <= MaxFile {
		b, err = io.ReadAll(io.LimitReader(file, MaxFile+1))
	}
	if err == nil && len(b) == 0 && file.Size() < 0 && !strings.HasPrefix(path, "/dev/") {
		// What is to come through a pipe must not be missing without a word.
		err = errors.New("it is a pipe into which nobody writes: start the writer first, or pipe its output to pinch")
	}
	if err == nil && (len(b) > MaxFile || file.Size() > MaxFile) {
		err = errors.New("it is larger than 64 MiB: name it in the message without the @ and let the model read parts of it")
	}
	return b, err
}

func (f Files) resolve(name string) string {
	if name == "~" {
		return f.Env.HomeDir()
	}
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		return filepath.Join(f.Env.HomeDir(), rest)
	}
	return f.Env.Abs(name)
}

// imageNote is how the read tool introduces a picture; notes on what was done
// to it follow on further lines.
const imageNote = "Read image file ["

func (f Files) picture(ctx context.Context, path string) (Attachment, bool) {
	if f.Read == nil {
		return Attachment{}, false
	}
	args := append(jsonwire.AppendString([]byte(`{"path":`), path), '}')
	r, err := f.Read.Execute(ctx, agent.Call{ID: "attachment", Args: args, Update: func(agent.Result) {}})
	if err != nil || len(r.Content) == 0 {
		return Attachment{}, false
	}
	note, ok := r.Content[0].(*llm.Text)
	if !ok || !strings.HasPrefix(note.Text, imageNote) {
		return Attachment{}, false
	}
	_, hints, _ := strings.Cut(note.Text, "\n")
	a := Attachment{Text: imageTag(path, hints)}
	for _, b := range r.Content {
		if img, ok := b.(*llm.Image); ok {
			a.Image = img
		}
	}
	return a, true
}

// looksLikeImage is a quick test; the read tool looks closer.
func looksLikeImage(b []byte) bool {
	for _, magic := range []string{"\xFF\xD8\xFF", "\x89PNG\r\n\x1a\n", "GIF8", "RIFF", "BM"} {
		if bytes.HasPrefix(b, []byte(magic)) {
			return true
		}
	}
	return false
}

// fileTag is the text of a file as the model sees it.
func fileTag(path, content string) string {
	return "<file name=\"" + path + "\">\n" + content + "\n</file>\n"
}

// imageTag announces an attached picture; hints say what was done to it.
func imageTag(path, hints string) string {
	return "<file name=\"" + path + "\">" + hints + "</file>\n"
}
