package completions

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

// thinking is what a request asks of a reasoning model.
type thinking struct {
	level   llm.ThinkingLevel // "" for none
	budget  int               // tokens for the level, 0 for none
	mapping map[llm.ThinkingLevel]*string
}

// on reports whether thinking is asked for.
func (t *thinking) on() bool { return t.level != "" }

// effort is the provider's word for the level, the level itself when there is
// none. null tells that the model maps the level to nothing.
func (t *thinking) effort() (word string, null bool) {
	if v, ok := t.mapping[t.level]; ok {
		if v == nil {
			return string(t.level), true
		}
		return *v, false
	}
	return string(t.level), false
}

// off is the provider's word for no thinking. ok is false when there is none;
// null tells that the model cannot be asked not to think.
func (t *thinking) off() (word string, ok, null bool) {
	v, mapped := t.mapping[llm.LevelOff]
	switch {
	case !mapped:
		return "", false, false
	case v == nil:
		return "", false, true
	default:
		return *v, true, false
	}
}

// offOrNone is off with the word none where the model has none of its own.
func (t *thinking) offOrNone() (word string, ok bool) {
	word, ok, null := t.off()
	if null {
		return "", false
	}
	if !ok {
		word = "none"
	}
	return word, true
}

// append writes the thinking fields of the server's format.
func (t *thinking) append(w *wire.Body, c *Compat) {
	effort, null := t.effort()
	switch c.ThinkingFormat {
	case FormatZai:
		if !t.on() {
			w.JSON("thinking", `{"type":"disabled"}`)
			return
		}
		w.JSON("thinking", `{"type":"enabled","clear_thinking":false}`)
		if c.SupportsReasoningEffort && !null {
			w.Text("reasoning_effort", effort)
		}
	case FormatQwen:
		w.Bool("enable_thinking", t.on())
		t.appendEffort(w, c)
	case FormatQwenChatTemplate:
		if t.on() {
			w.JSON("chat_template_kwargs", `{"enable_thinking":true,"preserve_thinking":true}`)
		} else {
			w.JSON("chat_template_kwargs", `{"enable_thinking":false,"preserve_thinking":true}`)
		}
	case FormatChatTemplate:
		t.appendTemplate(w, "chat_template_kwargs", c.ChatTemplateKwargs)
	case FormatBaseten:
		t.appendTemplate(w, "chat_template_args", c.ChatTemplateArgs)
		t.appendOpenAI(w, c)
	case FormatDeepSeek:
		if t.on() {
			w.JSON("thinking", `{"type":"enabled"}`)
			t.appendEffort(w, c)
		} else if _, _, null := t.off(); !null {
			w.JSON("thinking", `{"type":"disabled"}`)
		}
	case FormatOpenRouter:
		word, ok := effort, true
		if !t.on() {
			word, ok = t.offOrNone()
		}
		if ok {
			appendReasoningEffort(w, word)
		}
	case FormatTogether:
		if t.on() {
			w.JSON("reasoning", `{"enabled":true}`)
		} else {
			w.JSON("reasoning", `{"enabled":false}`)
		}
		t.appendEffort(w, c)
	case FormatString:
		word, ok := effort, true
		if !t.on() {
			word, ok = t.offOrNone()
		}
		if ok {
			w.Text("thinking", word)
		}
	case FormatAntLing:
		if !t.on() {
			t.appendOpenAI(w, c)
		} else if v := t.mapping[t.level]; v != nil {
			appendReasoningEffort(w, *v)
		}
	default:
		t.appendOpenAI(w, c)
	}
}

// appendOpenAI writes the original protocol's one field.
func (t *thinking) appendOpenAI(w *wire.Body, c *Compat) {
	if t.on() {
		t.appendEffort(w, c)
	} else if word, ok, _ := t.off(); ok && c.SupportsReasoningEffort {
		w.Text("reasoning_effort", word)
	}
}

// appendEffort writes the effort of a level beside a switch.
func (t *thinking) appendEffort(w *wire.Body, c *Compat) {
	if t.on() && c.SupportsReasoningEffort {
		word, _ := t.effort()
		w.Text("reasoning_effort", word)
	}
}

func appendReasoningEffort(w *wire.Body, word string) {
	if w.Key("reasoning") {
		w.B = append(w.B, `{"effort":`...)
		w.B = jsonwire.AppendString(w.B, word)
		w.B = append(w.B, '}')
	}
}

// appendTemplate writes the arguments of a chat template, nothing when none is
// left: constants as they are, variables by what the request asks for.
func (t *thinking) appendTemplate(w *wire.Body, field string, template jsontext.Value) {
	args := []byte{'{'}
	var r jsonwire.Reader
	r.Reset(template)
	for r.Object(); r.More(); {
		name := string(r.Key())
		raw := r.Raw()
		value := jsontext.Value(raw)
		if variable, ok := jsonwire.StringValue(jsonwire.Get(raw, "$var")); ok {
			if string(jsonwire.Get(raw, "omitWhenOff")) == "true" && !t.on() {
				continue
			}
			if value = t.variable(variable); value == nil {
				continue
			}
		}
		if len(args) > 1 {
			args = append(args, ',')
		}
		args = jsonwire.AppendString(args, name)
		args = append(args, ':')
		args = wire.AppendRaw(args, value)
	}
	if len(args) > 1 {
		w.JSON(field, string(append(args, '}')))
	}
}

// variable is the value of a template variable, nil for none.
func (t *thinking) variable(name string) jsontext.Value {
	switch name {
	case "thinking.enabled":
		if t.on() {
			return jsontext.Value("true")
		}
		return jsontext.Value("false")
	case "thinking.effort":
		word, ok := "", false
		if t.on() {
			var null bool
			word, null = t.effort()
			ok = !null
		} else {
			// No recorded behaviour says what a template gets without a level.
			// A word that the model has for "off" can only be meant for this.
			word, ok, _ = t.off()
		}
		if ok {
			return jsontext.Value(jsonwire.AppendString(nil, word))
		}
	case "thinking.budget":
		if t.on() && t.budget > 0 {
			return appendInt(t.budget)
		}
	}
	return nil
}

func appendInt(n int) jsontext.Value {
	return jsontext.Value(jsonwire.AppendFloat(nil, float64(n)))
}

// budgetField is the name of the field that bounds the tokens of thinking, ""
// for none.
func (c *Compat) budgetField() string {
	if c.ThinkingTokenBudgetField != "" {
		return c.ThinkingTokenBudgetField
	}
	if c.SupportsThinkingTokenBudget {
		return "thinking_token_budget"
	}
	return ""
}
