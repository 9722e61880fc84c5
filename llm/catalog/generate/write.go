package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// order is the order of a model's members.
var order = []string{
	"id", "name", "api", "baseUrl", "reasoning", "thinkingLevelMap", "input", "inputLimits", "cost", "promptCache",
	"contextWindow", "maxTokens", "samplingParams", "samplingParamsByThinkingLevel", "compat", "headers",
}

// file is the text of a provider's file: one model a line.
func (o *overlay) file(models []object) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("{\"api\":" + string(text(o.API)) + ",\n")
	if o.Defaults != nil {
		b.WriteString("\"defaults\":" + string(text(o.Defaults)) + ",\n")
	}
	b.WriteString("\"models\":[")
	for i, m := range models {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
		line, err := o.line(m)
		if err != nil {
			return nil, err
		}
		b.Write(line)
	}
	b.WriteString("\n]}\n")
	return b.Bytes(), nil
}

// line is a model without what the reader of the file supplies.
func (o *overlay) line(m object) ([]byte, error) {
	m = maps.Clone(m)
	if m["api"] == o.API {
		delete(m, "api")
	}
	if m["reasoning"] == false {
		delete(m, "reasoning")
	}
	if levels, ok := m["thinkingLevelMap"].(object); ok && (len(levels) == 0 || m["reasoning"] == nil) {
		delete(m, "thinkingLevelMap")
	}
	if input, ok := m["input"].([]any); ok && len(input) == 1 {
		delete(m, "input")
	}
	if cost, ok := m["cost"].(object); ok {
		cost = maps.Clone(cost)
		for _, k := range []string{"cacheRead", "cacheWrite"} {
			if number(cost[k]) == 0 {
				delete(cost, k)
			}
		}
		if m["cost"] = cost; number(cost["input"]) == 0 && number(cost["output"]) == 0 && cost["tiers"] == nil {
			delete(m, "cost")
		}
	}
	for _, k := range []string{"contextWindow", "maxTokens"} {
		if number(m[k]) <= 0 {
			delete(m, k)
		}
	}
	var b bytes.Buffer
	b.WriteByte('{')
	for _, k := range order {
		v, ok := m[k]
		if !ok {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.Write(text(k))
		b.WriteByte(':')
		b.Write(text(v))
		delete(m, k)
	}
	if len(m) > 0 {
		return nil, fmt.Errorf("unknown members: %v", slices.Sorted(maps.Keys(m)))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// text is v as JSON, members sorted by name.
func text(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // v came from JSON
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// write brings a folder to hold just these files.
func write(dir string, files map[string][]byte, check bool) error {
	old, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return err
	}
	var stale []string
	for _, p := range old {
		if files[filepath.Base(p)] == nil {
			stale = append(stale, p)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		p := filepath.Join(dir, name)
		if had, err := os.ReadFile(p); err == nil && bytes.Equal(had, files[name]) {
			continue
		}
		if check {
			stale = append(stale, p)
		} else if err := os.WriteFile(p, files[name], 0o644); err != nil {
			return err
		}
	}
	if check && stale != nil {
		return fmt.Errorf("not up to date: %v; run go run .", stale)
	}
	var errs []error
	for _, p := range stale {
		errs = append(errs, os.Remove(p))
	}
	return errors.Join(errs...)
}
