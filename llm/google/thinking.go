package google

import (
	"fmt"
	"strings"

	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// thinkingConfig is what a request says about thinking.
type thinkingConfig struct {
	include   bool // send the thoughts
	level     string
	budget    int
	hasBudget bool
}

// LevelError says that a model maps a thinking level to a word that the service
// does not have.
type LevelError struct {
	Model string // id
	Level llm.ThinkingLevel
	Word  string
}

func (e *LevelError) Error() string {
	of := ""
	if e.Level != "" {
		of = fmt.Sprintf(", which thinkingLevelMap has for the level %s,", e.Level)
	}
	return fmt.Sprintf("the thinking level %q%s is unknown to model %s: use MINIMAL, LOW, MEDIUM or HIGH", e.Word, of, e.Model)
}

// askThinking is what a request for a level says, nil for nothing.
func askThinking(m *llm.Model, vertex bool, level llm.ThinkingLevel, budgets map[llm.ThinkingLevel]int) (*thinkingConfig, error) {
	if !m.Reasoning {
		return nil, nil
	}
	if level == "" || level == llm.LevelOff {
		return noThinking(m)
	}
	level = m.ClampLevel(level)
	if level == llm.LevelOff { // the model has no other
		level = llm.LevelHigh
	}
	if RulesOf(m.ID).ThinkingLevel {
		word, err := wireLevel(m, level)
		if err != nil {
			return nil, err
		}
		return &thinkingConfig{include: true, level: word}, nil
	}
	if word, err := wireLevel(m, level); err == nil {
		level = llm.ThinkingLevel(strings.ToLower(word))
	} // a word of another kind says nothing about a budget
	return &thinkingConfig{include: true, budget: budgetOf(m.ID, vertex, tableLevel(level), budgets), hasBudget: true}, nil
}

// noThinking asks a reasoning model not to think. A model that takes a level and
// cannot stop thinking gets the level nearest to that, without its thoughts.
func noThinking(m *llm.Model) (*thinkingConfig, error) {
	if RulesOf(m.ID).ThinkingLevel {
		if level := m.ClampLevel(llm.LevelOff); level != llm.LevelOff {
			word, err := wireLevel(m, level)
			if err != nil {
				return nil, err
			}
			return &thinkingConfig{level: word}, nil
		}
	}
	return &thinkingConfig{hasBudget: true}, nil
}

// tellThinking is what the format's own options say, nil for nothing.
func tellThinking(m *llm.Model, t *Thinking) (*thinkingConfig, error) {
	switch {
	case !m.Reasoning:
		return nil, nil
	case !t.Enabled:
		return noThinking(m)
	case t.Level != "":
		word, ok := knownLevel(t.Level)
		if !ok {
			return nil, &LevelError{Model: m.ID, Word: t.Level}
		}
		return &thinkingConfig{include: true, level: word}, nil
	case t.Budget != nil:
		return &thinkingConfig{include: true, budget: *t.Budget, hasBudget: true}, nil
	default:
		return &thinkingConfig{include: true}, nil
	}
}

// wireLevel is the service's word for a level that the model supports.
func wireLevel(m *llm.Model, level llm.ThinkingLevel) (string, error) {
	word := string(tableLevel(level))
	if mapped := m.ThinkingLevelMap[level]; mapped != nil {
		word = *mapped
	}
	known, ok := knownLevel(word)
	if !ok {
		return "", &LevelError{Model: m.ID, Level: level, Word: word}
	}
	return known, nil
}

func knownLevel(word string) (string, bool) {
	switch word = strings.ToUpper(word); word {
	case "MINIMAL", "LOW", "MEDIUM", "HIGH":
		return word, true
	}
	return "", false
}

// tableLevel is the level that counts in tables that end with high.
func tableLevel(level llm.ThinkingLevel) llm.ThinkingLevel {
	if level == llm.LevelXHigh || level == llm.LevelMax {
		return llm.LevelHigh
	}
	return level
}

// budgetOf is the thinking budget for a level in tokens; -1 leaves it to the
// model, which is all that is known of models outside the table.
func budgetOf(id string, vertex bool, level llm.ThinkingLevel, budgets map[llm.ThinkingLevel]int) int {
	if n, ok := budgets[level]; ok {
		return n
	}
	var low, high int // for minimal and high; between them all agree
	switch {
	case strings.Contains(id, "2.5-pro"):
		low, high = 128, 32768
	case strings.Contains(id, "2.5-flash-lite") && !vertex:
		low, high = 512, 24576
	case strings.Contains(id, "2.5-flash"):
		low, high = 128, 24576
	default:
		return -1
	}
	switch level {
	case llm.LevelMinimal:
		return low
	case llm.LevelLow:
		return 2048
	case llm.LevelMedium:
		return 8192
	default:
		return high
	}
}

func (t *thinkingConfig) append(dst []byte) []byte {
	o := jsonwire.Begin(dst)
	if t.include {
		o.Bool("includeThoughts", true)
	}
	if t.level != "" {
		o.Text("thinkingLevel", t.level)
	} else if t.hasBudget {
		o.Int("thinkingBudget", int64(t.budget))
	}
	return o.End()
}
