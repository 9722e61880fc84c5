package cli

import (
	"fmt"
	"io"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/catalog"
)

// listModels prints the models that are set up as a table, those that match
// search when it is not empty.
func listModels(out io.Writer, models []*llm.Model, search string) error {
	if len(models) == 0 {
		_, err := fmt.Fprintf(out, "%v.\n", errNoModels)
		return err
	}
	if models = catalog.Search(models, search); len(models) == 0 {
		_, err := fmt.Fprintf(out, "No models matching \"%s\"\n", search)
		return err
	}
	_, err := fmt.Fprint(out, catalog.Table(models))
	return err
}
