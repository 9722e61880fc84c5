// Package google is the two wire formats of Google's Gemini models:
// google-generative-ai, the Gemini API with a key (New), and google-vertex, the
// same protocol on Google Cloud (NewVertex).
//
//	api := google.New(google.Config{})
//	m := &llm.Model{ID: "gemini-2.5-flash", API: google.ID, Provider: "google", …}
//	stream, err := api.Stream(ctx, m, &llm.Request{Messages: …, Options: llm.Options{APIKey: key}})
//
// Model.BaseURL holds the version, as in
// https://generativelanguage.googleapis.com/v1beta, which is also what an empty
// one means. Some rules follow from the id of a model: whether tool calls have
// ids, how thinking is asked for, whether tools can be strict. RulesOf tells them.
//
// # Thinking
//
// Newer models take one of four levels, older ones a budget of tokens. A level of
// the request is mapped to either; Model.ThinkingLevelMap may map it to another of
// the four levels, and llm.Options.ThinkingBudgets sets budgets. Thoughts and
// calls come with signatures, which later requests to the same model send back.
//
// # Vertex
//
// A request with a key (llm.Options.APIKey) goes to the endpoint for keys. Without
// one it needs a project (GOOGLE_CLOUD_PROJECT or GCLOUD_PROJECT), a location
// (GOOGLE_CLOUD_LOCATION, such as europe-west4, eu or global), and Application
// Default Credentials. These are looked for in this order:
//
//   - the file that GOOGLE_APPLICATION_CREDENTIALS names,
//   - the file that "gcloud auth application-default login" writes:
//     application_default_credentials.json in $CLOUDSDK_CONFIG, else in
//     ~/.config/gcloud, on Windows in %APPDATA%\gcloud,
//   - the metadata server of Google Cloud (GCE_METADATA_HOST names another host).
//
// A file may hold a service account, a user's login, an external account (workload
// identity federation) or one of these that acts as another service account. All
// variables are looked up in llm.Options.Env first. The keys gcp-vertex-credentials
// and <…> stand for no key, as programs that need some key put them there.
//
// An API keeps a token until shortly before it expires, and drops one that the
// service refuses. Requests for tokens end with the context of the request and go
// through its HTTP client; only the metadata server is asked without a proxy. A
// base URL of the model replaces the endpoint unless it contains {location}; the
// version is added where it has none.
//
// # Errors
//
// The body of an error response is the message, as JSON. A request that is refused
// with status 400 and has blank texts of users in it, or images between the results
// of parallel calls, is made once more without: some endpoints take neither. What
// keeps a request to Vertex from being made is a *SetupError or a *CredentialsError,
// whose text says what to do about it. No error quotes a key or a token.
package google
