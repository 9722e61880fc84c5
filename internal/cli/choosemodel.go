package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pinch-agent/pinch/internal/demo"
	"github.com/pinch-agent/pinch/internal/settings"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/anthropic"
	"github.com/pinch-agent/pinch/llm/catalog"
	"github.com/pinch-agent/pinch/session"
)

// checkModelOptions refuses options that need others.
func checkModelOptions(a *Args) error {
	switch {
	case a.Provider != "" && a.Model == "":
		return fmt.Errorf("--provider requires --model (for example: --provider %s --model <pattern>)", a.Provider)
	case a.APIKey != "" && a.Model == "" && a.Models == nil:
		return errKeyWithoutModel
	}
	return nil
}

// errKeyWithoutModel refuses a key that would go to a provider nobody named.
var errKeyWithoutModel = errors.New("--api-key requires a model to be specified via --model, --provider/--model, or --models")

// errNoModels tells a person who has no model how to come by one.
var errNoModels = errors.New("No models available. No provider has an API key: store one with pinch auth login PROVIDER, set one in the environment (such as ANTHROPIC_API_KEY), or describe a provider in models.json")

// chosenModel is the model of a run and its thinking level, clamped.
type chosenModel struct {
	model *llm.Model
	level llm.ThinkingLevel
	scope []catalog.Choice // that --models or the settings name
}

// resolveAsked finds the model that --model names, nil when it is absent.
func (p *program) resolveAsked(c *catalog.Catalog, a *Args) (*catalog.Choice, error) {
	if a.Model == "" {
		return nil, nil
	}
	choice, err := c.ResolveWith(a.Model, catalog.ResolveOptions{Provider: a.Provider, Level: a.Thinking, Key: a.APIKey != ""})
	if err != nil {
		return nil, p.unspoken(a, err)
	}
	if choice.Warning != "" && choice.Model.Provider == demoProvider {
		if _, err := loadDemo(p, choice.Model.ID); err != nil { // no scenario of that name
			return nil, err
		}
	}
	if choice.Warning != "" {
		p.warn("%s", choice.Warning)
	}
	return &choice, nil
}

// unspoken explains a model that was not found when it is there but speaks a
// wire format that this program does not.
func (p *program) unspoken(a *Args, err error) error {
	registry := p.wireFormats()
	choice, e := p.catalogFor(nil).Resolve(a.Model, a.Provider)
	if e != nil || choice.Warning != "" || slices.Contains(registry.IDs(), choice.Model.API) {
		return err
	}
	return fmt.Errorf("Model \"%s\" speaks the wire format \"%s\", which this version does not (it speaks %s): choose another model with --list-models",
		choice.Model.Ref(), choice.Model.API, strings.Join(registry.IDs(), ", "))
}

// chooseModel decides on the model and the level of a run: what was asked for,
// else what the session had, else where new sessions start.
func (p *program) chooseModel(c *catalog.Catalog, a *Args, s *settings.Settings, sess *session.Session, asked *catalog.Choice) (chosenModel, error) {
	patterns := a.Models
	if patterns == nil {
		patterns = s.EnabledModels()
	}
	var scope []catalog.Choice
	if len(patterns) > 0 {
		var warnings []string
		scope, warnings = c.Scope(patterns)
		for _, w := range warnings {
			p.warn("%s", w)
		}
	}
	had := sess.Context()
	if len(had.Messages) == 0 { // a conversation that has not begun
		had.Model, had.Chosen, had.LevelRecorded = nil, nil, false
	}
	// A virtual model holds until another is chosen, whoever answers for it.
	if had.Chosen != nil && c.Router(&llm.Model{Provider: had.Chosen.Provider, ID: had.Chosen.ID}) != nil {
		had.Model = had.Chosen
	}
	choice := catalog.Choice{}
	switch {
	case asked != nil:
		choice = *asked
	case had.Model != nil:
		addDemoModel(c, had.Model.Provider, had.Model.ID)
		if m := c.Find(had.Model.Provider, had.Model.ID); m != nil && c.HasCredentials(m.Provider) {
			choice.Model = m
			break
		}
		fallthrough
	default:
		addDemo(c, s.DefaultProvider(), "")
		start, err := c.Start(catalog.StartOptions{Scope: scope, Provider: s.DefaultProvider(), Model: s.DefaultModel()})
		if errors.Is(err, catalog.ErrNoModels) && a.Mode == ModeRPC { // where one can be chosen later
			p.warn("%s", errNoModels)
			return chosenModel{llm.UnknownModel(), llm.LevelOff, scope}, nil
		} else if errors.Is(err, catalog.ErrNoModels) {
			return chosenModel{}, errNoModels
		} else if err != nil {
			return chosenModel{}, err
		}
		choice = start
		if had.Model != nil {
			p.warn("Could not restore model %s/%s. Using %s.", had.Model.Provider, had.Model.ID, choice.Model.Ref())
			break
		}
		// A person should know that the prompt goes to another provider than the
		// one in the settings. Scripts have it in the records, as with pi.
		want := s.DefaultProvider() + "/" + s.DefaultModel()
		if p.errTerminal && len(scope) == 0 && s.DefaultProvider() != "" && s.DefaultModel() != "" && choice.Model.Ref() != want {
			p.warn("The default model %s is not set up. Using %s.", want, choice.Model.Ref())
		}
	}
	if a.APIKey != "" && asked == nil && !slices.ContainsFunc(scope, func(c catalog.Choice) bool { return c.Model.Ref() == choice.Model.Ref() }) {
		return chosenModel{}, errKeyWithoutModel
	}
	recorded := llm.ThinkingLevel("")
	if had.LevelRecorded {
		recorded = had.ThinkingLevel
	}
	level := cmp.Or(a.Thinking, choice.Level, recorded,
		llm.ThinkingLevel(s.ModelThinkingLevel(choice.Model.Ref())),
		llm.ThinkingLevel(s.DefaultThinkingLevel()), llm.LevelMedium)
	return chosenModel{choice.Model, choice.Model.ClampLevel(level), scope}, nil
}

// demoProvider is the provider of scripted models.
const demoProvider = "demo"

// addDemo adds the scripted models when a provider or a model pattern names
// them. They need no key, so they must not be there for a start that looks for
// a model which is set up.
func addDemo(c *catalog.Catalog, provider, pattern string) {
	if !namesDemo(provider, pattern) {
		return
	}
	id := pattern
	if strings.HasPrefix(pattern, demoProvider+"/") {
		id = pattern[len(demoProvider)+1:]
	}
	addDemoModel(c, demoProvider, id)
}

func namesDemo(provider, pattern string) bool {
	return provider == demoProvider || strings.HasPrefix(pattern, demoProvider+"/")
}

// addDemoModel adds the scripted models, and the file of that id as one more.
func addDemoModel(c *catalog.Catalog, provider, id string) {
	if provider != demoProvider {
		return
	}
	ids := demo.Names()
	if demo.IsFile(id) && !slices.Contains(ids, id) {
		ids = append(ids, id)
	}
	var models []*llm.Model
	for _, id := range ids {
		models = append(models, &llm.Model{
			ID: id, Name: "Scripted: " + id + " (no model behind it)", Input: []string{"text", "image"}, Reasoning: true,
			ContextWindow: 200_000, MaxTokens: 8000, Cost: llm.Rates{Input: 1, Output: 5, CacheRead: 0.1, CacheWrite: 1.25},
		})
	}
	c.Add(catalog.Provider{
		ID: demoProvider, Name: "Scripted demo", APIs: []string{anthropic.ID}, BaseURL: "http://127.0.0.1", DefaultModel: "fix-test", Keyless: true,
	}, models...)
}

// serveDemo starts the server of a scripted model.
func serveDemo(p *program, id string) (*demo.Server, error) {
	s, err := loadDemo(p, id)
	if err != nil {
		return nil, err
	}
	return demo.Serve(s)
}

func loadDemo(p *program, id string) (*demo.Scenario, error) {
	if demo.IsFile(id) {
		id = p.path(id)
	}
	return demo.Load(id)
}
