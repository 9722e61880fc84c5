// Package harness is the front door of the engine: one conversation with a
// model, its tools, its session and its queues.
//
//	h, err := harness.New(harness.Options{
//		Model:   model,
//		Stream:  anthropic.New(anthropic.Config{}).Stream, // or that of an llm.Registry
//		Request: llm.Options{APIKey: key},
//		Tools:   []*agent.Tool{agent.NewTool("weather", "The weather in a city.", weather)},
//	})
//	…
//	defer h.Close()
//	h.Subscribe(func(ctx context.Context, ev harness.Event) error { … })
//	answer, err := h.Prompt(ctx, "What do I wear in Lisbon?")
//	if err == nil {
//		err = answer.Err()
//	}
//
// The guide docs/embedding.md goes through all of it with programs that run.
//
// # Runs
//
// Prompt and Continue run until the harness is idle again: the model answers,
// tools run, failed requests are repeated, queued messages are delivered. One
// run is active at a time; another prompt is refused as busy. Abort, or the end
// of the prompt's context, ends the run: the request, the tools, the wait for a
// retry. The partial answer is kept.
//
// While a run is active, Steer and FollowUp queue what the person says
// meanwhile: steering is delivered before the next request, a follow-up when
// nothing else is left to do. What is accepted before the harness is idle is
// said by that run. Only an abort and a failure leave it in the queues, where it
// goes out with the next run, or comes back through ClearQueues.
//
// Messages, model, thinking level, tools, resources, request options and the
// prompt are taken together when a prompt begins, and again between turns. What
// is set during a run holds from the next turn on; a request on its way is never
// changed.
//
// Phase tells what a harness is doing. Operations on the structure of the
// session need an idle one, and keep prompts out as busy while they last.
//
// # Errors
//
// What goes wrong with a model, and an abort, is in its message, and the Err of
// that message tells. Failures that pass by themselves are repeated, see Retry;
// the failed answer stays in the session and leaves the context. An *Error from
// Prompt says that there was no run (busy, invalid_state, invalid_argument,
// auth), that the session could not be written (session), that a hook failed
// (hook), or that a listener, a callback of Options or the stream function did
// (unknown). In the last three cases the run ends early with a failed answer,
// which the listeners see and Prompt returns or the session has; a hook that
// fails before the run lets none begin. Likewise a run ends as auth when the wire
// format is it that finds no key.
//
// A message that could not be written is kept in memory and seen by Messages.
// The next prompt, and Close, write it first; while that fails, prompts are
// refused. Once there is room again nothing needs to be said twice: Continue
// goes on from the last message.
//
// # System prompt
//
// The prompt is recorded by default: its sections are system messages in the
// transcript, and so are the declarations of tools; only what changed is added.
// With Options.Prompt fixed both travel beside the transcript instead: each
// turn has one prompt, a text or what a function makes of model, level, tools
// and resources, and the session knows nothing of it.
//
// # Events
//
// Listeners see everything that happens, one event at a time and in one order:
//
//	agent_start
//	  turn_start
//	    message_start, message_end              system and user messages
//	    message_start, message_update…, message_end   the answer
//	    tool_execution_start, …_update…, …_end  for each call
//	    message_start, message_end              for each result
//	  turn_end
//	  …                                         further turns
//	agent_end
//	auto_retry_start, entry_appended, agent_start, …   where a request is repeated
//	compaction_start, compaction_end                   where the context is compacted
//	agent_settled
//
// agent_end comes once for each agent_start, agent_settled once for each prompt
// that was accepted, whatever fails. Only agent_settled says that the harness
// is done. queue_update comes right before the message_start of the message
// that left its queue, and whenever a queue changes otherwise.
//
// SubscribeAll gets notifications besides: save_point after each turn, when what
// it said and what waited is in the session, model_select, resources_update and
// others.
//
// # Hooks
//
// Hooks change what happens on the way: inputs, prompts, requests, tool calls,
// results, messages, and what follows a turn. The table of type Hooks says what
// each may change and what its failure does. No hook can end the process, or
// hold up a run that was ended.
//
// # Session
//
// Options.Session is a conversation to go on with; without it there is a new one
// in memory. Every message is appended to it when the message ends, after the
// hooks and the listeners have seen it: system messages, prompts, answers (the
// partial answer of an aborted run too) and tool results. Before each request the context is taken
// from the session, so what was edited or branched meanwhile counts; it costs
// what is new.
//
// What is recorded beside the messages of a run waits: SetModel,
// SetThinkingLevel and AppendMessage write at the end of the turn, so that
// nothing comes between a call and its result, and AppendMessage of a shell
// command of the user at the end of the run.
//
// # Durable runs
//
// The results of calls that run side by side are appended when all of them have
// ended, so a crash would lose those that had ended before, and with them what
// was done. While calls run, the harness therefore keeps a journal where the store
// of the session has one: jsonl.Store does, beside the session file; a store of
// your own does by being a session.Journal; memory has nothing to outlast. A line
// is written before an answer with calls is saved, one before each call begins
// and one with its result before anybody is told of it. The journal is taken
// away when the run settles; one without calls has none. The session itself
// never shows that there is a journal.
//
// New takes up what a run left that was cut off, and Recovered tells what that
// was:
//
//	a call                            New                    Continue        Prompt
//	with a result in the session      leaves it alone
//	that had ended                    appends its result
//	that had begun                    appends that its outcome is unknown
//	that had not begun                appends that it did nothing
//	likewise, of a ReplaySafe tool    waits                  runs it         appends that
//
// Results are appended in the order of their calls, and what New appends comes
// before anything else is recorded. Whatever else changes the conversation,
// AppendMessage, Compact or NavigateTree, does to waiting calls as Prompt does.
// Calls that are run again pass the hooks again; hooks and listeners have seen a
// result that is only appended if they saw it before the crash, and message_end
// hooks are not asked about it.
//
//	h, err := harness.New(o)
//	…
//	if h.Recovered().CutOff {
//		answer, err = h.Continue(ctx)
//	}
//
// What decides is the branch that the session ends in. When it ends elsewhere,
// when it went on behind the answer, as another program can have it do, or when
// the answer never got into the session, results in the journal have no place any
// more: they are kept in a custom entry, which no model sees, and Recovery.Dropped
// counts them. A call never gets a second result, whoever appended the first. A
// torn last line of a journal tells of nothing that has happened; after a bad line
// elsewhere, calls without a line count as begun. A journal that cannot be read, or is too large, stays where it
// is: the conversation goes on, and its next call ends the run.
//
// A call does not begin unless the journal says so: after a crash it would be
// told to have done nothing, and the model would make it again. When the disk is
// full, the calls that are left are refused with that reason, their results are
// kept and the run ends with its turn, with an error of kind session. A result
// that cannot be noted stops nothing, as the session gets it soon.
//
// A crash of the program loses nothing of this, kill -9 included. One of the
// machine may, unless the store makes each write durable (jsonl.Options.Sync).
//
// # Compaction
//
// When the context leaves too little room for an answer, its beginning is summed
// up (package compact): before a prompt, after a run and between two turns, as
// Options.Compaction says, or when Compact is called. What goes wrong then is told
// by compaction_end and fails no run; AbortCompaction ends it alone. NavigateTree
// goes back in the session and can sum up what is left behind.
//
// A request that did not fit is recovered from once for each message of the person
// and each good answer: the failed answer is taken out of the context, that is
// compacted, results of tools that fill it are shown cut, and the model is asked
// once more. So a prompt to a model that refuses everything costs two requests and
// the summaries of a compaction, at most 31 for each of its two parts. Then, or
// when there is nothing to compact, a compaction_end says what the person can do;
// the failed answer is what Prompt returns.
//
// Compactions that fail, or leave the context as full as it was, are made three
// times in a row; then none is made by itself until one that is asked for, or the
// recovery from a request, has made room.
//
// Where no compaction brings the context below the window, because calls and their
// results stay together, context_edit entries cut its longest results before the
// next turn. The session keeps all of them whole.
//
// # Virtual models
//
// A virtual model stands for others: its llm.Router, which Options.Router finds,
// says before each request who answers it. The session records the virtual model
// as the one that was chosen, and each answer records the model that gave it and
// its thinking level. A state that the router wants to keep is written to the
// branch before the request is sent.
//
// # The engine of a program
//
// With Options.Embedded a harness is the engine of a program instead of the
// conversation of a person:
//
//	                         a person's                         embedded
//	a new session            begins with model and level        begins with the first message
//	Steer, FollowUp, idle    wait for the next prompt           refused as invalid_state
//	queued, answer failed    said in a further run              wait for the next prompt
//	queue_update             when a queued message is said      when a run takes it, and for NextTurn
//	SetModel                 clamps the level, and records it   records the model alone
//	SetThinkingLevel         records another level              records each level
//
// A listener that fails at the queue_update of a run that takes messages puts
// them back to the head of their queue.
//
// There are two ways to abort. Abort keeps the queues, so that a person finds
// there what was not said yet. AbortAndClear empties them, waits, and returns
// what was in them. Programs mostly want FixedPrompt, Retry.Disabled and
// Compaction.Disabled as well, so that one prompt is one run and nothing is hidden.
//
// # Concurrency
//
// A Harness is safe for concurrent use. Listeners are called one at a time, and so
// are the hooks of a run, which waits for them; they may call what does not wait
// for the harness, see Listener. Hooks for what a program asks itself, such as
// Input at a Steer, may be called meanwhile. Bodies of tools run beside each
// other. Harnesses share nothing, so that one may be the tool of another.
package harness
