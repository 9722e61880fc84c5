package agent_test

import (
	"testing"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/faux"
)

func TestConfigureHoldsFromTheNextRun(t *testing.T) {
	model := faux.New(faux.Options{})
	model.Script(faux.Say("one"), faux.Say("two"))
	a := agent.New(agent.Options{Config: agent.Config{Model: model.Model(), Stream: model.Stream}})
	other := *model.Model()
	other.ID, other.Reasoning = "other", true
	a.SetModel(&other)
	a.SetThinkingLevel(llm.LevelHigh)
	a.SetQueueModes(agent.All, "")
	a.Steer(llm.UserText("a", 1), llm.UserText("b", 1))
	if err := a.PromptText(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	req := model.Requests()[0]
	if req.Model.ID != "other" || req.Request.Reasoning != llm.LevelHigh {
		t.Errorf("asked %s at %q", req.Model.ID, req.Request.Reasoning)
	}
	if n := len(req.Request.Messages); n != 3 {
		t.Errorf("the first request shows %d messages, want the prompt and both that waited", n)
	}
}
