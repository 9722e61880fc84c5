package google

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/pinch-agent/pinch/internal/wire"
)

// SetupError says what a request to Vertex lacks.
type SetupError struct {
	What  string // project ID or location
	Value string // what stands there and is none; "" when nothing does
}

func (e *SetupError) Error() string {
	variables, option := "GOOGLE_CLOUD_LOCATION", "location"
	if e.What == whatProject {
		variables, option = "GOOGLE_CLOUD_PROJECT/GCLOUD_PROJECT", "project"
	}
	if e.Value != "" {
		return fmt.Sprintf("Vertex AI knows no %s %q. Correct %s or the %s in options.", e.What, e.Value, variables, option)
	}
	return fmt.Sprintf("Vertex AI requires a %s. Set %s or pass %s in options.", e.What, variables, option)
}

const (
	whatProject  = "project ID"
	whatLocation = "location"
)

// keyEndpoint takes requests that a key authorizes, for every location.
const keyEndpoint = "https://aiplatform.googleapis.com"

// vertexTarget is the address of the request, and puts what authorizes it into
// header.
func (x *exchange) vertexTarget(header http.Header) (string, error) {
	o := &x.req.Options
	base := ""
	if !strings.Contains(x.model.BaseURL, "{location}") {
		var err error
		if base, err = x.api.host.BaseURL(x.model, o); err != nil {
			return "", err
		}
	}
	resource := vertexResource(x.model.ID)
	if key := realKey(o.APIKey); key != "" {
		header.Set("X-Goog-Api-Key", key)
		if base == "" {
			base = keyEndpoint
		}
		return join(base, resource), nil
	}
	project, location, err := x.place()
	if err != nil {
		return "", err
	}
	if base == "" {
		base = endpoint(location)
	}
	if !strings.HasPrefix(resource, "projects/") {
		resource = "projects/" + project + "/locations/" + location + "/" + resource
	}
	if v, _ := wire.HeaderOverride("Authorization", x.model, o); v == nil {
		t, err := x.api.tokens.get(x.ctx, o)
		if err != nil {
			return "", err
		}
		x.token = t
		header.Set("Authorization", "Bearer "+t.value)
		if t.quotaProject != "" {
			header.Set("X-Goog-User-Project", t.quotaProject)
		}
	}
	return join(base, resource), nil
}

// place is the project and the location of a request.
func (x *exchange) place() (project, location string, err error) {
	env := func(name string) string { return strings.TrimSpace(x.api.host.Env(&x.req.Options, name)) }
	for _, v := range []string{x.own.Project, env("GOOGLE_CLOUD_PROJECT"), env("GCLOUD_PROJECT")} {
		if project == "" {
			project = v
		}
	}
	if location = x.own.Location; location == "" {
		location = env("GOOGLE_CLOUD_LOCATION")
	}
	// Both become part of the address that the token goes to.
	switch {
	case project == "":
		return "", "", &SetupError{What: whatProject}
	case !onlyHolds(project, "-.:"):
		return "", "", &SetupError{What: whatProject, Value: project}
	case location == "":
		return "", "", &SetupError{What: whatLocation}
	case !onlyHolds(location, "-"):
		return "", "", &SetupError{What: whatLocation, Value: location}
	}
	return project, location, nil
}

// onlyHolds reports whether s has nothing but lower-case letters, digits and
// characters of extra.
func onlyHolds(s, extra string) bool {
	return strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune(extra, r)
	}) < 0
}

// endpoint is where the models of a location are.
func endpoint(location string) string {
	switch location {
	case "global":
		return keyEndpoint
	case "us", "eu": // several regions together
		return "https://aiplatform." + location + ".rep.googleapis.com"
	default:
		return "https://" + location + "-aiplatform.googleapis.com"
	}
}

// join is the address of the operation on a resource, behind the version that the
// base may have already.
func join(base, resource string) string {
	path := "/" + resource + stream
	if !hasVersion(base) {
		path = "/v1" + path
	}
	return wire.Join(base, path)
}

// hasVersion reports whether a segment of a URL's path is a version such as v1 or
// v1beta1.
func hasVersion(base string) bool {
	if _, rest, ok := strings.Cut(base, "://"); ok {
		base = rest
	}
	_, path, _ := strings.Cut(base, "/")
	for segment := range strings.SplitSeq(path, "/") {
		digits, found := strings.CutPrefix(segment, "v")
		if !found {
			continue
		}
		number, tail := splitDigits(digits)
		if number == "" {
			continue
		}
		for _, stage := range [...]string{"beta", "alpha"} {
			if rest, ok := strings.CutPrefix(tail, stage); ok {
				_, tail = splitDigits(rest)
			}
		}
		if tail == "" {
			return true
		}
	}
	return false
}

// vertexResource is the resource of a model, whose publisher is Google unless its
// id says more.
func vertexResource(id string) string {
	for _, prefix := range [...]string{"projects/", "publishers/", "models/"} {
		if strings.HasPrefix(id, prefix) {
			return escape(id)
		}
	}
	publisher, name, ok := strings.Cut(id, "/")
	if !ok {
		publisher, name = "google", id
	}
	return escape("publishers/" + publisher + "/models/" + name)
}

// realKey is a request's key, "" for one that only stands where a program needs
// some text.
func realKey(key string) string {
	key = strings.TrimSpace(key)
	if key == "gcp-vertex-credentials" || len(key) > 2 && key[0] == '<' && strings.IndexByte(key, '>') == len(key)-1 {
		return ""
	}
	return key
}
