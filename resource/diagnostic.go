package resource

// Diagnostic types.
const (
	Warning   = "warning"
	Error     = "error"
	Collision = "collision"
)

// Diagnostic is a problem met while loading.
type Diagnostic struct {
	Type      string // Warning, Error or Collision
	Message   string
	Path      string
	Collision *CollisionInfo // with Collision
}

// CollisionInfo names two resources of one name.
type CollisionInfo struct {
	ResourceType string // skill, prompt
	Name         string
	WinnerPath   string
	LoserPath    string
}

// Scope tells whose a resource is.
type Scope string

// The scopes.
const (
	User      Scope = "user"
	Project   Scope = "project"
	Temporary Scope = "temporary" // for this run: named on the command line
)

// Source tells where a resource came from.
type Source struct {
	Path    string
	Source  string // auto for a default folder, local for a named path, else the package
	Scope   Scope
	Origin  string // top-level or package
	BaseDir string // folder that settings patterns are relative to
}
