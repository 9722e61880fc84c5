package wire

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/llm"
)

func TestBody(t *testing.T) {
	m := &llm.Model{
		Reasoning: true, SamplingParams: jsontext.Value(`{"top_p": 0.90,"seed":1,"model":"other"}`),
		// It cannot be told not to think, and thinks at its lowest level then.
		ThinkingLevelMap: map[llm.ThinkingLevel]*string{llm.LevelOff: nil, llm.LevelMinimal: nil},
		SamplingParamsByThinkingLevel: map[llm.ThinkingLevel]jsontext.Value{
			llm.LevelOff: jsontext.Value(`{"seed":2}`), llm.LevelLow: jsontext.Value(`{"seed":4}`),
			llm.LevelHigh: jsontext.Value(`{"seed":3}`),
		},
	}
	for _, c := range []struct {
		level   llm.ThinkingLevel
		request string
		want    string
	}{
		{"", ``, `"top_p":0.9,"seed":4`},
		{"", `{"x":null}`, `"top_p":0.9,"seed":4,"x":null`},
		{llm.LevelMinimal, ``, `"top_p":0.9,"seed":4`},
		{llm.LevelMax, `{"top_p":1}`, `"top_p":1,"seed":3`}, // high is the strongest level of the model
	} {
		w := BeginBody([]byte("> "), MergeSamplingParams(m, c.level, jsontext.Value(c.request)))
		w.Text("model", "m")
		w.Bool("stream", true)
		w.Int("n", 7)
		w.Float("f", 0.5)
		w.JSON("j", "[]")
		w.Raw("r", jsontext.Value(` { "a" : 1.0 } `))
		w.Raw("broken", jsontext.Value(`{`))
		want := `> {"model":"other","stream":true,"n":7,"f":0.5,"j":[],"r":{"a":1},"broken":null,` + c.want + `}`
		if got := string(w.End()); got != want {
			t.Errorf("level %q:\n got %s\nwant %s", c.level, got, want)
		}
	}
	if got := string(BeginBody(nil, nil).End()); got != "{}" {
		t.Errorf("empty body %s", got)
	}
}
