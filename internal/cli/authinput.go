package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// readHidden asks for a line that is not shown, such as a key. The terminal is
// as before when it returns, also when ctx ends. Ctrl-C ends the program as the
// signal would; Ctrl-D is io.EOF.
func (p *program) readHidden(ctx context.Context, prompt string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	fd := int(p.in.Fd())
	// Raw, because a line that the system collects ends after 1024 or 4096 bytes,
	// less than some addresses and keys.
	state, err := term.MakeRaw(fd)
	if err != nil {
		return "", typingShown(err)
	}
	defer func() {
		_ = term.Restore(fd, state)
		fmt.Fprintln(p.out)
	}()
	fmt.Fprint(p.out, prompt)
	var line lineEditor
	b := make([]byte, 4096)
	for {
		// What came behind the last line, in one piece with it, is read first: a
		// Ctrl-C may be in it.
		chunk := p.typedAhead
		p.typedAhead = nil
		if chunk == nil {
			n, err := readWhenReady(ctx, p.in, b)
			if err != nil {
				return "", err
			}
			chunk = b[:n]
		}
		text, end := line.feed(chunk)
		p.typedAhead = line.rest
		switch end {
		case lineDone:
			return text, nil
		case lineInterrupted:
			return "", exitError(130)
		case lineClosed:
			return "", io.EOF
		}
	}
}

func typingShown(err error) error {
	return fmt.Errorf("The terminal cannot be read from without showing what is typed: %w", err)
}

// lineEnd is how the reading of a line goes on.
type lineEnd int

const (
	lineOpen lineEnd = iota
	lineDone
	lineInterrupted
	lineClosed
)

// lineEditor makes a line of the bytes of a raw terminal.
type lineEditor struct {
	line   []byte
	rest   []byte // what was fed behind the end of the line; nil for nothing
	escape escapeState
}

// escapeState is where in a sequence of a key or of a paste the editor is.
type escapeState int

const (
	unescaped escapeState = iota
	escaped               // behind ESC
	sequence              // behind ESC [ or ESC O
)

// maxLine bounds a line; more is not kept.
const maxLine = 1 << 20

func (e *lineEditor) feed(b []byte) (string, lineEnd) {
	for i, c := range b {
		switch e.escape {
		case escaped:
			e.escape = unescaped
			if c == '[' || c == 'O' {
				e.escape = sequence
			}
			continue
		case sequence:
			if c >= '@' && c <= '~' {
				e.escape = unescaped
			}
			continue
		}
		switch c {
		case '\r', '\n':
			text := strings.ToValidUTF8(string(e.line), "")
			clear(e.line)
			if i+1 < len(b) {
				e.rest = slices.Clone(b[i+1:])
			}
			return text, lineDone
		case 0x03: // Ctrl-C
			return "", lineInterrupted
		case 0x04: // Ctrl-D
			if len(e.line) == 0 {
				return "", lineClosed
			}
		case 0x08, 0x7F:
			_, size := utf8.DecodeLastRune(e.line)
			e.line = e.line[:len(e.line)-size]
		case 0x15: // Ctrl-U
			e.line = e.line[:0]
		case 0x1B:
			e.escape = escaped
		default:
			if (c >= ' ' || c == '\t') && len(e.line) < maxLine {
				e.line = append(e.line, c)
			}
		}
	}
	return "", lineOpen
}

// readNow is a read of a descriptor that has something to give.
func readNow(f *os.File, b []byte) (int, error) {
	n, err := f.Read(b)
	if n > 0 {
		return n, nil
	}
	if err == nil {
		err = io.EOF
	}
	return 0, err
}
