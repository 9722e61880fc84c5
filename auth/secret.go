package auth

import (
	"fmt"
	"io"
	"log/slog"
)

const hidden = "(hidden)"

// Secret is text that must not be seen: printing, logging or encoding it shows
// a placeholder. Reveal gives the text where it is sent. The zero Secret is
// empty.
type Secret struct {
	// A pointer, because fmt prints unexported fields of enclosing structs by
	// reflection and without asking their methods: it then prints an address.
	text *string
}

// NewSecret wraps text.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{text: &text}
}

// Reveal is the text.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsEmpty reports whether there is no text.
func (s Secret) IsEmpty() bool { return s.text == nil }

// String hides the text.
func (s Secret) String() string {
	if s.text == nil {
		return ""
	}
	return hidden
}

// GoString hides the text.
func (s Secret) GoString() string { return "auth.Secret(" + s.String() + ")" }

// Format hides the text from every print verb.
func (s Secret) Format(f fmt.State, _ rune) { io.WriteString(f, s.String()) }

// MarshalJSON hides the text.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }

// MarshalText hides the text.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue hides the text.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
