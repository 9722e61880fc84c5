// Package signin signs a person in to a provider and keeps the sign-in alive.
//
// What an issuer wants is data: a Definition has its addresses, the client, the
// scopes, how the answer goes with requests, and how it is renewed. Builtin has
// those of providers that accept any client; a person adds others, with a client
// of their own, in the file that Load reads. pinch never uses the registration of
// another program.
//
//	defs, err := signin.Load(filepath.Join(agentFolder, "signin.json"))
//	…
//	def, ok := defs.Lookup("openrouter")
//	…
//	credential, err := signin.SignIn(ctx, def, signin.Options{
//		Client: client,
//		Show:   func(s signin.Step) { … },
//		Open:   func(ctx context.Context, address string) error { return signin.OpenBrowser(address, nil) },
//	})
//	…
//	err = store.Set(ctx, def.Provider, credential)
//
// Two flows exist. In the browser flow (authorization code with PKCE) the answer
// comes back to a server on the loopback interface that takes one answer and
// stops, or is pasted. In the device flow the person types a code into a page, on
// any machine. Both end with ctx and leave nothing running.
//
// Definitions.Refresh is the auth.RefreshFunc of a store, and Definitions.Use
// tells how a stored sign-in goes with a request.
package signin
