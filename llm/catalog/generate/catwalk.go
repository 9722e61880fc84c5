package main

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// The version of catwalk whose facts are taken, and the checksum of its module
// as a go.sum has it.
//
// The module is read, not built: its lists are JSON files, and it asks for newer
// versions of Go than this repository does.
const (
	catwalkModule  = "charm.land/catwalk"
	catwalkVersion = "v0.52.86"
	catwalkSum     = "h1:NEP2RXZWj8amSaywrhf2TGWPxHEKCxSdJZdnATGFQ4A="
	catwalkLists   = catwalkModule + "@" + catwalkVersion + "/internal/providers/configs/*.json"
)

// listed is a model in a list of catwalk's. What it calls the prices of cached
// input and of cached output are those of writing and of reading the cache.
type listed struct {
	ID                 string   `json:"id"`
	Name               string   `json:"name"`
	CostPer1MIn        float64  `json:"cost_per_1m_in"`
	CostPer1MOut       float64  `json:"cost_per_1m_out"`
	CostPer1MInCached  float64  `json:"cost_per_1m_in_cached"`
	CostPer1MOutCached float64  `json:"cost_per_1m_out_cached"`
	ContextWindow      int64    `json:"context_window"`
	DefaultMaxTokens   int64    `json:"default_max_tokens"`
	CanReason          bool     `json:"can_reason"`
	ReasoningLevels    []string `json:"reasoning_levels"`
	SupportsImages     bool     `json:"supports_attachments"`
}

// readCatwalk reads catwalk's models, by its ids of providers.
func readCatwalk() (map[string][]listed, error) {
	file, err := download(catwalkModule + "@" + catwalkVersion)
	if err != nil {
		return nil, err
	}
	module, err := zip.OpenReader(file)
	if err != nil {
		return nil, err
	}
	defer module.Close()
	sum, err := checksum(&module.Reader)
	if err != nil {
		return nil, err
	}
	if sum != catwalkSum {
		return nil, fmt.Errorf("%s has the checksum %s, not %s", file, sum, catwalkSum)
	}
	lists := map[string][]listed{}
	for _, f := range module.File {
		if !fits([]string{catwalkLists}, f.Name) {
			continue
		}
		text, err := read(f)
		if err != nil {
			return nil, err
		}
		var list struct {
			ID     string   `json:"id"`
			Models []listed `json:"models"`
		}
		if err := json.Unmarshal(text, &list); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		lists[list.ID] = list.Models
	}
	return lists, nil
}

// download brings a module into the module cache and names its archive there.
func download(module string) (file string, err error) {
	cmd := exec.Command("go", "mod", "download", "-json", module)
	// The module is not built, so no newer Go is fetched for it; its checksum is
	// here, so no database is asked for it.
	cmd.Env = append(os.Environ(), "GOTOOLCHAIN=local", "GONOSUMDB="+catwalkModule)
	// It fails for a module that asks for a newer Go, although it has it then.
	out, failure := cmd.Output()
	var got struct{ Zip, Error string }
	if err := json.Unmarshal(out, &got); err != nil {
		return "", fmt.Errorf("go mod download: %w", failure)
	}
	if got.Zip == "" {
		return "", fmt.Errorf("go mod download: %s", got.Error)
	}
	return got.Zip, nil
}

// checksum is the "h1:" sum of a module: that of the list of its files' sums,
// sorted by name.
func checksum(module *zip.Reader) (string, error) {
	files := slices.SortedFunc(slices.Values(module.File), func(a, b *zip.File) int { return strings.Compare(a.Name, b.Name) })
	all := sha256.New()
	for _, f := range files {
		text, err := read(f)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(all, "%x  %s\n", sha256.Sum256(text), f.Name)
	}
	return "h1:" + base64.StdEncoding.EncodeToString(all.Sum(nil)), nil
}

func read(f *zip.File) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}
