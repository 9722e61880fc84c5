package signin_test

import (
	"fmt"

	"github.com/pinch-agent/pinch/auth/signin"
)

func ExampleParse() {
	defs, err := signin.Parse([]byte(`{
		"providers": {
			"acme": {
				"name": "Acme",
				"clientId": "my-own-client",
				"authorizeUrl": "https://id.acme.example/authorize",
				"tokenUrl": "https://id.acme.example/token",
				"scopes": ["inference"]
			}
		}
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(defs.Providers())
	_, err = signin.Parse([]byte(`{"providers": {"acme": {"tokenUrl": "http://id.acme.example"}}}`))
	fmt.Println(err != nil)
	// Output:
	// [openrouter huggingface acme]
	// true
}
