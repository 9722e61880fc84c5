package agent

import (
	"context"
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json"

	"github.com/pinch-agent/pinch/internal/jsonschema"
	"github.com/pinch-agent/pinch/llm"
)

// NewTool makes a tool whose arguments are a struct:
//
//	type where struct {
//		City string `json:"city" jsonschema:"name of the city, in English"`
//		Days int    `json:"days,omitempty" jsonschema:"how far to look ahead; 0 for now"`
//	}
//	weather := agent.NewTool("weather", "The weather in a city.",
//		func(ctx context.Context, in where, call agent.Call) (agent.Result, error) { … })
//
// The schema that the model sees is made of the fields: their json tags name
// them, a jsonschema tag describes one, and a pointer, omitempty or omitzero
// makes it optional. A schema that says more (enum, pattern, bounds) can be put
// into Parameters afterwards; other fields of the Tool can be set likewise.
//
// It panics when In is no struct, or holds what JSON or a schema cannot show.
func NewTool[In any](name, description string, run func(ctx context.Context, in In, call Call) (Result, error)) *Tool {
	schema, err := jsonschema.Of(reflect.TypeFor[In]())
	if err != nil {
		panic(fmt.Sprintf("agent.NewTool %s: %v", name, err))
	}
	return &Tool{
		Tool: llm.Tool{Name: name, Description: description, Parameters: schema},
		Execute: func(ctx context.Context, call Call) (Result, error) {
			var in In
			if err := json.Unmarshal(call.Args, &in); err != nil {
				return Result{}, fmt.Errorf("the arguments of %s cannot be read: %w", name, err)
			}
			return run(ctx, in, call)
		},
	}
}
