package compact_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/pinch-agent/pinch/compact"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/memory"
)

func Example() {
	s, err := memory.Open(session.Options{CWD: "/srv/demo"})
	if err != nil {
		panic(err)
	}
	defer s.Close()
	for i := range int64(4) {
		s.AppendMessage(llm.UserText(fmt.Sprintf("Question %d: %s", i, strings.Repeat("why? ", 100)), 2*i))
		s.AppendMessage(&llm.Assistant{Content: []llm.Block{&llm.Text{Text: "Because."}}, StopReason: llm.StopStop, Timestamp: 2*i + 1})
	}

	model := faux.New(faux.Options{})
	model.Script(faux.Say("## Goal\nTo know why."))

	settings := compact.Settings{KeepRecentTokens: new(int64(200))}
	p, err := compact.Prepare(s.Path(), settings.For(model.Model()))
	if err != nil {
		panic(err) // such as: there is nothing to compact
	}
	result, err := compact.Run(context.Background(), p, compact.Options{Model: model.Model(), Stream: model.Stream})
	if err != nil {
		panic(err)
	}
	if _, err := s.Append(result.Entry()); err != nil {
		panic(err)
	}

	fmt.Println(len(p.History), "messages summed up:")
	for _, m := range s.Context().Messages {
		switch m := m.(type) {
		case *session.CompactionSummary:
			fmt.Println(m.Role(), m.Summary)
		case *llm.User:
			fmt.Println(m.Role(), llm.TextOf(m.Content.Blocks, "")[:10])
		default:
			fmt.Println(m.Role())
		}
	}
	// Output:
	// 4 messages summed up:
	// compactionSummary ## Goal
	// To know why.
	// user Question 2
	// assistant
	// user Question 3
	// assistant
}
