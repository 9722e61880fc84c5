package responses

import (
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

// Compat says how a service departs from OpenAI's own. Its JSON names, in
// llm.Model.Compat, are those of the fields with a lower-case first letter.
type Compat struct {
	SupportsDeveloperRole   bool // the prompt of reasoning models has the role developer
	SupportsMaxOutputTokens bool // send max_output_tokens

	// Caching and affinity.
	PromptCacheKeyMode              string // enabled or disabled; anything else is enabled
	SupportsLongCacheRetention      bool
	SupportsExplicitPromptCacheMode bool   // prompt_cache_options in place of prompt_cache_retention
	SessionAffinityFormat           string // openai, openai-nosession, openrouter

	// Tools.
	SupportsStrictMode         bool // declare tools with "strict"
	SupportsOpenAIGrammarTools bool

	// Changes in the middle of a conversation. The tool flags need
	// SupportsMidConvoSystemMessages.
	SupportsMidConvoSystemMessages bool
	SupportsAdditionalTools        bool // tool sets are items of the input
	SupportsToolSearch             bool // additions are results of a tool search
	SupportsMidConvoEffort         bool // the effort is an item of the input
}

// compatOf is what is known of a model's service: from its provider and base
// URL, overruled by its own flags.
func compatOf(m *llm.Model, d *dialect) Compat {
	c := Compat{
		SupportsDeveloperRole: true, SupportsMaxOutputTokens: true, SupportsLongCacheRetention: true,
		SupportsStrictMode: d.strict, SessionAffinityFormat: "openai",
	}
	if wire.IsOpenRouter(m) {
		c.SessionAffinityFormat = "openrouter"
	}
	var r jsonwire.Reader
	r.Reset(m.Compat)
	flag := func(v *bool) {
		if k := r.Kind(); k == 't' || k == 'f' {
			*v = r.Bool()
		} else {
			r.Skip()
		}
	}
	word := func(v *string) {
		if r.Kind() == '"' {
			*v = r.Text()
		} else {
			r.Skip()
		}
	}
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "supportsDeveloperRole":
			flag(&c.SupportsDeveloperRole)
		case "supportsMaxOutputTokens":
			flag(&c.SupportsMaxOutputTokens)
		case "promptCacheKeyMode":
			word(&c.PromptCacheKeyMode)
		case "supportsLongCacheRetention":
			flag(&c.SupportsLongCacheRetention)
		case "supportsExplicitPromptCacheMode":
			flag(&c.SupportsExplicitPromptCacheMode)
		case "sessionAffinityFormat":
			word(&c.SessionAffinityFormat)
		case "supportsStrictMode":
			flag(&c.SupportsStrictMode)
		case "supportsOpenAIGrammarTools":
			flag(&c.SupportsOpenAIGrammarTools)
		case "supportsMidConvoSystemMessages":
			flag(&c.SupportsMidConvoSystemMessages)
		case "supportsAdditionalTools":
			flag(&c.SupportsAdditionalTools)
		case "supportsToolSearch":
			flag(&c.SupportsToolSearch)
		case "supportsMidConvoEffort":
			flag(&c.SupportsMidConvoEffort)
		default:
			r.Skip()
		}
	}
	return c
}

// compatKey is all that a Compat is made of.
type compatKey struct{ provider, baseURL, flags string }

// maxCompats bounds the flags that are kept parsed.
const maxCompats = 256

func (s *service) compat(m *llm.Model) *Compat {
	key := compatKey{m.Provider, m.BaseURL, string(m.Compat)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.compats[key]; c != nil {
		return c
	}
	c := new(compatOf(m, s.dialect))
	if s.compats == nil || len(s.compats) >= maxCompats {
		s.compats = map[compatKey]*Compat{}
	}
	s.compats[key] = c
	return c
}
