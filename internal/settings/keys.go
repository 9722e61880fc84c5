package settings

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// at is the value of a setting; nil when it is unset.
func (s *Settings) at(path ...string) jsontext.Value { return s.root.at(path) }

// value is the value of a setting of the table, else its standard; nil for none.
func (s *Settings) value(name string) jsontext.Value {
	k := lookUp(name)
	if k == nil || k.name != name {
		panic("settings: no setting " + name)
	}
	if v := s.at(strings.Split(name, ".")...); v != nil && v[0] != 'n' {
		return v
	}
	return jsontext.Value(k.standard)
}

// Flag is a setting that is true or false; false where it is a word.
func (s *Settings) Flag(name string) bool { return string(s.value(name)) == "true" }

// Text is a setting that is a word or any text; "" when it is unset without a
// standard, and where it is no text.
func (s *Settings) Text(name string) string {
	t, _ := jsonwire.StringValue(s.value(name))
	return t
}

// Number is a setting that is a number; 0 where it is a word.
func (s *Settings) Number(name string) float64 {
	v := s.value(name)
	var r jsonwire.Reader
	r.Reset(v)
	if len(v) == 0 || r.Kind() != '0' {
		return 0
	}
	return r.Float()
}

// Duration is a setting that is a number of milliseconds; 0 where it is a word.
func (s *Settings) Duration(name string) time.Duration {
	const longest = float64(1<<63-1) / float64(time.Millisecond)
	return time.Duration(max(0, min(s.Number(name), longest/2)) * float64(time.Millisecond))
}

// List is a setting that is a list of texts; nil when it is unset without a
// standard.
func (s *Settings) List(name string) []string { return stringList(s.value(name)) }

func (s *Settings) count(name string) int { return int(max(0, min(s.Number(name), 1e9))) }

// DefaultProvider names the provider of the model to start with; "" when unset.
func (s *Settings) DefaultProvider() string { return s.Text("defaultProvider") }

// DefaultModel is the id, or a reference, of the model to start with.
func (s *Settings) DefaultModel() string { return s.Text("defaultModel") }

// DefaultThinkingLevel is the thinking level of new sessions.
func (s *Settings) DefaultThinkingLevel() string { return s.Text("defaultThinkingLevel") }

// ModelThinkingLevel is the level set for one model, named provider/id; "" when
// unset.
func (s *Settings) ModelThinkingLevel(ref string) string {
	level, _ := jsonwire.StringValue(s.at("modelThinkingLevels", ref))
	return level
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
func (s *Settings) EnabledModels() []string { return s.List("enabledModels") }

// DefaultTools are the entries of the tool selection; nil when unset.
func (s *Settings) DefaultTools() []string { return s.List("defaultTools") }

// SessionDir is the folder for sessions, as written; "" when unset.
func (s *Settings) SessionDir() string { return s.Text("sessionDir") }

// DefaultProjectTrust is ask, always or never.
func (s *Settings) DefaultProjectTrust() string { return s.Text("defaultProjectTrust") }

// SteeringMode is all or one-at-a-time.
func (s *Settings) SteeringMode() string { return s.Text("steeringMode") }

// FollowUpMode is all or one-at-a-time.
func (s *Settings) FollowUpMode() string { return s.Text("followUpMode") }

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
	timeout := s.HTTPIdleTimeout()
	if v := s.value("retry.provider.timeoutMs"); len(v) > 0 {
		timeout = s.Duration("retry.provider.timeoutMs")
	}
	return Retry{
		Enabled:               s.Flag("retry.enabled"),
		MaxRetries:            s.count("retry.maxRetries"),
		BaseDelay:             s.Duration("retry.baseDelayMs"),
		MaxAgentDelay:         s.Duration("retry.maxAgentDelayMs"),
		ProviderTimeout:       timeout,
		ProviderMaxRetries:    s.count("retry.provider.maxRetries"),
		ProviderMaxRetryDelay: s.Duration("retry.provider.maxRetryDelayMs"),
	}
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
	out := Compaction{Enabled: s.Flag("compaction.enabled")}
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
	if len(v) == 0 || v[0] == 'n' {
		return nil, nil
	}
	var r jsonwire.Reader
	r.Reset(v)
	n := r.Float()
	if v.Kind() != '0' || n < 0 || n > tokensBound || n != float64(int64(n)) {
		return nil, fmt.Errorf("Invalid %s setting: %s is no number of tokens from 0 on", strings.Join(names, "."), v)
	}
	return new(int64(n)), nil
}

// HTTPIdleTimeout is how long a response may be silent; 0 when disabled.
func (s *Settings) HTTPIdleTimeout() time.Duration { return s.Duration("httpIdleTimeoutMs") }

// HTTPProxy is the user's proxy address; "" when unset.
func (s *Settings) HTTPProxy() string { return s.Text("httpProxy") }

// ShellPath is the shell of the bash tool; "" for the system's.
func (s *Settings) ShellPath() string { return s.Text("shellPath") }

// ShellCommandPrefix stands before each command; "" for none.
func (s *Settings) ShellCommandPrefix() string { return s.Text("shellCommandPrefix") }

// ImagesAutoResize is whether large images are scaled down.
func (s *Settings) ImagesAutoResize() bool { return s.Flag("images.autoResize") }

// ImagesBlocked is whether images are kept from models.
func (s *Settings) ImagesBlocked() bool { return s.Flag("images.blockImages") }
