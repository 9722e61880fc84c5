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
//
// # Facts
//
// Windows, limits, prices and flags of the built-in models are files in models/,
// one for each provider, written by the module in generate/. A file is decoded
// when a model of its provider is wanted; a search by name reads the names
// alone. Refresh fetches newer lists when the program asks for it, keeps them in
// Options.StoreFile, and never lets a list say where a request goes. Of three
// sources the later wins: built-in data, what was fetched since, models.json.
//
// # Virtual models
//
// AddVirtual adds a model that stands for others: an llm.Router chooses who
// answers each request. Harnesses take Catalog.Router for that; a program that
// makes requests of its own asks Physical.
package catalog
