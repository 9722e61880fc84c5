package llm

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// ThinkingLevel is how hard a model is asked to think. The zero value means
// that nothing was asked for, which services treat like LevelOff.
type ThinkingLevel string

// The levels, weakest first.
const (
	LevelOff     ThinkingLevel = "off"
	LevelMinimal ThinkingLevel = "minimal"
	LevelLow     ThinkingLevel = "low"
	LevelMedium  ThinkingLevel = "medium"
	LevelHigh    ThinkingLevel = "high"
	LevelXHigh   ThinkingLevel = "xhigh"
	LevelMax     ThinkingLevel = "max"
)

// ThinkingLevels lists every level, weakest first.
func ThinkingLevels() []ThinkingLevel {
	return []ThinkingLevel{LevelOff, LevelMinimal, LevelLow, LevelMedium, LevelHigh, LevelXHigh, LevelMax}
}

// Model describes one model of one provider. The JSON names are those of
// models.json.
type Model struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	API      string `json:"api"` // wire format, such as anthropic-messages
	Provider string `json:"provider"`
	BaseURL  string `json:"baseUrl"`

	Type      string `json:"type,omitempty"` // chat (also when empty), image, classifier
	Reasoning bool   `json:"reasoning"`
	// ThinkingLevelMap maps levels to the provider's words; null marks a
	// level that the model does not support.
	ThinkingLevelMap map[ThinkingLevel]*string `json:"thinkingLevelMap,omitempty"`
	Input            []string                  `json:"input"` // text, image
	InputLimits      jsontext.Value            `json:"inputLimits,omitempty"`
	Cost             Rates                     `json:"cost"`
	PromptCache      *PromptCache              `json:"promptCache,omitempty"`
	ContextWindow    int                       `json:"contextWindow"` // tokens; 0 for unknown
	// MaxTokens is the limit of an answer in tokens. Requests that name none ask
	// for as many, so that a model without it answers with next to nothing.
	MaxTokens int `json:"maxTokens"`

	SamplingParams                jsontext.Value                   `json:"samplingParams,omitempty"`
	SamplingParamsByThinkingLevel map[ThinkingLevel]jsontext.Value `json:"samplingParamsByThinkingLevel,omitempty"`
	Headers                       map[string]string                `json:"headers,omitempty"`
	Compat                        jsontext.Value                   `json:"compat,omitempty"` // flags of the wire format
}

// Rates are prices in US dollars per million tokens.
type Rates struct {
	Input      float64    `json:"input"`
	Output     float64    `json:"output"`
	CacheRead  float64    `json:"cacheRead"`
	CacheWrite float64    `json:"cacheWrite"`
	Tiers      []RateTier `json:"tiers,omitempty"`
}

// RateTier replaces the rates of a whole request whose input is longer.
type RateTier struct {
	InputTokensAbove int64   `json:"inputTokensAbove"`
	Input            float64 `json:"input"`
	Output           float64 `json:"output"`
	CacheRead        float64 `json:"cacheRead"`
	CacheWrite       float64 `json:"cacheWrite"`
}

// PromptCache is how long a provider keeps a cached prompt, in seconds.
type PromptCache struct {
	Short float64 `json:"short,omitempty"`
	Long  float64 `json:"long,omitempty"`
}

// unknown is what everything is called that tells of a model which is none.
const unknown = "unknown"

// UnknownModel stands where nobody has chosen a model yet. There is nobody to ask
// behind it.
func UnknownModel() *Model {
	return &Model{ID: unknown, Name: unknown, API: unknown, Provider: unknown}
}

// IsUnknown reports whether m is an UnknownModel.
func (m *Model) IsUnknown() bool { return m.Provider == unknown && m.ID == unknown }

// Ref is provider/id, the name under which a model is chosen.
func (m *Model) Ref() string { return m.Provider + "/" + m.ID }

// AcceptsImages reports whether the model takes images.
func (m *Model) AcceptsImages() bool { return slices.Contains(m.Input, "image") }

// SupportedLevels lists the thinking levels that the model supports, weakest first.
func (m *Model) SupportedLevels() []ThinkingLevel {
	if !m.Reasoning {
		return []ThinkingLevel{LevelOff}
	}
	out := []ThinkingLevel{}
	for _, l := range ThinkingLevels() {
		v, mapped := m.ThinkingLevelMap[l]
		if mapped && v == nil || !mapped && (l == LevelXHigh || l == LevelMax) {
			continue
		}
		out = append(out, l)
	}
	return out
}

// ClampLevel is the supported level nearest to l: l itself, else the next
// stronger one, else the next weaker one, else LevelOff. An unknown name gives
// the weakest supported level.
func (m *Model) ClampLevel(l ThinkingLevel) ThinkingLevel {
	supported := m.SupportedLevels()
	if slices.Contains(supported, l) {
		return l
	}
	all := ThinkingLevels()
	at := slices.Index(all, l)
	if at < 0 {
		if len(supported) == 0 {
			return LevelOff
		}
		return supported[0]
	}
	for _, c := range all[at+1:] {
		if slices.Contains(supported, c) {
			return c
		}
	}
	for i := at - 1; i >= 0; i-- {
		if slices.Contains(supported, all[i]) {
			return all[i]
		}
	}
	return LevelOff
}
