package cli

import (
	"path/filepath"
	"strings"

	"github.com/pinch-agent/pinch/internal/version"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/catalog"
	"github.com/pinch-agent/pinch/llm/replay"
)

// The provider traffic of a run: recorded into a file with --record, or played
// back from one with --model replay/FILE.

// addRecording adds the model that a recording stands in for, when --model or
// --provider asks for one, and the wire format that plays it.
func (p *program) addRecording(c *catalog.Catalog, registry *llm.Registry, a *Args) error {
	path, ok := strings.CutPrefix(a.Model, replay.Provider+"/")
	switch {
	case a.Provider == replay.Provider && !ok:
		path = a.Model
	case a.Provider != "" && a.Provider != replay.Provider, !ok:
		return nil
	}
	rec, err := replay.Open(p.path(path))
	if err != nil {
		return err
	}
	registry.Register(rec.API(registry.Stream))
	c.Add(catalog.Provider{
		ID: replay.Provider, Name: "Recording", APIs: []string{replay.ID}, DefaultModel: path, Keyless: true,
	}, rec.Model(path))
	return nil
}

// record wraps the wire formats of registry when --record names a file.
func (p *program) record(a *Args, c *catalog.Catalog, registry *llm.Registry) (*replay.Recorder, error) {
	if a.Record == "" {
		return nil, nil
	}
	rec, err := replay.Create(p.path(a.Record), replay.Options{
		Program: "pinch " + version.Version,
		Secrets: func() []string {
			var values []string
			for _, name := range c.SecretNames() {
				values = append(values, p.getenv(name))
			}
			return values
		},
	})
	if err != nil {
		return nil, err
	}
	for _, id := range registry.IDs() {
		if id == replay.ID {
			continue // its answers come through the formats that it stands in for
		}
		if api, err := registry.API(id); err == nil {
			registry.Register(rec.Wrap(api))
		}
	}
	p.warn("The prompts, file contents and answers of this run are stored in %s; keys are left out", filepath.Base(a.Record))
	return rec, nil
}
