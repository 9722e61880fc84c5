// Package agent runs a model with tools: it asks, executes the calls of the
// answer, and asks again until the model, a queue or a hook says that it is
// enough. It knows no files, no terminal and no sessions.
//
// There are two ways in. Run and Resume are the loop itself, a function of a
// transcript, a Config and a Sink for its events. An Agent keeps transcript,
// queues and listeners between runs. Most programs want neither, but package
// harness, which adds sessions, retries, hooks and compaction; the tools, events
// and results of this package are the same there.
//
// # Events
//
// A run tells what happens as events, in one total order, to one receiver at a
// time, and waits for it:
//
//	agent_start
//	  turn_start
//	    message_start message_end                   each prompt
//	    message_start message_update* message_end   the answer
//	    tool_execution_start _update* _end          each call
//	    message_start message_end                   each tool result
//	  turn_end
//	  … more turns
//	agent_end
//
// Prompts that are steered in while a turn runs stand at the head of the next
// turn; follow-ups start a turn when the model has nothing left to do. The
// tools that a request may use are declared by system messages in the
// transcript, which the loop adds by itself when the tools changed.
//
// # Tools
//
// NewTool makes a tool of a function, whose arguments are a struct; a Tool with
// Parameters and Execute is one whose schema is written by hand.
//
// A tool's error, a panic in it, arguments that do not fit its schema and a
// hook that refuses it are results for the model, never errors of the run. The
// model reads the text; Event.Err has the error itself, of a panic with its
// stack. The calls of one answer run side by side unless the Config or one of
// the called tools says Sequential. Each body has a goroutine of its own; hooks
// and the Sink are called one at a time by the goroutine that called Run, so
// that they need no locks, and a hook that waits holds up the events of other
// calls.
//
// # Ending a run
//
// The context is the only way to stop: it reaches the request, every tool and
// every hook. Calls that have not started then get the result
// "Operation aborted", and the model is asked once more so that the transcript
// ends with an aborted answer. The loop waits for tools that are running. One
// that ignores its context therefore holds up the run, as nothing of a run is
// left behind after it; a tool that may hang must watch its context.
//
// A run that ended otherwise, with its process, can leave calls without results;
// Finish runs such calls and goes on.
//
// The Sink also gets that context. A listener that stores what it is given
// should use context.WithoutCancel for it, or the end of an aborted run is lost.
//
// # Messages
//
// Messages are immutable from their message_end on and keep their address, in
// the transcript and in requests: wire formats keep under it what they made of
// them. What a hook wants changed it replaces.
package agent
