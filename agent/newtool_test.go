package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
)

type page struct {
	Limit *uint `json:"limit"`
}

type everything struct {
	Query  string             `json:"query" jsonschema:"what to \"look\" for"`
	Exact  bool               `json:"exact,omitempty"`
	Weight float64            `json:"weight,omitzero"`
	Tags   []string           `json:"tags" jsonschema:"any of these"`
	Box    [2]int             `json:"box"`
	Facets map[string]float32 `json:"facets,omitempty"`
	Since  time.Time          `json:"since,omitzero"`
	From   netip.Addr         `json:"from,omitzero"`
	Raw    jsontext.Value     `json:"raw,omitempty" jsonschema:"anything"`
	Old    json.RawMessage    `json:"old,omitempty"`
	Blob   []byte             `json:"blob,omitempty"`
	Near   struct{ Lat, Lon float64 }
	page
	Hidden string `json:"-"`
}

func TestSchemaOfAStruct(t *testing.T) {
	tool := agent.NewTool("search", "Searches.", func(_ context.Context, in everything, _ agent.Call) (agent.Result, error) {
		return agent.TextResult(fmt.Sprint(in.Query, in.Tags, in.Box, *in.Limit, in.Near.Lat, in.From, in.Hidden)), nil
	})
	want := `{"type":"object","properties":{` +
		`"query":{"type":"string","description":"what to \"look\" for"},` +
		`"exact":{"type":"boolean"},"weight":{"type":"number"},` +
		`"tags":{"type":"array","description":"any of these","items":{"type":"string"}},` +
		`"box":{"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":2},` +
		`"facets":{"type":"object","additionalProperties":{"type":"number"}},` +
		`"since":{"type":"string","format":"date-time"},"from":{"type":"string"},` +
		`"raw":{"description":"anything"},"old":{},"blob":{"type":"string","contentEncoding":"base64"},` +
		`"Near":{"type":"object","properties":{"Lat":{"type":"number"},"Lon":{"type":"number"}},"required":["Lat","Lon"]},` +
		`"limit":{"type":"integer","minimum":0}},"required":["query","tags","box","Near"]}`
	if got := string(tool.Parameters); got != want {
		t.Errorf("the schema is\n%s\nwant\n%s", got, want)
	}
	// The schema and the decoder agree: what the one lets through the other reads.
	args := `{"query":"q","tags":["a"],"box":[1,2],"limit":7,"Near":{"Lat":1.5,"Lon":2},"from":"::1","since":"2026-01-02T03:04:05Z"}`
	valid, err := agent.Validate(tool.Tool, &llm.ToolCall{Name: "search", Arguments: jsontext.Value(args)})
	if err != nil {
		t.Fatal(err)
	}
	r, err := tool.Execute(context.Background(), agent.Call{Args: valid})
	if err != nil {
		t.Fatal(err)
	}
	if got := llm.TextOf(r.Content, ""); got != "q[a] [1 2] 7 1.5 ::1" {
		t.Errorf("the tool got %q", got)
	}
}

func TestArgumentsThatDoNotFitAreAnErrorOfTheCall(t *testing.T) {
	tool := agent.NewTool("count", "", func(_ context.Context, in struct{ N int8 }, _ agent.Call) (agent.Result, error) {
		return agent.TextResult(fmt.Sprint(in.N)), nil
	})
	_, err := tool.Execute(context.Background(), agent.Call{Args: jsontext.Value(`{"N":1000}`)})
	if err == nil || !strings.Contains(err.Error(), "the arguments of count cannot be read") {
		t.Errorf("got %v", err)
	}
}

func TestTypesThatAreNoArguments(t *testing.T) {
	type tree struct {
		Children []tree `json:"children"`
	}
	for name, make := range map[string]func(){
		"no struct":    func() { agent.NewTool[string]("x", "", nil) },
		"channel":      func() { agent.NewTool[struct{ C chan int }]("x", "", nil) },
		"integer keys": func() { agent.NewTool[struct{ M map[int]int }]("x", "", nil) },
		"itself":       func() { agent.NewTool[tree]("x", "", nil) },
		"duration":     func() { agent.NewTool[struct{ D time.Duration }]("x", "", nil) },
		"own decoder":  func() { agent.NewTool[struct{ D decoder }]("x", "", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if v := recover(); v == nil || !strings.HasPrefix(fmt.Sprint(v), "agent.NewTool x: ") {
					t.Errorf("panic %v", v)
				}
			}()
			make()
		})
	}
}

type decoder struct{}

var _ json.Unmarshaler = (*decoder)(nil)

func (*decoder) UnmarshalJSON([]byte) error { return nil }
