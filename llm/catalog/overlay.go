package catalog

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/jsonedit"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/internal/regular"
	"github.com/pinch-agent/pinch/llm"
)

// overlay is a models.json that was read and checked.
type overlay struct {
	providers []fileProvider
	at        positions // of their ids
}

type fileProvider struct {
	id         string
	name       string
	baseURL    string
	apiKey     string // a value
	api        string
	oauth      string
	modelsURL  string
	headers    []header
	authHeader bool
	compat     jsontext.Value
	models     []fileModel
	overrides  []fileModel
}

// fileModel is a model entry or, with the id of another model, an override.
type fileModel struct {
	id      string
	raw     jsontext.Value
	headers []header
}

// header is a header whose value is resolved for each request.
type header struct{ name, value string }

func (o *overlay) provider(id string) *fileProvider {
	if o == nil {
		return nil
	}
	if i, ok := o.at[id]; ok {
		return &o.providers[i]
	}
	return nil
}

// FileError says that models.json cannot be read or is not JSON.
type FileError struct {
	Path  string
	Cause error
}

func (e *FileError) Error() string {
	return fmt.Sprintf("Failed to load models.json: %v\n\nFile: %s", e.Cause, e.Path)
}

func (e *FileError) Unwrap() error { return e.Cause }

// overlay is models.json, read at the first call; nil when there is none or it
// is bad, of which c.problem tells. c.mu is held.
func (c *Catalog) overlay() *overlay {
	if c.file != nil {
		return c.file
	}
	c.file, c.problem, c.remarks = &overlay{}, nil, nil
	if c.o.ModelsFile == "" {
		return c.file
	}
	text, err := regular.ReadFile(c.o.ModelsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return c.file
	}
	if err != nil {
		c.problem = &FileError{Path: c.o.ModelsFile, Cause: err}
		return c.file
	}
	file, remarks, err := readOverlay(c.o.ModelsFile, text)
	c.remarks = remarks
	if err == nil {
		err = c.usable(file)
	}
	if err != nil {
		c.problem = err
		return c.file
	}
	c.file = file
	return c.file
}

// readOverlay parses and checks the text of models.json. There are remarks also
// on a file of the wrong shape: a slip may be why.
func readOverlay(path string, text []byte) (*overlay, []Remark, error) {
	if jsonedit.Blank(text) {
		return &overlay{}, nil, nil
	}
	text = jsonedit.Plain(bytes.TrimPrefix(text, []byte("\xEF\xBB\xBF")))
	check := &checker{text: text}
	checkFile(check)
	if err := check.r.End(); err != nil {
		if syntax, ok := errors.AsType[*jsonwire.SyntaxError](err); ok {
			at := min(syntax.Offset, len(text))
			line := bytes.Count(text[:at], []byte("\n")) + 1
			err = fmt.Errorf("%s (line %d, column %d)", syntax.Msg, line, at-bytes.LastIndexByte(text[:at], '\n'))
		}
		return nil, nil, &FileError{Path: path, Cause: err}
	}
	for i := range check.remarks {
		check.remarks[i].Path = path
	}
	if check.problems != nil {
		return nil, check.remarks, &SchemaError{Path: path, problems: check.problems}
	}
	file := &overlay{}
	for _, m := range members(jsonwire.Get(text, "providers")) {
		file.at.of(m.name, len(file.providers))
		file.providers = append(file.providers, readProvider(m.name, m.value))
	}
	return file, check.remarks, nil
}

func readProvider(id string, raw []byte) fileProvider {
	p := fileProvider{id: id}
	var r jsonwire.Reader
	r.Reset(raw)
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "name":
			p.name = r.Text()
		case "baseUrl":
			p.baseURL = r.Text()
		case "apiKey":
			p.apiKey = r.Text()
		case "api":
			p.api = r.Text()
		case "oauth":
			p.oauth = r.Text()
		case "modelsUrl":
			p.modelsURL = r.Text()
		case "authHeader":
			p.authHeader = r.Bool()
		case "headers":
			p.headers = readHeaders(r.Raw())
		case "compat":
			p.compat = slices.Clone(r.Raw())
		case "models":
			p.models = nil
			for r.Array(); r.More(); {
				entry := slices.Clone(r.Raw())
				id, _ := jsonwire.StringValue(jsonwire.Get(entry, "id"))
				p.models = append(p.models, fileModel{id: id, raw: entry, headers: readHeaders(jsonwire.Get(entry, "headers"))})
			}
		case "modelOverrides":
			p.overrides = nil
			for _, m := range members(r.Raw()) {
				p.overrides = append(p.overrides, fileModel{id: m.name, raw: m.value, headers: readHeaders(jsonwire.Get(m.value, "headers"))})
			}
		default:
			r.Skip()
		}
	}
	return p
}

func readHeaders(raw []byte) []header {
	var list []header
	for _, m := range members(raw) {
		value, _ := jsonwire.StringValue(m.value)
		list = append(list, header{m.name, value})
	}
	return list
}

// usable checks what the schema cannot tell: that every entry does something
// and every model can be reached.
func (c *Catalog) usable(file *overlay) error {
	var problems []problem
	fail := func(path, format string, args ...any) {
		problems = append(problems, problem{path: path, text: fmt.Sprintf(format, args...)})
	}
	for i := range file.providers {
		p := &file.providers[i]
		path := "/providers/" + pointerEscape(p.id)
		if p.id == "" {
			fail(path, "has no name")
		}
		if !p.effective() {
			fail(path, "has no effect: it needs baseUrl, apiKey, headers, compat, models, modelOverrides or modelsUrl")
		}
		if p.oauth != "" && p.baseURL == "" {
			fail(path+"/baseUrl", "is required beside oauth")
		}
		var existing []*llm.Model
		from := p.foundation()
		if i := slices.IndexFunc(c.added, func(a addition) bool { return a.provider.ID == p.id }); i >= 0 {
			existing = c.added[i].models
		} else if from.builtin {
			existing = builtinModels(&from.known)
		}
		for j, entry := range p.models {
			m := p.newModel(entry, existing, &from)
			at := fmt.Sprintf("%s/models/%d", path, j)
			if m.API == "" {
				fail(at+"/api", "is required, here or for the provider")
			}
			if m.BaseURL == "" && needsAddress(m.API) {
				fail(at+"/baseUrl", "is required, here or for the provider")
			}
		}
	}
	if problems != nil {
		return &UseError{Path: c.o.ModelsFile, problems: problems}
	}
	return nil
}

// UseError says that models.json has the right shape but makes no sense.
type UseError struct {
	Path     string
	problems []problem
}

func (e *UseError) Error() string {
	b := []byte("Invalid models.json:")
	for _, p := range e.problems {
		b = fmt.Appendf(b, "\n  - %s: %s", p.path, p.text)
	}
	return string(fmt.Appendf(b, "\n\nFile: %s", e.Path))
}

func (p *fileProvider) effective() bool {
	return p.baseURL != "" || p.apiKey != "" || p.headers != nil || p.compat != nil || p.authHeader ||
		p.oauth != "" || p.modelsURL != "" || p.models != nil || p.overrides != nil
}

// Limits of a model that names none, in tokens.
const (
	defaultContextWindow = 128000
	defaultMaxTokens     = 16384
)

// foundation is what is built in of a provider that models.json changes.
type foundation struct {
	known   Provider
	builtin bool
	file    builtinFile
}

func (p *fileProvider) foundation() (from foundation) {
	if len(p.models) == 0 {
		return from // nobody builds on it
	}
	if from.known, from.builtin = builtinProvider(p.id); from.builtin {
		from.file = readBuiltin(p.id)
	}
	return from
}

// newModel makes the model of an entry. What the entry leaves out comes from
// the provider, then from a kindred model among those that the provider has, and
// what all models of a built-in provider's wire format have.
func (p *fileProvider) newModel(entry fileModel, existing []*llm.Model, from *foundation) *llm.Model {
	var own llm.Model // what the entry says of itself
	apply(&own, entry.raw)
	api, base := cmp.Or(own.API, p.api), cmp.Or(own.BaseURL, p.baseURL)
	like := &llm.Model{}
	switch {
	case api != "" && base != "":
	case len(existing) > 0:
		like = kindred(existing, own.ID, api)
	case from.builtin:
		like = &llm.Model{API: from.known.listedAPI(), BaseURL: from.known.BaseURL}
	}
	api = cmp.Or(api, like.API)
	m := from.file.blank(&Provider{ID: p.id}, api)
	base = cmp.Or(base, m.BaseURL, like.BaseURL)
	if p.compat != nil {
		m.Compat = mergeCompat(m.Compat, p.compat)
	}
	apply(m, entry.raw)
	m.API, m.BaseURL, m.Name = api, base, cmp.Or(m.Name, m.ID)
	return m
}

// kindred is the model that an entry without wire format or address resembles
// most: the one of its id, one of its wire format, one that speaks
// openai-completions, the first.
func kindred(existing []*llm.Model, id, api string) *llm.Model {
	tests := []func(x *llm.Model) bool{
		func(x *llm.Model) bool { return x.ID == id },
		func(x *llm.Model) bool { return api != "" && x.API == api },
		func(x *llm.Model) bool { return x.API == apiCompletions },
	}
	for _, test := range tests {
		if i := slices.IndexFunc(existing, test); i >= 0 {
			return existing[i]
		}
	}
	return existing[0]
}

// merged is the list of a provider's models with the file's entries on top.
func (p *fileProvider) merged(existing []*llm.Model) []*llm.Model {
	var out []*llm.Model
	for _, m := range existing {
		m = new(*m)
		if p.baseURL != "" {
			m.BaseURL = p.baseURL
		}
		if p.compat != nil {
			m.Compat = mergeCompat(m.Compat, p.compat)
		}
		out = append(out, m)
	}
	var at positions
	for i, m := range out {
		at.of(m.ID, i)
	}
	from := p.foundation()
	for _, entry := range p.models {
		m := p.newModel(entry, out, &from)
		if i, had := at.of(m.ID, len(out)); had {
			out[i] = m
		} else {
			out = append(out, m)
		}
	}
	for _, o := range p.overrides {
		if i, ok := at[o.id]; ok {
			m := out[i]
			id, api, base := m.ID, m.API, m.BaseURL
			apply(m, o.raw)
			m.ID, m.API, m.BaseURL = id, api, base
		}
	}
	return out
}

// headersFor are the values of headers for a model, later ones over earlier.
func (p *fileProvider) headersFor(id string) []header {
	list := slices.Clone(p.headers)
	for _, group := range [][]fileModel{p.models, p.overrides} {
		for _, m := range group {
			if m.id == id {
				list = append(list, m.headers...)
			}
		}
	}
	return list
}
