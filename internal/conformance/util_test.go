package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/auth"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/transcript"
)

// The tables of ai/util: pure functions of the model layer, one case a row.

var utilDeviations = []deviation{
	// A result whose call is not sent, or was closed already, is left out or
	// moved to its call; services refuse it where the peers send it.
	{"ai/util", "transform-messages#*", "orphans"},
}

// tables maps the name of a table to what runs one row of it.
var tables = map[string]func(row []byte) outcome{
	"azure-endpoint":       rowAzureEndpoint,
	"cache-warming":        rowWarmingDelay,
	"config-values":        rowConfigValue,
	"context-overflow":     rowContextOverflow,
	"cost":                 rowCost,
	"estimate-context":     rowEstimate,
	"google-model-rules":   rowGoogleModelRules,
	"max-tokens-clamp":     rowClamp,
	"partial-arguments":    rowPartialArguments,
	"prompt-cache-key":     rowText(transcript.PromptCacheKey),
	"retry-delay":          rowRetryDelay,
	"retryable":            rowRetryable,
	"sanitize-surrogates":  rowText(jsonwire.DropSurrogates),
	"short-hash":           rowText(transcript.ShortHash),
	"strict-schema":        rowStrictSchema,
	"thinking-budget":      rowThinkingBudget,
	"thinking-levels":      rowThinkingLevels,
	"tool-arguments-final": rowFinalArguments,
	"tool-validation":      rowToolValidation,
	"transcript":           rowTranscript,
	"transform-images":     rowTransformImages,
	"transform-messages":   rowTransformMessages,
	"truncate-error-text":  rowTruncate,
	"user-agent":           rowUserAgent,
}

func TestUtil(t *testing.T) {
	g := newGroup("ai/util")
	for _, file := range vectorFiles(t, "ai/util") {
		base := strings.TrimSuffix(filepath.Base(file), ".json")
		var table struct{ Rows []json.RawMessage }
		readVector(t, file, &table)
		run := tables[base]
		for i, row := range table.Rows {
			o := outcome{}
			if run == nil {
				o.add("table", "nothing here answers this table")
			} else {
				o = run(row)
			}
			g.report(t, base+"#"+strconv.Itoa(i+1), o, utilDeviations)
		}
	}
}

// row reads a row into a struct. Text that may hold halves of surrogate pairs
// is read by textMember.
func row[T any](raw []byte) T {
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		panic(fmt.Sprintf("%v: %s", err, raw))
	}
	return v
}

func textMember(raw []byte, name string) string {
	s, _ := jsonwire.StringValue(jsonwire.Get(raw, name))
	return s
}

// tree decodes JSON for comparison; strings keep halves of surrogate pairs.
func tree(raw []byte) any {
	var r jsonwire.Reader
	r.Reset(raw)
	v := readTree(&r)
	if err := r.End(); err != nil {
		return fmt.Sprintf("%v in %q", err, raw)
	}
	return v
}

func readTree(r *jsonwire.Reader) any {
	switch r.Kind() {
	case '{':
		m := map[string]any{}
		for r.Object(); r.More(); {
			k := string(r.Key())
			m[k] = readTree(r)
		}
		return m
	case '[':
		l := []any{}
		for r.Array(); r.More(); {
			l = append(l, readTree(r))
		}
		return l
	case '"':
		return r.Text()
	case '0':
		return r.Float()
	case 't', 'f':
		return r.Bool()
	default:
		r.Skip()
		return nil
	}
}

// fits compares trees; the placeholders in want stand for what their names say.
func fits(got, want any) bool {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for k, v := range w {
			if gv, ok := g[k]; !ok || !fits(gv, v) {
				return false
			}
		}
		return true
	case []any:
		g, ok := got.([]any)
		return ok && slices.EqualFunc(g, w, fits)
	case string:
		if w == "<timestamp>" {
			n, ok := got.(float64)
			return ok && n == math.Trunc(n)
		}
		g, ok := got.(string)
		return ok && textFits(g, w)
	}
	return reflect.DeepEqual(got, want)
}

var wildcard = regexp.MustCompile(`<any>|<json-error>`)

func textFits(got, want string) bool {
	parts := wildcard.Split(want, -1)
	if len(parts) == 1 {
		return got == want
	}
	for i, p := range parts {
		parts[i] = regexp.QuoteMeta(p)
	}
	ok, _ := regexp.MatchString(`(?s)^`+strings.Join(parts, `.+`)+`$`, got)
	return ok
}

// check notes a difference between JSON texts.
func (o outcome) check(field string, got, want []byte) {
	if !fits(tree(got), tree(want)) {
		o.add(field, "got %s, want %s", got, want)
	}
}

func (o outcome) checkValue(field string, got, want any) {
	if !reflect.DeepEqual(got, want) {
		o.add(field, "got %v, want %v", got, want)
	}
}

func rowText(f func(string) string) func([]byte) outcome {
	return func(raw []byte) outcome {
		o := outcome{}
		if got, want := f(textMember(raw, "input")), textMember(raw, "expect"); got != want {
			o.add("expect", "got %q, want %q", got, want)
		}
		return o
	}
}

func rowConfigValue(raw []byte) outcome {
	r := row[struct {
		Input  string
		Env    map[string]string
		Expect *string
	}](raw)
	process := map[string]string{"VEC_ONE": "one", "VEC_TWO": "two"}
	env := auth.Env{Scoped: r.Env, Process: func(name string) string { return process[name] }}
	got, err := auth.Resolve(context.Background(), r.Input, env, nil)
	o := outcome{}
	switch {
	case r.Expect == nil && err == nil:
		o.add("expect", "got %q, want no value", got)
	case r.Expect != nil && (err != nil || got != *r.Expect):
		o.add("expect", "got %q, %v, want %q", got, err, *r.Expect)
	}
	return o
}

// message reads a message of a row, which may lack its role.
func message(raw json.RawMessage, role string) llm.Message {
	members := row[map[string]json.RawMessage](raw)
	if _, ok := members["role"]; !ok {
		raw = append([]byte(`{"role":"`+role+`",`), raw[1:]...)
	}
	m, err := llm.ParseMessage(raw)
	if err != nil {
		panic(fmt.Sprintf("%v: %s", err, raw))
	}
	return m
}

func messages(raw []byte) []llm.Message {
	out := []llm.Message{}
	for _, m := range row[[]json.RawMessage](raw) {
		out = append(out, message(m, ""))
	}
	return out
}

func rowContextOverflow(raw []byte) outcome {
	r := row[struct {
		Message       json.RawMessage
		ContextWindow int
		Expect        bool
	}](raw)
	o := outcome{}
	o.checkValue("expect", llm.IsContextOverflow(message(r.Message, "assistant").(*llm.Assistant), r.ContextWindow), r.Expect)
	return o
}

func rowRetryable(raw []byte) outcome {
	o := outcome{}
	o.checkValue("expect", llm.IsRetryable(message(raw, "assistant").(*llm.Assistant)), row[struct{ Expect bool }](raw).Expect)
	return o
}

func rowRetryDelay(raw []byte) outcome {
	r := row[struct {
		Policy  struct{ BaseDelayMs, MaxAgentDelayMs int64 }
		Attempt int
		Expect  int64
	}](raw)
	o := outcome{}
	got := llm.RetryDelay(time.Duration(r.Policy.BaseDelayMs)*time.Millisecond, time.Duration(r.Policy.MaxAgentDelayMs)*time.Millisecond, r.Attempt)
	o.checkValue("expect", got.Milliseconds(), r.Expect)
	return o
}

func rowAzureEndpoint(raw []byte) outcome {
	r := row[struct {
		Model   llm.Model
		Options struct {
			Env                                                                   map[string]string
			AzureBaseURL, AzureResourceName, AzureAPIVersion, AzureDeploymentName string
		}
		Expect      json.RawMessage
		ExpectError string
	}](raw)
	in := &r.Options
	host := wire.Host{Getenv: noEnv}.Default()
	at, err := host.Azure(&r.Model, &llm.Options{Env: in.Env}, wire.Azure{
		BaseURL: in.AzureBaseURL, APIVersion: in.AzureAPIVersion, Deployment: in.AzureDeploymentName,
	}, in.AzureResourceName)
	o := outcome{}
	if err != nil || r.ExpectError != "" {
		o.checkValue("expectError", fmt.Sprint(err), r.ExpectError)
		return o
	}
	got, _ := json.Marshal(map[string]string{"baseUrl": at.BaseURL, "apiVersion": at.APIVersion, "deployment": at.Deployment})
	o.check("expect", got, r.Expect)
	return o
}

func rowWarmingDelay(raw []byte) outcome {
	r := row[struct {
		TTLMs  int64 `json:"ttlMs"`
		Expect *int64
	}](raw)
	o := outcome{}
	delay, ok := llm.WarmingDelay(time.Duration(r.TTLMs) * time.Millisecond)
	if ok != (r.Expect != nil) || ok && delay.Milliseconds() != *r.Expect {
		o.add("expect", "got %v %v, want %v ms", delay, ok, r.Expect)
	}
	return o
}

func rowCost(raw []byte) outcome {
	r := row[struct {
		Cost          llm.Rates
		Usage, Expect json.RawMessage
	}](raw)
	var reader jsonwire.Reader
	reader.Reset(r.Usage)
	u := llm.ReadUsage(&reader)
	u.Cost = r.Cost.Price(&u)
	o := outcome{}
	o.check("expect", jsonwire.Get(u.AppendJSON(nil), "cost"), r.Expect)
	return o
}

func rowEstimate(raw []byte) outcome {
	r := row[struct{ Messages, Expect json.RawMessage }](raw)
	given := messages(r.Messages)
	o := outcome{}
	show := func(e transcript.ContextEstimate) []byte {
		last := "null"
		if e.UsageIndex >= 0 {
			last = strconv.Itoa(e.UsageIndex)
		}
		return fmt.Appendf(nil, `{"tokens":%d,"usageTokens":%d,"trailingTokens":%d,"lastUsageIndex":%s}`, e.Tokens, e.Usage, e.Trailing, last)
	}
	o.check("expect", show(transcript.Estimate(given)), r.Expect)
	var h transcript.History[int]
	o.check("expect", show(h.Build(given, &transcript.Rules{Model: &llm.Model{}}).Estimate), r.Expect)
	return o
}

func rowClamp(raw []byte) outcome {
	r := row[struct{ ContextWindow, UserChars, MaxTokens, Expect int }](raw)
	e := transcript.Estimate([]llm.Message{llm.UserText(strings.Repeat("x", r.UserChars), 1)})
	o := outcome{}
	o.checkValue("expect", transcript.ClampMaxTokens(r.ContextWindow, e.Tokens, r.MaxTokens), r.Expect)
	return o
}

func rowThinkingBudget(raw []byte) outcome {
	r := row[struct {
		Base, ModelMax int
		Level          llm.ThinkingLevel
		Budgets        map[llm.ThinkingLevel]int
		Expect         struct{ MaxTokens, ThinkingBudget int }
	}](raw)
	maxTokens, budget := transcript.ThinkingBudget(r.Base, r.ModelMax, r.Level, r.Budgets)
	o := outcome{}
	o.checkValue("expect.maxTokens", maxTokens, r.Expect.MaxTokens)
	o.checkValue("expect.thinkingBudget", budget, r.Expect.ThinkingBudget)
	return o
}

func rowThinkingLevels(raw []byte) outcome {
	r := row[struct {
		Model           llm.Model
		ExpectSupported []llm.ThinkingLevel
		ExpectClamp     map[llm.ThinkingLevel]llm.ThinkingLevel
	}](raw)
	o := outcome{}
	o.checkValue("expectSupported", r.Model.SupportedLevels(), r.ExpectSupported)
	for l, want := range r.ExpectClamp {
		o.checkValue("expectClamp."+string(l), r.Model.ClampLevel(l), want)
	}
	return o
}

// arguments is the final form of arguments as the tables write it.
func arguments(args jsontext.Value, problem string) []byte {
	out := append([]byte(`{"arguments":`), args...)
	if problem != "" {
		out = jsonwire.AppendString(append(out, `,"argumentsError":`...), problem)
	}
	return append(out, '}')
}

func rowPartialArguments(raw []byte) outcome {
	r := row[struct {
		Pieces, ExpectPartial []json.RawMessage
		ExpectFinal           json.RawMessage
	}](raw)
	o := outcome{}
	var args wire.Args
	for i, p := range r.Pieces {
		piece, _ := jsonwire.StringValue(p)
		args.WriteString(piece)
		o.check("expectPartial."+strconv.Itoa(i), args.Value(), r.ExpectPartial[i])
	}
	o.check("expectFinal", arguments(args.Final()), r.ExpectFinal)
	return o
}

func rowFinalArguments(raw []byte) outcome {
	o := outcome{}
	o.check("expect", arguments(wire.FinalArgs([]byte(textMember(raw, "input")))), jsonwire.Get(raw, "expect"))
	return o
}

func rowStrictSchema(raw []byte) outcome {
	r := row[struct {
		Schema, Expect json.RawMessage
		ExpectError    string
	}](raw)
	o := outcome{}
	got, err := wire.StrictSchema(r.Schema, nil)
	switch {
	case r.ExpectError == "" && err != nil:
		o.add("expect", "%v", err)
	case r.ExpectError == "":
		o.check("expect", got, r.Expect)
	case err == nil: // the words of the reason are free
		o.add("expectError", "got %s, want an error such as %s", got, r.ExpectError)
	}
	return o
}

func rowToolValidation(raw []byte) outcome {
	r := row[struct {
		Parameters, Arguments, Expect json.RawMessage
		ExpectError                   string
	}](raw)
	tool := llm.Tool{Name: "t", Parameters: jsontext.Value(r.Parameters)}
	got, err := agent.Validate(tool, &llm.ToolCall{ID: "1", Name: "t", Arguments: jsontext.Value(r.Arguments)})
	o := outcome{}
	switch {
	case r.ExpectError == "" && err != nil:
		o.add("expect", "%v", err)
	case r.ExpectError == "":
		o.check("expect", got, r.Expect)
	case err == nil:
		o.add("expectError", "got %s, want an error", got)
	case !textFits(err.Error(), r.ExpectError):
		o.add("expectError", "got %q, want %q", err, r.ExpectError)
	}
	return o
}

func appendMessages(list []llm.Message) []byte {
	out := []byte("[")
	for i, m := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = m.AppendJSON(out)
	}
	return append(out, ']')
}

func rowTranscript(raw []byte) outcome {
	r := row[struct {
		Messages, ExpectCollapsed json.RawMessage
		ExpectTools               []string
		ExpectSplit               map[string]struct {
			RequestTools         []string
			FoldedSystemMessages int
		}
	}](raw)
	given := messages(r.Messages)
	o := outcome{}
	o.check("expectCollapsed", appendMessages(transcript.Collapse(given)), r.ExpectCollapsed)
	// What formats see is the same.
	o.check("expectCollapsed", appendMessages(transcript.Build(given, &transcript.Rules{Model: &llm.Model{}})), r.ExpectCollapsed)
	tools := []string{}
	for _, t := range transcript.CurrentTools(given) {
		tools = append(tools, t.Name+":"+t.Description)
	}
	o.checkValue("expectTools", tools, r.ExpectTools)
	modes := map[string]transcript.ToolMode{
		"none": transcript.ToolsFolded, "additions": transcript.ToolAdditions, "changes": transcript.ToolChanges,
	}
	for name, want := range r.ExpectSplit {
		tools, folded := transcript.SplitTools(given, modes[name])
		names := []string{}
		for _, t := range tools {
			names = append(names, t.Name)
		}
		o.checkValue("expectSplit."+name+".requestTools", names, want.RequestTools)
		o.checkValue("expectSplit."+name+".foldedSystemMessages", folded, want.FoldedSystemMessages)
	}
	return o
}

func rowTransformImages(raw []byte) outcome {
	r := row[struct{ Messages, Expect json.RawMessage }](raw)
	// The table shows single messages; a result needs its call to be sent.
	var given []llm.Message
	for _, m := range messages(r.Messages) {
		if res, ok := m.(*llm.ToolResult); ok {
			given = append(given, &llm.Assistant{Content: []llm.Block{
				&llm.ToolCall{ID: res.ToolCallID, Name: res.ToolName, Arguments: jsontext.Value("{}")},
			}})
		}
		given = append(given, m)
	}
	sent := transcript.Build(given, &transcript.Rules{Model: &llm.Model{Input: []string{"text"}}})
	sent = slices.DeleteFunc(sent, func(m llm.Message) bool { return m.Role() == llm.RoleAssistant })
	o := outcome{}
	o.check("expect", appendMessages(sent), r.Expect)
	return o
}

func rowTransformMessages(raw []byte) outcome {
	r := row[struct{ Messages, Expect json.RawMessage }](raw)
	rules := &transcript.Rules{
		Model:         &llm.Model{Provider: "p", API: "x", ID: "m", Input: []string{"text", "image"}},
		SystemInPlace: true,
		NormalizeID:   func(id string, _ *llm.Assistant) string { return strings.ToUpper(id) },
	}
	got := tree(appendMessages(transcript.Build(messages(r.Messages), rules))).([]any)
	want := tree(r.Expect).([]any)
	// The table leaves out what its messages had no use for.
	for i, m := range got {
		if m := m.(map[string]any); i < len(want) && m["role"] == "assistant" {
			delete(m, "usage")
		}
	}
	for _, m := range want {
		delete(m.(map[string]any), "usage")
	}
	o := outcome{}
	if fits(got, want) {
		return o
	}
	if fits(got, paired(want)) {
		o.add("orphans", "results without a call are left out or moved")
		return o
	}
	o.add("expect", "got %v, want %v", got, want)
	return o
}

// paired is a transcript of the peers without the results that services
// refuse: one whose call was closed takes the place of the made-up one, others
// go.
func paired(list []any) []any {
	var out []any
	at := map[string]int{} // call id → position of its result; -1 while it has none
	made := map[string]bool{}
	for _, v := range list {
		m := v.(map[string]any)
		switch m["role"] {
		case "assistant":
			for _, b := range m["content"].([]any) {
				if b := b.(map[string]any); b["type"] == "toolCall" {
					at[b["id"].(string)] = -1
				}
			}
		case "toolResult":
			id := m["toolCallId"].(string)
			pos, known := at[id]
			switch {
			case !known || pos >= 0 && !made[id]:
				continue
			case pos >= 0:
				out[pos], made[id] = v, false
				continue
			}
			at[id], made[id] = len(out), m["timestamp"] == "<timestamp>"
		}
		out = append(out, v)
	}
	return out
}

func rowTruncate(raw []byte) outcome {
	r := row[struct{ Max int }](raw)
	o := outcome{}
	if got, want := wire.Truncate(textMember(raw, "text"), r.Max), textMember(raw, "expect"); got != want {
		o.add("expect", "got %q, want %q", got, want)
	}
	return o
}

// rowUserAgent compares the fields that name the product to gateways; the
// User-Agent names the client and is its own.
func rowUserAgent(raw []byte) outcome {
	r := row[struct {
		Identity *struct {
			Version     string
			UserAgent   json.RawMessage
			Attribution *llm.Attribution
		}
		Target llm.Model
		Expect map[string]string
	}](raw)
	var o llm.Options
	if r.Identity != nil {
		o.Identity.Attribution = r.Identity.Attribution
	}
	got := wire.Host{}.Default().Header(&r.Target, &o)
	out := outcome{}
	if got.Get("User-Agent") == "" {
		out.add("expect.User-Agent", "there is none")
	}
	for _, name := range []string{"User-Agent", "Accept", "Content-Type"} {
		got.Del(name)
	}
	want := http.Header{}
	for name, v := range r.Expect {
		if name != "User-Agent" {
			want.Set(name, v)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		out.checkValue("expect."+name, got.Get(name), want.Get(name))
		got.Del(name)
	}
	for name := range got {
		out.add("expect."+name, "not expected")
	}
	return out
}
