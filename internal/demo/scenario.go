// Package demo is a model without a mind: a scenario of prepared answers behind
// a loopback server that speaks the Anthropic wire format, so that everything
// else on the way (request, stream, tools, session) is real. It serves the demo
// of the program and people who script a model for their tests.
package demo

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/regular"
)

// Scenario is a script: what to answer, request by request.
type Scenario struct {
	Description string `json:"description,omitempty"`
	// DelayMs is the pause after each piece of text, in milliseconds.
	DelayMs int    `json:"delayMs,omitempty"`
	Turns   []Turn `json:"turns"`
	Loop    bool   `json:"loop,omitempty"` // begin again after the last turn
}

// Turn is one answer, or one failure.
type Turn struct {
	// When skips the turn unless the expression matches the last message of the
	// request: the texts of the prompt or of the tool results.
	When string `json:"when,omitempty"`
	// Expect fails the request, with a message that quotes both, unless the
	// expression matches the last message.
	Expect string `json:"expect,omitempty"`

	Thinking  Pieces `json:"thinking,omitempty"`
	Text      Pieces `json:"text,omitempty"`
	ToolCalls []Call `json:"toolCalls,omitempty"`
	// StopReason is the provider's word; by default tool_use with tool calls and
	// end_turn without.
	StopReason string `json:"stopReason,omitempty"`
	Usage      *Usage `json:"usage,omitempty"` // estimated from the texts by default

	// Status answers with an HTTP failure and Error as its message.
	Status int    `json:"status,omitempty"`
	Error  string `json:"error,omitempty"`
	Hang   bool   `json:"hang,omitempty"` // keep the stream open after the content
	Drop   bool   `json:"drop,omitempty"` // cut the connection after the content

	when, expect *regexp.Regexp
}

// Call is a tool call. Without an ID it gets one that no other call has.
type Call struct {
	ID   string         `json:"id,omitempty"`
	Name string         `json:"name"`
	Args jsontext.Value `json:"args,omitempty"` // an object; {} by default
}

// Usage counts tokens.
type Usage struct {
	Input     int `json:"input"`
	Output    int `json:"output"`
	CacheRead int `json:"cacheRead,omitempty"`
}

// Pieces is a text in the pieces in which it arrives. In JSON it is a list of
// strings or one string.
type Pieces []string

// UnmarshalJSON implements json.Unmarshaler.
func (p *Pieces) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		*p = Pieces{s}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(p))
}

//go:embed scenario/*.json
var builtin embed.FS

// Names lists the built-in scenarios.
func Names() []string {
	files, err := builtin.ReadDir("scenario")
	if err != nil {
		return nil
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), ".json"))
	}
	return names
}

// IsFile reports whether a model id means a scenario file rather than a
// built-in scenario.
func IsFile(id string) bool { return strings.HasSuffix(id, ".json") }

// Load reads the scenario that a model id names: a built-in one, or a file,
// which ends in .json.
func Load(id string) (*Scenario, error) {
	if IsFile(id) {
		b, err := regular.ReadFile(id)
		if err != nil {
			return nil, fmt.Errorf("cannot read the scenario: %w", err)
		}
		s, err := Parse(b)
		if err != nil {
			return nil, fmt.Errorf("scenario %s: %w", id, err)
		}
		return s, nil
	}
	if !slices.Contains(Names(), id) {
		return nil, fmt.Errorf("there is no scenario %q; built in are %s, and a file of your own is named by its path, which ends in .json",
			id, strings.Join(Names(), ", "))
	}
	b, err := builtin.ReadFile(path.Join("scenario", id+".json"))
	if err != nil {
		return nil, err
	}
	return Parse(b)
}

// Parse reads a scenario and checks it.
func Parse(b []byte) (*Scenario, error) {
	s := &Scenario{}
	b = bytes.TrimPrefix(b, []byte("\xEF\xBB\xBF"))
	if err := json.Unmarshal(b, s, json.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	if len(s.Turns) == 0 {
		return nil, errors.New("a scenario needs at least one turn")
	}
	for i := range s.Turns {
		if err := s.Turns[i].check(); err != nil {
			return nil, fmt.Errorf("turn %d: %w", i+1, err)
		}
	}
	return s, nil
}

func (t *Turn) check() error {
	var err error
	if t.When != "" {
		if t.when, err = regexp.Compile(t.When); err != nil {
			return fmt.Errorf("when: %w", err)
		}
	}
	if t.Expect != "" {
		if t.expect, err = regexp.Compile(t.Expect); err != nil {
			return fmt.Errorf("expect: %w", err)
		}
	}
	if t.Status != 0 && (t.Status < 400 || t.Status > 599) {
		return fmt.Errorf("status %d is no failure", t.Status)
	}
	for i := range t.ToolCalls {
		c := &t.ToolCalls[i]
		if c.Name == "" {
			return fmt.Errorf("tool call %d has no name", i+1)
		}
		if len(c.Args) == 0 {
			c.Args = jsontext.Value("{}")
		}
		if c.Args[0] != '{' {
			return fmt.Errorf("tool call %d: args must be an object", i+1)
		}
	}
	return nil
}

// player plays a scenario. It is not safe for concurrent use.
type player struct {
	scenario *Scenario
	next     int // the turn to try first
}

// answer is the turn for a request whose last message says last. A scenario
// that is over answers so; an expectation that fails is a turn that fails.
func (p *player) answer(last string) Turn {
	turns := p.scenario.Turns
	for range 2 * len(turns) {
		if p.next == len(turns) {
			if !p.scenario.Loop {
				break
			}
			p.next = 0
		}
		t := turns[p.next]
		p.next++
		if t.when != nil && !t.when.MatchString(last) {
			continue
		}
		if t.expect != nil && !t.expect.MatchString(last) {
			return Turn{Status: 400, Error: fmt.Sprintf("turn %d of the scenario expected %q in the last message, which says: %s",
				p.next, t.Expect, shorten(last, 300))}
		}
		return t
	}
	return Turn{Text: Pieces{"(The scenario is over.)"}}
}

func shorten(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}
