package resource

import (
	"embed"
	"strings"
)

// What a model reads stands in files of its own.
//
//go:embed text/*.md
var texts embed.FS

// text is a file of model-visible text without its last line end.
func text(name string) string {
	b, err := texts.ReadFile("text/" + name + ".md")
	if err != nil {
		panic(err) // the file is part of the program
	}
	return strings.TrimRight(string(b), "\n")
}
