// Package tool holds the built-in tools of a coding agent: read, bash, edit and
// write, working on an env.ExecutionEnv.
//
//	e := &env.Local{Dir: dir}
//	var queue tool.FileQueue
//	tools := []*agent.Tool{
//		tool.Read(tool.ReadOptions{Env: e}),
//		tool.Bash(tool.BashOptions{Env: e}),
//		tool.Edit(tool.EditOptions{Env: e, Queue: &queue}),
//		tool.Write(tool.WriteOptions{Env: e, Queue: &queue}),
//	}
//
// What a model reads about a tool stands in the Markdown file of its name.
package tool
