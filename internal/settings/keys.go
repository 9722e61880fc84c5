package settings

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// at follows names into nested objects; nil when the way ends.
func (s *Settings) at(names ...string) jsontext.Value {
	v := s.Raw(names[0])
	for _, name := range names[1:] {
		v = jsonwire.Get(v, name)
	}
	return v
}

func (s *Settings) text(names ...string) string {
	t, _ := jsonwire.StringValue(s.at(names...))
	return t
}

func (s *Settings) oneOf(fallback string, allowed []string, names ...string) string {
	t := s.text(names...)
	for _, a := range allowed {
		if t == a {
			return t
		}
	}
	return fallback
}

func (s *Settings) flag(fallback bool, names ...string) bool {
	switch string(s.at(names...)) {
	case "true":
		return true
	case "false":
		return false
	}
	return fallback
}

func (s *Settings) number(fallback float64, names ...string) float64 {
	v := s.at(names...)
	var r jsonwire.Reader
	r.Reset(v)
	if v == nil || r.Kind() != '0' {
		return fallback
	}
	return r.Float()
}

func (s *Settings) millis(fallback time.Duration, names ...string) time.Duration {
	const longest = float64(1<<63-1) / float64(time.Millisecond)
	ms := s.number(float64(fallback)/float64(time.Millisecond), names...)
	return time.Duration(max(0, min(ms, longest/2)) * float64(time.Millisecond))
}

// DefaultProvider and DefaultModel name the model to start with; "" when unset.
func (s *Settings) DefaultProvider() string { return s.text("defaultProvider") }

// DefaultModel is the id, or a reference, of the model to start with.
func (s *Settings) DefaultModel() string { return s.text("defaultModel") }

func levels() []string {
	return []string{"off", "minimal", "low", "medium", "high", "xhigh", "max"}
}

// DefaultThinkingLevel is the thinking level of new sessions; "" when unset,
// which stands for medium.
func (s *Settings) DefaultThinkingLevel() string {
	return s.oneOf("", levels(), "defaultThinkingLevel")
}

// ModelThinkingLevel is the level set for one model, named provider/id; "" when
// unset.
func (s *Settings) ModelThinkingLevel(ref string) string {
	return s.oneOf("", levels(), "modelThinkingLevels", ref)
}

// ThinkingBudgets are thinking tokens by level; nil when unset.
func (s *Settings) ThinkingBudgets() map[string]int {
	v := s.at("thinkingBudgets")
	if !isObject(v) {
		return nil
	}
	budgets := map[string]int{}
	var r jsonwire.Reader
	r.Reset(v)
	for r.Object(); r.More(); {
		name := string(r.Key())
		if r.Kind() == '0' {
			budgets[name] = int(r.Int())
		} else {
			r.Skip()
		}
	}
	return budgets
}

// EnabledModels are the patterns of the models to switch between; nil for all.
func (s *Settings) EnabledModels() []string { return stringList(s.at("enabledModels")) }

// DefaultTools are the entries of the tool selection; nil when unset.
func (s *Settings) DefaultTools() []string { return stringList(s.at("defaultTools")) }

// SessionDir is the folder for sessions, as written; "" when unset.
func (s *Settings) SessionDir() string { return s.text("sessionDir") }

// DefaultProjectTrust is ask, always or never.
func (s *Settings) DefaultProjectTrust() string {
	return s.oneOf("ask", []string{"ask", "always", "never"}, "defaultProjectTrust")
}

// SteeringMode is all or one-at-a-time.
func (s *Settings) SteeringMode() string { return s.queueMode("steeringMode") }

// FollowUpMode is all or one-at-a-time.
func (s *Settings) FollowUpMode() string { return s.queueMode("followUpMode") }

func (s *Settings) queueMode(key string) string {
	return s.oneOf("one-at-a-time", []string{"all", "one-at-a-time"}, key)
}

// Retry is how a run repeats answers that failed.
type Retry struct {
	Enabled       bool
	MaxRetries    int
	BaseDelay     time.Duration
	MaxAgentDelay time.Duration

	// Of the HTTP requests below.
	ProviderTimeout       time.Duration // 0 for none
	ProviderMaxRetries    int
	ProviderMaxRetryDelay time.Duration // 0 for no limit
}

// Retry reads the retry keys.
func (s *Settings) Retry() Retry {
	return Retry{
		Enabled:               s.flag(true, "retry", "enabled"),
		MaxRetries:            s.count(3, "retry", "maxRetries"),
		BaseDelay:             s.millis(2*time.Second, "retry", "baseDelayMs"),
		MaxAgentDelay:         s.millis(time.Minute, "retry", "maxAgentDelayMs"),
		ProviderTimeout:       s.millis(s.HTTPIdleTimeout(), "retry", "provider", "timeoutMs"),
		ProviderMaxRetries:    s.count(0, "retry", "provider", "maxRetries"),
		ProviderMaxRetryDelay: s.millis(time.Minute, "retry", "provider", "maxRetryDelayMs"),
	}
}

func (s *Settings) count(fallback int, names ...string) int {
	return int(max(0, min(s.number(float64(fallback), names...), 1e9)))
}

// Compaction is when a conversation that runs out of room is made to fit.
// Numbers of tokens are nil when unset.
type Compaction struct {
	Enabled          bool
	ReserveTokens    *int64
	KeepRecentTokens *int64
	Overrides        map[string]CompactionOverride // by provider/id
}

// CompactionOverride is what holds for one model instead; nil for nothing.
type CompactionOverride struct {
	Enabled          *bool
	ReserveTokens    *int64
	KeepRecentTokens *int64
}

// Compaction reads the compaction keys. A number that makes no sense is an
// error.
func (s *Settings) Compaction() (Compaction, error) {
	out := Compaction{Enabled: s.flag(true, "compaction", "enabled")}
	var err error
	read := func(names ...string) *int64 {
		n, e := s.tokens(names...)
		if err == nil {
			err = e
		}
		return n
	}
	out.ReserveTokens = read("compaction", "reserveTokens")
	out.KeepRecentTokens = read("compaction", "keepRecentTokens")
	overrides := s.at("compaction", "modelOverrides")
	if jsonwire.IsObject(overrides) {
		var r jsonwire.Reader
		r.Reset(overrides)
		for r.Object(); r.More(); {
			model := string(r.Key())
			r.Raw()
			if out.Overrides == nil {
				out.Overrides = map[string]CompactionOverride{}
			}
			o := CompactionOverride{
				ReserveTokens:    read("compaction", "modelOverrides", model, "reserveTokens"),
				KeepRecentTokens: read("compaction", "modelOverrides", model, "keepRecentTokens"),
			}
			switch string(s.at("compaction", "modelOverrides", model, "enabled")) {
			case "true":
				o.Enabled = new(true)
			case "false":
				o.Enabled = new(false)
			}
			out.Overrides[model] = o
		}
	}
	return out, err
}

// BranchReserveTokens is how much of the context window the summary of a branch
// leaves for itself; nil for the default.
func (s *Settings) BranchReserveTokens() (*int64, error) {
	return s.tokens("branchSummary", "reserveTokens")
}

// tokens is a number of tokens, nil when unset.
func (s *Settings) tokens(names ...string) (*int64, error) {
	v := s.at(names...)
	if v == nil {
		return nil, nil
	}
	const largest = 1<<53 - 1
	n := s.number(-1, names...)
	if n < 0 || n > largest || n != float64(int64(n)) {
		return nil, fmt.Errorf("Invalid %s setting: %s is no number of tokens from 0 on", strings.Join(names, "."), v)
	}
	return new(int64(n)), nil
}

// HTTPIdleTimeout is how long a response may be silent; 0 when disabled.
func (s *Settings) HTTPIdleTimeout() time.Duration {
	if s.text("httpIdleTimeoutMs") == "disabled" {
		return 0
	}
	return s.millis(5*time.Minute, "httpIdleTimeoutMs")
}

// HTTPProxy is the user's proxy address; "" when unset.
func (s *Settings) HTTPProxy() string { return s.text("httpProxy") }

// ShellPath is the shell of the bash tool; "" for the system's.
func (s *Settings) ShellPath() string { return s.text("shellPath") }

// ShellCommandPrefix stands before each command; "" for none.
func (s *Settings) ShellCommandPrefix() string { return s.text("shellCommandPrefix") }

// ImagesAutoResize is whether large images are scaled down.
func (s *Settings) ImagesAutoResize() bool { return s.flag(true, "images", "autoResize") }

// ImagesBlocked is whether images are kept from models.
func (s *Settings) ImagesBlocked() bool { return s.flag(false, "images", "blockImages") }
