package anthropic

import (
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/wire"
	"github.com/pinch-agent/pinch/llm"
)

// Compat is what a vendor's form of the protocol can do, by the names that the
// flags have in Model.Compat. Absent flags have the defaults below.
type Compat struct {
	EagerToolInputStreaming bool // supportsEagerToolInputStreaming; true
	CacheControlOnTools     bool // supportsCacheControlOnTools; true
	LongCacheRetention      bool // supportsLongCacheRetention; true
	Temperature             bool // supportsTemperature; true
	AdaptiveThinking        bool // forceAdaptiveThinking: effort in place of a budget
	EmptySignature          bool // allowEmptySignature: unsigned thinking goes back as thinking
	StrictTools             bool // supportsStrictTools
	MidConvoSystemMessages  bool // supportsMidConvoSystemMessages
	MidConvoToolChanges     bool // supportsMidConvoToolChanges
	MidConvoEffort          bool // supportsMidConvoEffort
	MessageThreads          bool // supportsMessageThreads; true for api.anthropic.com
	SessionAffinity         bool // sendSessionAffinityHeaders; true for OpenRouter
	// SessionAffinityFormat is openrouter for x-session-id in place of
	// x-session-affinity; the former is the default for OpenRouter.
	SessionAffinityFormat string
	// FallbackModels, allowedFallbackModels, may answer in place of the model.
	FallbackModels []FallbackModel
	// ClaudeCodeToolNames spells tools that Claude Code has too the way it
	// does, for models that know them by heart. Calls come back with the names
	// that the tools were declared with.
	ClaudeCodeToolNames bool
}

// FallbackModel is a model that a service may answer with, and its prices.
type FallbackModel struct {
	Provider string    `json:"provider"`
	Model    string    `json:"model"`
	Cost     llm.Rates `json:"cost"`
}

func readCompat(m *llm.Model) Compat {
	c := Compat{EagerToolInputStreaming: true, CacheControlOnTools: true, LongCacheRetention: true, Temperature: true}
	c.MessageThreads = m.BaseURL == "" || strings.Contains(m.BaseURL, "api.anthropic.com")
	if wire.IsOpenRouter(m) {
		c.SessionAffinity, c.SessionAffinityFormat = true, "openrouter"
	}
	if m.Compat == nil {
		return c
	}
	var r jsonwire.Reader
	r.Reset(m.Compat)
	for r.Object(); r.More(); {
		var flag *bool
		switch string(r.Key()) {
		case "supportsEagerToolInputStreaming":
			flag = &c.EagerToolInputStreaming
		case "supportsCacheControlOnTools":
			flag = &c.CacheControlOnTools
		case "supportsLongCacheRetention":
			flag = &c.LongCacheRetention
		case "supportsTemperature":
			flag = &c.Temperature
		case "forceAdaptiveThinking":
			flag = &c.AdaptiveThinking
		case "allowEmptySignature":
			flag = &c.EmptySignature
		case "supportsStrictTools":
			flag = &c.StrictTools
		case "supportsMidConvoSystemMessages":
			flag = &c.MidConvoSystemMessages
		case "supportsMidConvoToolChanges":
			flag = &c.MidConvoToolChanges
		case "supportsMidConvoEffort":
			flag = &c.MidConvoEffort
		case "supportsMessageThreads":
			flag = &c.MessageThreads
		case "sendSessionAffinityHeaders":
			flag = &c.SessionAffinity
		case "claudeCodeToolNames":
			flag = &c.ClaudeCodeToolNames
		case "sessionAffinityFormat":
			if s := r.Text(); s != "" {
				c.SessionAffinityFormat = s
			}
			continue
		case "allowedFallbackModels":
			var list []FallbackModel
			if err := json.Unmarshal(r.Raw(), &list); err == nil {
				c.FallbackModels = list
			}
			continue
		default:
			r.Skip()
			continue
		}
		if k := r.Kind(); k == 't' || k == 'f' {
			*flag = r.Bool()
		} else {
			r.Skip()
		}
	}
	return c
}
