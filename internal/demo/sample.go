package demo

import (
	"embed"
	"os"
	"path/filepath"
	"strings"
)

//go:embed sample/*.txt
var sample embed.FS

// WriteSample writes the sample Go module into dir, which must exist. Its test
// fails until someone repairs the code.
func WriteSample(dir string) error {
	files, err := sample.ReadDir("sample")
	if err != nil {
		return err
	}
	for _, f := range files {
		b, err := sample.ReadFile("sample/" + f.Name())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, strings.TrimSuffix(f.Name(), ".txt")), b, 0o644); err != nil {
			return err
		}
	}
	return nil
}
