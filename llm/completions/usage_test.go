package completions

import (
	"testing"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

func TestUsageDialects(t *testing.T) {
	m := &llm.Model{Provider: "x"}
	for raw, want := range map[string]string{
		`{"prompt_tokens":30,"completion_tokens":8,"total_tokens":99}`:                                                           `30 8 0 0 0 38`,
		`{"prompt_tokens":30,"completion_tokens":8,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":6}}`:          `20 8 4 6 0 38`,
		`{"prompt_tokens":30,"completion_tokens":8,"prompt_cache_hit_tokens":20,"cached_tokens":3}`:                              `10 8 20 0 0 38`,
		`{"prompt_tokens":30,"completion_tokens":8,"cached_tokens":3,"prompt_tokens_details":null}`:                              `27 8 3 0 0 38`,
		`{"prompt_tokens":30,"completion_tokens":8,"prompt_cache_hit_tokens":20,"prompt_tokens_details":{"cached_tokens":0}}`:    `30 8 0 0 0 38`,
		`{"prompt_tokens":30,"completion_tokens":8,"prompt_cache_hit_tokens":20,"prompt_tokens_details":{"cached_tokens":null}}`: `10 8 20 0 0 38`,
		`{"prompt_tokens":3,"completion_tokens":8,"prompt_tokens_details":{"cached_tokens":20}}`:                                 `0 8 20 0 0 28`,
		`{"prompt_tokens":30,"completion_tokens":8,"completion_tokens_details":{"reasoning_tokens":5},"reasoning_tokens":7}`:     `30 8 0 0 5 38`,
		`{"prompt_tokens":30,"completion_tokens":8,"completion_tokens_details":{"reasoning_tokens":0},"reasoning_tokens":7}`:     `30 8 0 0 7 38`,
		`{"prompt_tokens":null,"completion_tokens":"8"}`:                                                                         `0 0 0 0 0 0`,
		`{}`: `0 0 0 0 0 0`,
	} {
		var r jsonwire.Reader
		r.Reset([]byte(raw))
		w := readUsage(&r)
		u := w.usage(m)
		if got := counts(&u); got != want {
			t.Errorf("%s:\n got %s\nwant %s", raw, got, want)
		}
	}
}

func counts(u *llm.Usage) string {
	var b []byte
	for _, n := range []int64{u.Input, u.Output, u.CacheRead, u.CacheWrite, *u.Reasoning, u.TotalTokens} {
		b = append(jsonwire.AppendFloat(b, float64(n)), ' ')
	}
	return string(b[:len(b)-1])
}

func TestBilledCost(t *testing.T) {
	rates := llm.Rates{Input: 1, Output: 4}
	const tokens = `"prompt_tokens":1000000,"completion_tokens":1000000,`
	for raw, want := range map[string]float64{
		`"cost":0.25,"is_byok":false`:                    0.25,
		`"cost":0,"is_byok":false`:                       0,
		`"cost":0.25`:                                    5,
		`"cost":-1,"is_byok":false`:                      5,
		`"cost":1e400,"is_byok":false`:                   5,
		`"cost":"0.25","is_byok":false`:                  5,
		`"is_byok":false`:                                5,
		`"cost":0.25,"is_byok":true`:                     5,
		`"cost":0.25,"is_byok":true,"cost_details":{}`:   5,
		`"cost":0.25,"is_byok":true,"cost_details":null`: 5,
		`"cost":0.25,"is_byok":true,"cost_details":{"upstream_inference_cost":0.5}`:                                                                               0.75,
		`"cost":0.25,"is_byok":true,"cost_details":{"upstream_inference_cost":null,"upstream_inference_prompt_cost":0.5,"upstream_inference_completions_cost":1}`: 1.75,
		`"cost":0.25,"is_byok":true,"cost_details":{"upstream_inference_prompt_cost":0.5}`:                                                                        5,
		`"cost":0.25,"is_byok":true,"cost_details":{"upstream_inference_cost":"x","upstream_inference_prompt_cost":0.5,"upstream_inference_completions_cost":1}`:  5,
	} {
		for _, m := range []*llm.Model{{Provider: "openrouter", Cost: rates}, {Provider: "x", BaseURL: "https://openrouter.ai/api/v1", Cost: rates}} {
			var r jsonwire.Reader
			r.Reset([]byte("{" + tokens + raw + "}"))
			w := readUsage(&r)
			u := w.usage(m)
			if u.Cost.Total != want || *u.Cost.TotalFromProvider != (want != 5) || u.Cost.Input != 1 {
				t.Errorf("%s: got %v %t", raw, u.Cost.Total, *u.Cost.TotalFromProvider)
			}
		}
		var r jsonwire.Reader
		r.Reset([]byte("{" + tokens + raw + "}"))
		w := readUsage(&r)
		if u := w.usage(&llm.Model{Provider: "x", Cost: rates}); u.Cost.Total != 5 {
			t.Errorf("%s: another service bills %v", raw, u.Cost.Total)
		}
	}
}

func TestDetailsMerge(t *testing.T) {
	for _, c := range []struct{ entries, want string }{
		{`{"type":"reasoning.text","text":"a"}`, `[{"type":"reasoning.text","text":"a"}]`},
		{`{"type":"reasoning.text","text":"a","index":0,"format":"f"},{"type":"reasoning.text","text":"b","signature":"s","index":1}`,
			`[{"type":"reasoning.text","text":"ab","index":0,"format":"f","signature":"s"}]`},
		{`{"type":"reasoning.text","text":"a","signature":null,"x":[1, 2]},{"type":"reasoning.text","text":"b","id":"i","signature":""},{"type":"reasoning.text","text":"c","signature":"s","format":"f"}`,
			`[{"type":"reasoning.text","text":"abc","signature":"s","x":[1,2],"id":"i","format":"f"}]`},
		{`{"type":"reasoning.summary","summary":"a","id":null},{"type":"reasoning.summary","summary":"b","id":"i","signature":7}`,
			`[{"type":"reasoning.summary","summary":"ab","id":"i"}]`},
		{`{"type":"reasoning.text","text":"a"},{"type":"reasoning.encrypted","data":"e"},{"type":"reasoning.encrypted","data":"f"},{"type":"reasoning.text","text":"b"}`,
			`[{"type":"reasoning.text","text":"a"},{"type":"reasoning.encrypted","data":"e"},{"type":"reasoning.encrypted","data":"f"},{"type":"reasoning.text","text":"b"}]`},
		{`{"type":"reasoning.text","text":"\ud83d"},{"type":"reasoning.text","text":"\ude48"}`, `[{"type":"reasoning.text","text":"🙈"}]`},
	} {
		_, m := answer(t, testModel(), hello(), sse(delta(`{"reasoning_details":[`+c.entries+`]}`), finish("stop")))
		if got := *m.Content[0].(*llm.Thinking).Signature; got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.entries, got, c.want)
		}
		if stored := storedDetails(&c.want); stored == nil {
			t.Errorf("%s cannot be sent back", c.want)
		}
	}
}
