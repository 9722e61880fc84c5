// Command structured gets an answer as a Go value. A tool whose arguments are
// the answer has the model fill in a form: its schema is checked, a form that
// does not fit goes back to the model, and the first good one ends the run.
//
//	go run ./examples/structured
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
)

// extract asks for a T.
func extract[T any](ctx context.Context, model *llm.Model, stream agent.StreamFunc, question string) (T, error) {
	var out *T
	answer := agent.NewTool("answer", "Gives the answer. Call it exactly once, at the end.",
		func(_ context.Context, in T, _ agent.Call) (agent.Result, error) {
			out = &in
			return agent.Result{Content: []llm.Block{&llm.Text{Text: "Thank you."}}, Terminate: true}, nil
		})
	answer.Execution = agent.Sequential // out has one writer
	var none T
	h, err := harness.New(harness.Options{
		Model: model, Stream: stream, Tools: []*agent.Tool{answer},
		SystemPrompt: "Answer by calling the tool answer.",
	})
	if err != nil {
		return none, err
	}
	defer h.Close()
	last, err := h.Prompt(ctx, question)
	switch {
	case err != nil:
		return none, err
	case out != nil:
		return *out, nil
	case last.Err() != nil:
		return none, last.Err()
	}
	return none, errors.New("the model answered in prose: " + last.Text())
}

type invoice struct {
	Number string  `json:"number"`
	Total  float64 `json:"total" jsonschema:"in euros, with tax"`
	Lines  []struct {
		Text  string  `json:"text"`
		Price float64 `json:"price"`
	} `json:"lines"`
}

func main() {
	model := faux.New(faux.Options{})
	model.Script(
		faux.Reply(faux.ToolCall("answer", `{"number":"2026-17","lines":[]}`)), // no total: back to the model
		faux.Reply(faux.ToolCall("answer", `{"number":"2026-17","total":12.5,"lines":[{"text":"Coffee","price":12.5}]}`)),
	)
	got, err := extract[invoice](context.Background(), model.Model(), model.Stream, "Read this invoice: …")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %.2f €, %d line, after %d requests\n", got.Number, got.Total, len(got.Lines), len(model.Requests()))
}
