// Command compaction has a cheaper model write the summaries that keep a long
// conversation inside the context window. The hook decides what the summary
// says; when there is one, and what stays as it is, the settings decide.
//
//	go run ./examples/compaction
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"strings"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/compact"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
	"github.com/pinch-agent/pinch/session"
)

// summaries has m write the summaries of a harness.
func summaries(m *llm.Model, stream agent.StreamFunc) harness.Hooks {
	return harness.Hooks{
		Name: "summaries",
		SessionBeforeCompact: func(ctx context.Context, c harness.Compacting) (*harness.CompactDecision, error) {
			var ask strings.Builder
			ask.WriteString("Write a note for a colleague who takes over this conversation.\n\n")
			if c.PreviousSummary != "" { // of the compaction before, which this one replaces
				ask.WriteString("What came before:\n" + c.PreviousSummary + "\n\n")
			}
			ask.WriteString(compact.Serialize(slices.Concat(c.Messages, c.TurnPrefix)))
			answers, err := stream(ctx, m, &llm.Request{Messages: []llm.Message{llm.UserText(ask.String(), 0)}})
			if err != nil {
				return nil, err
			}
			note := answers.Result()
			if err := note.Err(); err != nil {
				return nil, err // the conversation stays as it is
			}
			if note.StopReason != llm.StopStop || note.Text() == "" {
				return nil, errors.New("the note is cut or empty") // nobody else looks
			}
			return &harness.CompactDecision{Compaction: &session.CompactionEntry{
				Summary: note.Text(), FirstKept: c.FirstKept, TokensBefore: c.TokensBefore, Usage: &note.Usage,
			}}, nil
		},
	}
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	small := faux.New(faux.Options{ID: "small"})
	small.Script(faux.Say("They count the boats in a harbour: 3 in the morning."))
	large := faux.New(faux.Options{Models: []llm.Model{{ID: "large", ContextWindow: 400, MaxTokens: 100}}})
	large.Script(
		faux.Say("Noted: 3 in the morning. "+strings.Repeat("Mind the tide. ", 70)),
		faux.Say("Noted: 5 at noon."),
		faux.Say("8 boats."),
	)
	h, err := harness.New(harness.Options{
		Model: large.Model(), Stream: large.Stream,
		Hooks: []harness.Hooks{summaries(small.Model(), small.Stream)},
		// The figures of a real model are a hundred times these; see compact.Settings.
		Compaction: compact.Settings{ReserveTokens: new(int64(100)), KeepRecentTokens: new(int64(5))},
	})
	if err != nil {
		return err
	}
	defer h.Close()
	h.Subscribe(func(_ context.Context, ev harness.Event) error {
		switch {
		case ev.Type != harness.CompactionEnd:
		case ev.Compacted != nil:
			fmt.Printf("compacted (%s): %s\n", ev.Reason, ev.Compacted.Summary)
		default:
			fmt.Println("not compacted:", ev.ErrorMessage)
		}
		return nil
	})
	for _, text := range []string{"3 boats in the morning.", "5 more at noon.", "How many are that?"} {
		answer, err := h.Prompt(ctx, text)
		if err == nil {
			err = answer.Err()
		}
		if err != nil {
			return err
		}
	}
	fmt.Println("what the model sees now:")
	for _, m := range session.ToLLM(h.Messages()) {
		if said, ok := m.(interface{ Text() string }); ok { // system messages have sections
			fmt.Printf("  %s: %.50q\n", m.Role(), said.Text())
		}
	}
	fmt.Println("what the session keeps:", len(h.Session().Entries()), "entries")
	return nil
}
