package rpc

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// command is one line of the input.
type command struct {
	id      jsontext.Value // as it came; nil for none
	typ     jsontext.Value // likewise
	name    string         // the type, when it is a text
	members []member       // all of them
}

type member struct {
	name  string
	value jsontext.Value
}

// parse reads a line. An error says that it is no JSON; what is no object has no
// members.
func parse(text []byte) (*command, error) {
	if !utf8.Valid(text) {
		text = jsonwire.AppendUTF8(nil, text)
	}
	c := &command{}
	var r jsonwire.Reader
	r.ResetShared(text)
	for r.Object(); r.More(); {
		name := string(r.Key())
		c.members = append(c.members, member{name, r.Keep()})
	}
	if err := r.End(); err != nil {
		return nil, err
	}
	c.id, c.typ = c.get("id"), c.get("type")
	c.name, _ = jsonwire.StringValue(c.typ)
	return c, nil
}

// get is a member as it came, the last one of its name; nil when there is none.
func (c *command) get(name string) jsontext.Value {
	for i := len(c.members) - 1; i >= 0; i-- {
		if c.members[i].name == name {
			return c.members[i].value
		}
	}
	return nil
}

// text is a member that must be there and a string.
func (c *command) text(name string) (string, error) {
	v := c.get(name)
	if v == nil {
		return "", fmt.Errorf("%s needs %q", c.name, name)
	}
	s, ok := jsonwire.StringValue(v)
	if !ok {
		return "", fmt.Errorf("%s needs %q as a string", c.name, name)
	}
	return s, nil
}

// optional is a member that may be left out or null, else a string.
func (c *command) optional(name string) (string, error) {
	if v := c.get(name); v == nil || string(v) == "null" {
		return "", nil
	}
	return c.text(name)
}

// flag is a member that must be there, true or false.
func (c *command) flag(name string) (bool, error) {
	switch string(c.get(name)) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("%s needs %q as true or false", c.name, name)
}

var errTooLong = errors.New("the line is longer than 256 MiB")
