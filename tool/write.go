package tool

import (
	"context"
	_ "embed"
	"errors"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/internal/jsonwire"
)

//go:embed write.md
var writeText string

// Write is the tool that writes whole files.
func Write(opts WriteOptions) *agent.Tool {
	fs, queue := opts.Env, opts.Queue
	if queue == nil {
		queue = &FileQueue{}
	}
	t := declare("write", writeText,
		param{name: "path", typ: "string", required: true},
		param{name: "content", typ: "string", required: true})
	t.Reserve = queue.reserver(fs)
	t.Execute = func(ctx context.Context, call agent.Call) (agent.Result, error) {
		path, ok := pathArg(call.Args)
		if !ok {
			return agent.Result{}, errors.New("path must be a string")
		}
		content, _ := jsonwire.StringValue(jsonwire.Get(call.Args, "content"))
		abs := resolvePath(fs, path)
		done, err := queue.enter(ctx, fs, call.ID, abs)
		if err != nil {
			return agent.Result{}, err
		}
		defer done()
		if err := fs.WriteFile(ctx, abs, []byte(jsonwire.ToValidUTF8(content))); err != nil {
			return agent.Result{}, systemError(err)
		}
		return agent.TextResult("Successfully wrote to " + path), nil
	}
	return t
}
