package agent

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pinch-agent/pinch/internal/panics"
	"github.com/pinch-agent/pinch/llm"
)

// Run adds prompts to the transcript and runs until the model, the queues or a
// hook has nothing more to ask. Without prompts it is Resume.
//
// It returns the messages that it added, the prompts included. Problems of the
// model and of tools are messages; an error is misuse (*Error), or what a hook,
// the sink or the stream function returned. A run that ends in an error tells
// no agent_end, unless the sink failed at just that.
func Run(ctx context.Context, cfg Config, c Context, prompts []Message, sink Sink) ([]Message, error) {
	return start(ctx, cfg, c, nil, prompts, sink, false)
}

// Resume runs on from the transcript as it stands, whose last message must not
// be an answer.
func Resume(ctx context.Context, cfg Config, c Context, sink Sink) ([]Message, error) {
	return start(ctx, cfg, c, nil, nil, sink, false)
}

// Unfinished are calls that an earlier run left without results.
type Unfinished struct {
	Answer *llm.Assistant // which made them; the last answer of the transcript
	Calls  []*llm.ToolCall
}

// Finish is Run behind a run that was cut off: the calls that it left are run
// and get their results first, then the prompts are said, if there are any, and
// the model is asked.
func Finish(ctx context.Context, cfg Config, c Context, left Unfinished, prompts []Message, sink Sink) ([]Message, error) {
	return start(ctx, cfg, c, &left, prompts, sink, false)
}

// start checks what it is given and runs the loop. primed says that prompts
// came from the steering queue, which is then not asked at the start.
func start(ctx context.Context, cfg Config, c Context, left *Unfinished, prompts []Message, sink Sink, primed bool) (added []Message, err error) {
	switch {
	case cfg.Model == nil:
		return nil, &Error{Kind: InvalidConfig, Op: "run", Err: errors.New("no model")}
	case cfg.Stream == nil:
		return nil, &Error{Kind: InvalidConfig, Op: "run", Err: errors.New("no stream function")}
	}
	if len(prompts) == 0 && left == nil {
		if len(c.Messages) == 0 {
			return nil, &Error{Kind: NoMessages, Op: "continue"}
		}
		if c.Messages[len(c.Messages)-1].Role() == llm.RoleAssistant {
			return nil, &Error{Kind: LastIsAssistant, Op: "continue"}
		}
	}
	if sink == nil {
		sink = func(context.Context, Event) error { return nil }
	}
	if cfg.Options.Memo == nil {
		cfg.Options.Memo = &llm.Memo{}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &run{
		ctx: ctx, cancel: cancel, cfg: cfg, sink: sink,
		model: cfg.Model, level: cfg.ThinkingLevel,
		messages: c.Messages, tools: c.Tools,
		validators: cfg.validators,
	}
	if !c.Room {
		r.messages = slices.Clip(r.messages)
	}
	if r.level == "" {
		r.level = llm.LevelOff
	}
	if r.validators == nil {
		r.validators = &validators{}
	}
	defer func() {
		added = r.added
		if v := recover(); v != nil {
			err = &Error{Kind: Panicked, Op: "run", Err: panics.Recovered("a hook, a listener or the stream function", v)}
		}
	}()
	return nil, r.loop(left, prompts, primed)
}

// run is the state of one run. It belongs to the goroutine that called Run;
// tools report to it through a channel.
type run struct {
	ctx    context.Context
	cancel context.CancelFunc
	cfg    Config
	sink   Sink

	model *llm.Model
	level llm.ThinkingLevel

	messages []Message // the transcript
	tools    []*Tool
	added    []Message

	declared   declared
	wire       []llm.Message // messages[:wired] as a model knows them
	wired      int
	validators *validators
}

// loop is the double loop: the inner one asks while tools or steering want it,
// the outer one goes on with follow-ups.
func (r *run) loop(left *Unfinished, prompts []Message, primed bool) error {
	if err := r.emit(Event{Type: AgentStart}); err != nil {
		return err
	}
	if err := r.emit(Event{Type: TurnStart}); err != nil {
		return err
	}
	if left != nil {
		if _, _, err := r.execute(left.Answer, left.Calls); err != nil {
			return err
		}
	}
	if err := r.say(r.declare(prompts)); err != nil {
		return err
	}
	if !primed {
		if err := r.say(r.steering()); err != nil {
			return err
		}
	}
	for {
		turn, next, err := r.turn()
		if err != nil {
			return err
		}
		if next == ends {
			break
		}
		queued := r.steering()
		followUp := false
		if next != asks && len(queued) == 0 {
			if r.cfg.FollowUp != nil {
				queued = r.cfg.FollowUp()
			}
			followUp = len(queued) > 0
			if !followUp && next != mayAsk {
				break
			}
		}
		if err := r.begin(turn, queued, followUp); err != nil {
			return err
		}
	}
	return r.emit(Event{Type: AgentEnd, Messages: r.added})
}

// outcome is what a turn asks for.
type outcome int

const (
	rests  outcome = iota // nothing: the queues decide
	asks                  // tool results: the model must be asked again
	mayAsk                // a hook wants one more request, whatever it is for
	ends                  // the end of the run, without the queues
)

// begin opens a following turn: hooks, the late look at the steering queue,
// declarations and messages.
func (r *run) begin(t Turn, queued []Message, followUp bool) error {
	var head []Message
	if r.cfg.PrepareNextTurn != nil {
		next, err := r.cfg.PrepareNextTurn(r.ctx, t)
		if err != nil {
			return err
		}
		r.apply(next)
		head = next.Messages
	}
	if len(queued) == 0 && !followUp {
		queued = r.steering()
	}
	if err := r.emit(Event{Type: TurnStart}); err != nil {
		return err
	}
	pending := queued
	if len(head) > 0 {
		pending = slices.Concat(head, queued)
	}
	return r.say(r.declare(pending))
}

// turn asks the model once, runs the calls of the answer and closes the turn.
func (r *run) turn() (Turn, outcome, error) {
	if r.cfg.PrepareRequest != nil {
		next, err := r.cfg.PrepareRequest(r.ctx, r.context(), r.model, r.level)
		if err != nil {
			return Turn{}, ends, err
		}
		r.apply(next)
	}
	msg, err := r.ask()
	if err != nil {
		return Turn{}, ends, err
	}
	r.add(msg)

	next := rests
	var results []*llm.ToolResult
	failed := msg.StopReason == llm.StopError || msg.StopReason == llm.StopAborted
	if failed {
		next = ends
	} else if calls := msg.ToolCalls(); len(calls) > 0 {
		var terminate bool
		if results, terminate, err = r.execute(msg, calls); err != nil {
			return Turn{}, ends, err
		}
		if !terminate {
			next = asks
		}
	}

	t := Turn{Message: msg, ToolResults: results, Context: r.context(), NewMessages: r.added}
	if r.cfg.FinishTurn != nil {
		decision, err := r.cfg.FinishTurn(r.ctx, t)
		switch {
		case err != nil:
			return t, ends, err
		case decision == End:
			next = ends
		case decision == Continue && next == rests:
			next = mayAsk
		}
	}
	return t, next, r.emit(Event{Type: TurnEnd, Message: msg, ToolResults: results})
}

// apply takes over what a hook changed, for the rest of the run.
func (r *run) apply(n NextTurn) {
	if n.Context != nil {
		r.messages, r.tools = slices.Clip(n.Context.Messages), n.Context.Tools
		r.declared = declared{}
		r.wire, r.wired = nil, 0
	}
	if n.Model != nil {
		r.model = n.Model
	}
	if n.ThinkingLevel != "" {
		r.level = n.ThinkingLevel
	}
}

// context is the state for hooks. They may append to its lists without harm.
func (r *run) context() Context {
	return Context{Messages: slices.Clip(r.messages), Tools: slices.Clip(r.tools)}
}

func (r *run) steering() []Message {
	if r.cfg.Steering == nil {
		return nil
	}
	return r.cfg.Steering()
}

// say puts messages into the transcript, each with its events.
func (r *run) say(messages []Message) error {
	for _, m := range messages {
		if err := r.emit(Event{Type: MessageStart, Message: m}); err != nil {
			return err
		}
		r.add(m)
		if err := r.emit(Event{Type: MessageEnd, Message: m}); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) add(m Message) {
	r.messages = append(r.messages, m)
	r.added = append(r.added, m)
}

func (r *run) emit(ev Event) error { return r.sink(r.ctx, ev) }

// millis is the time for timestamps.
func (c *Config) millis() int64 {
	if c.Now != nil {
		return c.Now().UnixMilli()
	}
	return time.Now().UnixMilli()
}
