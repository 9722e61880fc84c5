package agent

import (
	"fmt"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonschema"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// Validate checks the arguments of a call against the schema of its tool and
// returns them in the form that the tool runs with: what fits is returned as it
// is, what nearly fits is converted first ("42" for a number, one value for a
// list), and anything else is an *ArgumentError. The call is not changed.
//
// It compiles the schema each time; runs keep it.
func Validate(tool llm.Tool, call *llm.ToolCall) (jsontext.Value, error) {
	return newValidator(&tool).validate(call)
}

// ArgumentError says why a call cannot run. Its text is written for the model.
type ArgumentError struct {
	Tool     string
	Syntax   string            // the arguments were no JSON object; what is wrong, with the text that came
	Problems []ArgumentProblem // they were, but do not fit the schema
	Received jsontext.Value
}

// ArgumentProblem is one place of arguments that does not fit.
type ArgumentProblem struct {
	Path   string // such as edits.1.oldText; root for the whole
	Reason string // such as "expected number, got string", missing, "unknown field"
}

func (e *ArgumentError) Error() string {
	if e.Syntax != "" {
		return fmt.Sprintf("Invalid arguments for tool \"%s\": %s", e.Tool, e.Syntax)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Validation failed for tool \"%s\":\n", e.Tool)
	for _, p := range e.Problems {
		fmt.Fprintf(&b, "  - %s: %s\n", p.Path, p.Reason)
	}
	b.WriteString("\nReceived arguments:\n")
	received, err := jsonwire.AppendIndent(nil, e.Received, "  ")
	if err != nil {
		received = e.Received
	}
	b.Write(received)
	return b.String()
}

// validator validates the calls of one tool.
type validator struct {
	schema *jsonschema.Schema
}

func newValidator(t *llm.Tool) *validator {
	return &validator{schema: jsonschema.Compile(t.Parameters)}
}

func (v *validator) validate(call *llm.ToolCall) (jsontext.Value, error) {
	if call.ArgumentsError != "" {
		return nil, &ArgumentError{Tool: call.Name, Syntax: call.ArgumentsError, Received: call.Arguments}
	}
	received := call.Arguments
	if len(received) == 0 {
		received = jsontext.Value("{}")
	}
	args, problems := v.schema.Coerce(received)
	if len(problems) == 0 {
		return args, nil
	}
	e := &ArgumentError{Tool: call.Name, Received: received, Problems: make([]ArgumentProblem, len(problems))}
	for i, p := range problems {
		e.Problems[i] = ArgumentProblem{Path: p.Path, Reason: p.Reason}
	}
	return nil, e
}

// validators keeps the compiled schemas of tools. Safe for concurrent use.
type validators struct {
	mu   sync.Mutex
	kept map[*Tool]*kept
}

type kept struct {
	validator  *validator
	parameters jsontext.Value // that it was made of
}

// keptLimit bounds the compiled schemas that an Agent keeps. Tools that come
// and go, as those of a server that reconnects, start afresh beyond it.
const keptLimit = 1024

func (v *validators) of(t *Tool) *validator {
	v.mu.Lock()
	defer v.mu.Unlock()
	if k := v.kept[t]; k != nil && sameBytes(k.parameters, t.Parameters) {
		return k.validator
	}
	if v.kept == nil || len(v.kept) >= keptLimit {
		v.kept = map[*Tool]*kept{}
	}
	k := &kept{validator: newValidator(&t.Tool), parameters: t.Parameters}
	v.kept[t] = k
	return k.validator
}

// sameBytes reports whether a and b are the same memory.
func sameBytes(a, b jsontext.Value) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
