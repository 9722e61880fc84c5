package tool

import (
	"github.com/pinch-agent/pinch/env"
	"github.com/pinch-agent/pinch/llm"
)

// ReadOptions configure Read.
type ReadOptions struct {
	Env env.ExecutionEnv // where files are; needed
	// Model is the model that will see the result, asked for at each image; nil,
	// or a nil model, for one that takes images of the usual limits.
	Model func() *llm.Model
	// KeepImageSize sends images as they are instead of fitting them into the
	// limits of the model (the setting images.autoResize: false).
	KeepImageSize bool
}

// BashOptions configure Bash and PowerShell.
type BashOptions struct {
	Env env.ExecutionEnv // where commands run; needed
	// Prefix is put on a line before every command (the setting
	// shellCommandPrefix).
	Prefix string
	// Session gives the variables that tell a command which session runs it;
	// nil for none.
	Session func() SessionVars
}

// SessionVars are what a command learns of its session, in PI_SESSION_ID,
// PI_SESSION_FILE, PI_PROVIDER, PI_MODEL and PI_REASONING_LEVEL. An empty value
// leaves its variable unset.
type SessionVars struct {
	ID             string
	File           string // "" for a session that is not stored
	Provider       string
	Model          string
	ReasoningLevel llm.ThinkingLevel
}

// EditOptions configure Edit.
type EditOptions struct {
	Env   env.ExecutionEnv // where files are; needed
	Queue *FileQueue       // shared by the tools of one set that change files; nil for one of its own
}

// WriteOptions configure Write.
type WriteOptions struct {
	Env   env.ExecutionEnv // where files are; needed
	Queue *FileQueue       // shared by the tools of one set that change files; nil for one of its own
}

// GrepOptions configure Grep.
type GrepOptions struct {
	Env env.ExecutionEnv // where files are; needed
	// ConfigDir is the folder of the user's configuration, in which git's own
	// is looked for; "" for .config in the home directory.
	ConfigDir string
}

// FindOptions configure Find.
type FindOptions struct {
	Env       env.ExecutionEnv // where files are; needed
	ConfigDir string           // as in GrepOptions
}

// LsOptions configure Ls.
type LsOptions struct {
	Env env.ExecutionEnv // where files are; needed
}

// ApplyPatchOptions configure ApplyPatch.
type ApplyPatchOptions struct {
	Env   env.ExecutionEnv // where files are; needed
	Queue *FileQueue       // shared by the tools of one set that change files; nil for one of its own
	// AnyPath allows paths outside of the working directory. Without it they are
	// refused, also where links lead there.
	AnyPath bool
}
