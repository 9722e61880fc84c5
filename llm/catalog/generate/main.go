// Generate writes the built-in models of package catalog.
//
//	cd llm/catalog/generate && go run .          # writes ../models
//	cd llm/catalog/generate && go run . -check   # fails when ../models is not what it would write
//
// It is a module of its own, so that the programs which use the catalogue link
// neither the source of its facts nor what that needs.
//
// # Sources
//
// Facts come from charm.land/catwalk (MIT), at the version and with the checksum
// that catwalk.go names, and from the files in overlay/, one for each provider,
// which win. These hold what catwalk lacks: providers, wire formats, exact output
// limits, price tiers, thinking levels, flags of vendors. They are kept by hand.
// Most of their models were taken over from models.dev (MIT, commit f3fc692 of
// 2026-07-02), some from former versions of catwalk, the ids of openai-codex from
// the model list of openai/codex (Apache-2.0); the flags are those that the
// catalogue of pi is documented to have. What nobody states is left out.
//
// A model that catwalk lists no more is kept only while its provider serves it.
//
// When an overlay changes or catwalk is raised, set the date in
// overlay/manifest.json: lists that a user has refreshed count only when they
// are newer. Look at what is new whether the globs of rules mean it.
//
// # An overlay
//
//	catwalk   ids of catwalk's providers whose models are taken over
//	prices    how catwalk fills the two prices of its cache there: "named" as
//	          its fields say, "sorted" with the cheaper one for reading
//	levels    whether catwalk's thinking levels are facts there, not one list
//	          for all models
//	omit      members that catwalk fills with a constant there
//	drop      ids of catwalk's that are left out
//	api       wire format of a model that names none
//	defaults  for each wire format: address, flags and headers of all its models
//	copy      models of another provider, such as those that a gateway passes on
//	charge    beginnings of ids and the provider whose prices those models have
//	rules     members to set on models whose id fits one of the globs
//	families  names of rules in families.json, which come after the own ones
//	models    facts, over all of the above
//
// A rule of families.json says how a family of models behaves wherever it is
// served: it may name wire formats, and its globs see ids in lower case with
// hyphens for dots, since services differ in that. "longer" makes the tier of
// prices of long prompts from the prices of short ones.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	check := flag.Bool("check", false, "write nothing, and fail when files are not up to date")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// object is a JSON object.
type object = map[string]any

// overlay is a file of our own facts.
type overlay struct {
	Catwalk  []string          `json:"catwalk"`
	Prices   string            `json:"prices"`
	Levels   bool              `json:"levels"`
	Omit     []string          `json:"omit"`
	Drop     []string          `json:"drop"`
	API      string            `json:"api"`
	Defaults map[string]object `json:"defaults"`
	Copy     []copied          `json:"copy"`
	Charge   map[string]string `json:"charge"`
	Rules    []rule            `json:"rules"`
	Families []string          `json:"families"`
	Models   []object          `json:"models"`
}

type copied struct {
	From   string   `json:"from"`
	API    string   `json:"api"`    // of the copies
	Strip  string   `json:"strip"`  // from the beginning of their ids
	Prefix string   `json:"prefix"` // put there
	IDs    []string `json:"ids"`    // globs; all models without any
	Set    object   `json:"set"`
}

type rule struct {
	IDs    []string `json:"ids"`
	APIs   []string `json:"apis"` // all without any
	Set    object   `json:"set"`
	Longer *longer  `json:"longer"`
}

// longer says how many times more a prompt costs that is longer than Above.
type longer struct {
	Above  float64 `json:"above"`
	Input  float64 `json:"input"` // and the cache
	Output float64 `json:"output"`
}

func run(check bool) error {
	overlays, err := readOverlays("overlay")
	if err != nil {
		return err
	}
	var families map[string][]rule
	if err := readJSON("overlay/families.json", &families); err != nil {
		return err
	}
	sources, err := readCatwalk()
	if err != nil {
		return fmt.Errorf("%s: %w", catwalkModule, err)
	}
	lists := map[string][]object{}
	// Providers that need lists of others come last.
	needs := func(name string) int { return len(overlays[name].Copy) + len(overlays[name].Charge) }
	names := slices.SortedFunc(maps.Keys(overlays), func(a, b string) int {
		return cmp.Or(needs(a)-needs(b), strings.Compare(a, b))
	})
	files := map[string][]byte{}
	for _, name := range names {
		o := overlays[name]
		if lists[name], err = o.list(sources, lists, families); err != nil {
			return fmt.Errorf("overlay/%s.json: %w", name, err)
		}
		if files[name+".json"], err = o.file(lists[name]); err != nil {
			return fmt.Errorf("overlay/%s.json: %w", name, err)
		}
	}
	manifest, err := os.ReadFile("overlay/manifest.json")
	if err != nil {
		return err
	}
	files["manifest.json"] = manifest
	return write(filepath.Join("..", "models"), files, check)
}

func readOverlays(dir string) (map[string]*overlay, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	out := map[string]*overlay{}
	for _, p := range paths {
		name := strings.TrimSuffix(filepath.Base(p), ".json")
		if name == "manifest" || name == "families" {
			continue
		}
		o := &overlay{}
		if err := readJSON(p, o); err != nil {
			return nil, err
		}
		out[name] = o
	}
	return out, nil
}

// readJSON reads a file into v, which has all of its members.
func readJSON(file string, v any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// list is the list of a provider's models, sorted by id.
func (o *overlay) list(sources map[string][]listed, lists map[string][]object, families map[string][]rule) ([]object, error) {
	models := map[string]object{}
	for _, id := range o.Catwalk {
		source, ok := sources[id]
		if !ok {
			return nil, fmt.Errorf("catwalk has no provider %q", id)
		}
		for _, m := range source {
			if !fits(o.Drop, m.ID) {
				models[m.ID] = o.facts(m)
			}
		}
	}
	for _, c := range o.Copy {
		from, ok := lists[c.From]
		if !ok {
			return nil, fmt.Errorf("there is no provider %q to copy from, or it copies itself", c.From)
		}
		for _, m := range from {
			id := m["id"].(string)
			if c.IDs != nil && !fits(c.IDs, id) {
				continue
			}
			m = merge(object{}, m)
			delete(m, "baseUrl")
			delete(m, "compat") // what the other service takes
			id = c.Prefix + strings.TrimPrefix(id, c.Strip)
			m["id"], m["api"] = id, c.API
			models[id] = merge(m, c.Set)
		}
	}
	for prefix, vendor := range o.Charge {
		for _, m := range lists[vendor] {
			cost, _ := m["cost"].(object)
			if own := models[prefix+m["id"].(string)]; own != nil && number(cost["input"]) > 0 {
				own["cost"] = cost
			}
		}
	}
	own := map[string]bool{}
	for _, m := range o.Models {
		id, _ := m["id"].(string)
		if id == "" || own[id] {
			return nil, fmt.Errorf("a model without an id, or twice: %q", id)
		}
		own[id] = true
		if models[id] == nil {
			models[id] = object{"id": id}
		}
	}
	for id, m := range models {
		for _, r := range o.Rules {
			if fits(r.IDs, id) {
				m = r.apply(m)
			}
		}
		api, _ := m["api"].(string)
		for _, name := range o.Families {
			if families[name] == nil {
				return nil, fmt.Errorf("there is no family %q", name)
			}
			for _, r := range families[name] {
				if fits(r.IDs, strings.ToLower(strings.ReplaceAll(id, ".", "-"))) && (r.APIs == nil || slices.Contains(r.APIs, cmp.Or(api, o.API))) {
					m = r.apply(m)
				}
			}
		}
		models[id] = m
	}
	for _, m := range o.Models {
		id := m["id"].(string)
		models[id] = merge(models[id], m)
	}
	var list []object
	for _, id := range slices.Sorted(maps.Keys(models)) {
		m := models[id]
		if api, ok := m["api"].(string); !ok || api == "" {
			m["api"] = o.API
		}
		// A longer answer than the window holds cannot be asked for.
		if window, limit := number(m["contextWindow"]), number(m["maxTokens"]); window > 0 && limit > window {
			m["maxTokens"] = window
		}
		list = append(list, m)
	}
	return list, nil
}

func (r *rule) apply(m object) object {
	m = merge(m, r.Set)
	if cost, ok := m["cost"].(object); ok && r.Longer != nil && number(cost["input"]) > 0 {
		cost, tier := maps.Clone(cost), object{"inputTokensAbove": r.Longer.Above}
		for k, times := range map[string]float64{"input": r.Longer.Input, "cacheRead": r.Longer.Input, "cacheWrite": r.Longer.Input, "output": r.Longer.Output} {
			tier[k] = round(number(cost[k]) * times)
		}
		cost["tiers"] = []any{tier}
		m["cost"] = cost
	}
	return m
}

// facts are what catwalk knows of a model.
func (o *overlay) facts(m listed) object {
	f := object{
		"id": m.ID, "name": m.Name, "reasoning": m.CanReason, "contextWindow": float64(m.ContextWindow), "maxTokens": float64(m.DefaultMaxTokens),
	}
	if m.SupportsImages {
		f["input"] = []any{"text", "image"}
	}
	read, write := m.CostPer1MOutCached, m.CostPer1MInCached
	if o.Prices == "sorted" {
		read, write = sortedPrices(m)
	}
	f["cost"] = object{"input": round(m.CostPer1MIn), "output": round(m.CostPer1MOut), "cacheRead": round(read), "cacheWrite": round(write)}
	if o.Levels && m.CanReason {
		if levels := levelMap(m.ReasoningLevels, o.API); levels != nil {
			f["thinkingLevelMap"] = levels
		}
	}
	for _, name := range o.Omit {
		delete(f, name)
	}
	return f
}

// sortedPrices tells the price of reading the cache from that of writing it:
// reading is what makes a cache worth while. The price of output and one price
// named twice are none of writing.
func sortedPrices(m listed) (read, write float64) {
	low, high := min(m.CostPer1MInCached, m.CostPer1MOutCached), max(m.CostPer1MInCached, m.CostPer1MOutCached)
	switch {
	case low == 0 && high < m.CostPer1MIn:
		return high, 0
	case low == high || high == m.CostPer1MOut:
		return low, 0
	case low == 0:
		return 0, 0
	}
	return low, high
}

// levelMap turns the efforts that a service takes into a map of levels.
func levelMap(efforts []string, api string) object {
	if len(efforts) == 0 {
		return nil
	}
	levels := object{}
	switch api {
	case "anthropic-messages", "bedrock-converse-stream": // weaker levels are its own business
	case "google-generative-ai", "google-vertex":
		for _, l := range []string{"minimal", "low", "medium", "high"} {
			if !slices.Contains(efforts, l) {
				levels[l] = nil
			}
		}
		return levels
	default:
		if slices.Contains(efforts, "none") {
			levels["off"] = "none"
		} else if strings.HasSuffix(api, "-responses") {
			levels["off"] = nil // "none" would be sent
		}
		for _, l := range []string{"minimal", "low", "medium", "high"} {
			if !slices.Contains(efforts, l) {
				levels[l] = nil
			}
		}
	}
	for _, l := range []string{"xhigh", "max"} {
		if slices.Contains(efforts, l) {
			levels[l] = l
		}
	}
	return levels
}

// merge puts upper over lower: objects member by member, prices as a whole.
func merge(lower, upper object) object {
	out := maps.Clone(lower)
	for k, v := range upper {
		up, isObject := v.(object)
		if low, ok := out[k].(object); ok && isObject && k != "cost" {
			out[k] = merge(low, up)
		} else if isObject {
			out[k] = maps.Clone(up)
		} else {
			out[k] = v
		}
	}
	return out
}

// fits reports whether one of the globs, in which * stands for slashes too,
// fits a name.
func fits(globs []string, name string) bool {
	flat := strings.ReplaceAll(name, "/", "\x00")
	return slices.ContainsFunc(globs, func(g string) bool {
		ok, err := path.Match(strings.ReplaceAll(g, "/", "\x00"), flat)
		if err != nil {
			panic(fmt.Sprintf("bad glob %q", g))
		}
		return ok
	})
}

func number(v any) float64 {
	f, _ := v.(float64)
	return f
}

func round(f float64) float64 { return math.Round(f*1e6) / 1e6 }
