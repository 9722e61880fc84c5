// Package tool holds the built-in tools of a coding agent: read, bash, edit,
// write, grep, find and ls, working on an env.ExecutionEnv. Beside them stand
// apply_patch, for models that were trained on its format, and powershell, for
// Windows.
//
//	e := &env.Local{Dir: dir}
//	var queue tool.FileQueue
//	tools := []*agent.Tool{
//		tool.Read(tool.ReadOptions{Env: e}),
//		tool.Bash(tool.BashOptions{Env: e}),
//		tool.Edit(tool.EditOptions{Env: e, Queue: &queue}),
//		tool.Write(tool.WriteOptions{Env: e, Queue: &queue}),
//		tool.Grep(tool.GrepOptions{Env: e}),
//		tool.Find(tool.FindOptions{Env: e}),
//		tool.Ls(tool.LsOptions{Env: e}),
//	}
//
// grep and find need no other programs. They pass over the files that ripgrep
// and fd pass over, match as these do, and give their results in the order of
// paths.
//
// What a model reads about a tool stands in the Markdown file of its name.
//
// No byte outside of the lines that an edit or a patch names is changed, whatever
// the encoding and the line ends of the file are.
//
// After a crash read may run again, as it only looks. The others may not. A
// command can do anything. An edit that was made finds its old text no longer,
// or finds it in what it wrote and makes the change twice. A write that was made
// would put back what somebody has changed since.
package tool
