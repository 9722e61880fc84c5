// Package catalog knows providers, their models, and what a request to a model
// needs.
//
// A Catalog starts with built-in providers and models, puts the user's
// models.json on top, and takes further providers and models from the program.
// It finds a model by what a person types (Resolve, Scope), chooses one to start
// with (Start), tells which models are set up (Available) and gives the key, the
// headers and the address of each request (Auth).
//
//	c := catalog.New(catalog.Options{
//		ModelsFile: filepath.Join(agentFolder, "models.json"),
//		Store:      auth.OpenStore(filepath.Join(agentFolder, "auth.json"), auth.StoreOptions{}),
//	})
//	choice, err := c.Resolve("sonnet:high", "")
//	…
//	access, err := c.Auth(ctx, choice.Model)
//
// Models are shared and must not be changed.
package catalog
