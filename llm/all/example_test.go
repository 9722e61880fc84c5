package all_test

import (
	"fmt"
	"os"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/all"
)

// A registry finds the format of any model of the catalogue.
func Example() {
	registry := llm.NewRegistry(all.Formats(all.Config{Version: "1.2.3", Getenv: os.Getenv})...)
	api, err := registry.API("bedrock-converse-stream")
	fmt.Println(api.ID(), err)
	_, err = registry.API("carrier-pigeon")
	fmt.Println(err)
	// Output:
	// bedrock-converse-stream <nil>
	// No API provider registered for api: carrier-pigeon
}
