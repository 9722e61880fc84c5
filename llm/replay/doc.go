// Package replay stores what a program and its providers say to each other, and
// plays it back without the provider, a key or a network. A recording is how a
// fault of a wire format is reported, and how a test of a program that talks to
// models is written.
//
// A Recorder wraps wire formats:
//
//	rec, err := replay.Create("fault.jsonl", replay.Options{})
//	…
//	defer rec.Close()
//	registry := llm.NewRegistry(rec.Wrap(anthropic.New(anthropic.Config{})))
//
// A Recording is a wire format itself. It takes the place of the models that
// were recorded and lets their own wire formats read the recorded answers, in
// the order in which they came:
//
//	rec, err := replay.Open("fault.jsonl")
//	…
//	registry.Register(rec.API(registry.Stream))
//	stream, err := registry.Stream(ctx, rec.Model("fault.jsonl"), request)
//
// # What a recording holds
//
// A recording is a file of JSON lines, readable by its owner alone: one line
// that names the format, then one line for each HTTP request with its body, the
// model that it was for, and the answer as it arrived. It holds all that was
// said: prompts, file contents, answers. It holds no credentials: of the header
// fields only a list known to carry none is stored, and the key of the request,
// what signs it, the values of its secret header fields and the values named in
// Options.Secrets are replaced wherever they occur, in addresses, bodies and
// answers. Read a recording before you give it away.
package replay
