package agent

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/internal/panics"
	"github.com/pinch-agent/pinch/llm"
)

// Texts that models read in place of a result.
const (
	abortedText = "Operation aborted"
	blockedText = "Tool execution was blocked"
)

func truncatedText(name string) string {
	return fmt.Sprintf("Tool %s was not run: the answer reached its output limit, so the call may be incomplete. Issue it again, in smaller parts if it is long.", name)
}

// pending is one call of an answer on its way to a result.
type pending struct {
	*llm.ToolCall
	tool    *Tool
	args    jsontext.Value // validated
	release func()         // gives back what Reserve took; nil for nothing

	over       bool
	result     Result
	err        error  // why there is none of the tool's own
	durationMs *int64 // nil when the body did not run
}

func errorResult(text string) Result {
	return Result{Content: []llm.Block{&llm.Text{Text: text}}, Details: jsontext.Value("{}"), IsError: true}
}

// execute gives every call of an answer a result, in the transcript too. It
// reports whether all results ask to end the run.
func (r *run) execute(msg *llm.Assistant, calls []*llm.ToolCall) (results []*llm.ToolResult, terminate bool, err error) {
	terminate = true
	close := func(c *pending) error {
		m := r.toolResult(c)
		results = append(results, m)
		terminate = terminate && c.result.Terminate
		return r.say([]Message{m})
	}
	if msg.StopReason == llm.StopLength || r.sequential(calls) {
		for _, call := range calls {
			c, err := r.open(call)
			if err != nil {
				return results, false, err
			}
			if msg.StopReason == llm.StopLength {
				c.refuse(truncatedText(c.Name))
			} else {
				r.prepare(msg, c)
			}
			if c.over {
				err = r.end(c)
			} else {
				err = r.runBodies(msg, []*pending{c})
			}
			if err == nil {
				err = close(c)
			}
			if err != nil {
				return results, false, err
			}
		}
		return results, terminate, nil
	}

	batch := make([]*pending, len(calls))
	ready := make([]*pending, 0, len(calls))
	for i, call := range calls {
		c, err := r.open(call)
		if err != nil {
			return nil, false, err
		}
		batch[i] = c
		if r.prepare(msg, c); !c.over {
			ready = append(ready, c)
			continue
		}
		if err := r.end(c); err != nil {
			return nil, false, err
		}
	}
	if err := r.runBodies(msg, ready); err != nil {
		return nil, false, err
	}
	for _, c := range batch {
		if err := close(c); err != nil {
			return results, false, err
		}
	}
	return results, terminate, nil
}

// sequential reports whether calls must run one after another.
func (r *run) sequential(calls []*llm.ToolCall) bool {
	if r.cfg.Execution == Sequential {
		return true
	}
	for _, c := range calls {
		if t := findTool(r.tools, c.Name, 0); t != nil && t.Execution == Sequential {
			return true
		}
	}
	return false
}

func (r *run) open(call *llm.ToolCall) (*pending, error) {
	c := &pending{ToolCall: call}
	return c, r.emit(Event{Type: ToolExecutionStart, ToolCallID: c.ID, ToolName: c.Name, Args: c.Arguments})
}

func (c *pending) settle(result Result) {
	c.over, c.result = true, result
	switch {
	case slices.ContainsFunc(result.Content, isNil):
		c.result = errorResult(fmt.Sprintf("The result of tool %s holds a block that is nil", c.Name))
	case result.Content == nil:
		c.result.Content = []llm.Block{}
	}
}

// isNil reports whether there is nothing in b, such as in a nil *llm.Text.
func isNil(b llm.Block) bool {
	v := reflect.ValueOf(b)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

func (c *pending) refuse(text string) { c.settle(errorResult(text)) }

// fail gives the model the text of an error, and who listens the error.
func (c *pending) fail(err error) {
	c.err = err
	c.refuse(err.Error())
}

// prepare takes a call through everything that can keep it from running.
func (r *run) prepare(msg *llm.Assistant, c *pending) {
	if r.ctx.Err() != nil {
		c.refuse(abortedText)
		return
	}
	if c.tool = findTool(r.tools, c.Name, 0); c.tool == nil {
		c.refuse(fmt.Sprintf("Tool %s not found", c.Name))
		return
	}
	call := c.ToolCall
	if c.tool.Prepare != nil {
		args, err := panics.Guard("argument preparation of tool "+c.Name, func() (jsontext.Value, error) {
			return c.tool.Prepare(call.Arguments)
		})
		if err != nil {
			c.fail(err)
			return
		}
		prepared := *call
		prepared.Arguments = args
		call = &prepared
	}
	var err error
	if c.args, err = r.validators.of(c.tool).validate(call); err != nil {
		c.fail(err)
		return
	}
	if r.cfg.BeforeToolCall == nil {
		return
	}
	block, err := panics.Guard("hook before tool calls", func() (*Block, error) {
		info := r.info(msg, c)
		info.SetArgs = func(args jsontext.Value) { c.args = args }
		return r.cfg.BeforeToolCall(r.ctx, info)
	})
	switch {
	case err != nil:
		c.fail(err)
	case r.ctx.Err() != nil:
		c.refuse(abortedText)
	case block != nil:
		if block.Reason == "" {
			c.refuse(blockedText)
		} else {
			c.refuse(block.Reason)
		}
		c.result.Terminate = block.Terminate
	}
}

func (r *run) info(msg *llm.Assistant, c *pending) CallInfo {
	return CallInfo{Message: msg, Call: c.ToolCall, Tool: c.tool, Args: c.args, Context: r.context()}
}

// report is what a running body tells the loop: progress, or its end.
type report struct {
	call       *pending
	progress   *Result // nil at the end
	result     Result
	err        error
	durationMs int64
}

// runBodies runs the bodies of prepared calls side by side and tells what they
// report. Hooks and sink stay in this goroutine. It returns when every body
// has, whatever happens to the sink.
func (r *run) runBodies(msg *llm.Assistant, calls []*pending) error {
	reports := make(chan report) // unbuffered: progress waits for its listeners
	running := 0
	defer func() {
		if running > 0 { // the run is lost
			r.cancel()
		}
		for running > 0 {
			if rep := <-reports; rep.progress == nil {
				running--
			}
		}
		for _, c := range calls {
			c.giveBack()
		}
	}()

	for _, c := range calls {
		r.reserve(c)
	}
	for _, c := range calls {
		switch {
		case c.over: // its reservation failed
		case r.ctx.Err() != nil:
			c.giveBack()
			c.refuse(abortedText)
		default:
			running++
			go c.run(r.ctx, reports)
			continue
		}
		if err := r.end(c); err != nil {
			return err
		}
	}
	for running > 0 {
		rep := <-reports
		c := rep.call
		if rep.progress != nil {
			if c.over { // from a goroutine that outlives its call
				continue
			}
			err := r.emit(Event{
				Type: ToolExecutionUpdate, ToolCallID: c.ID, ToolName: c.Name, Args: c.Arguments, Result: rep.progress,
			})
			if err != nil {
				return err
			}
			continue
		}
		running--
		c.durationMs = &rep.durationMs
		if rep.err != nil {
			c.fail(rep.err)
		} else {
			c.settle(rep.result)
		}
		r.review(msg, c)
		if err := r.end(c); err != nil {
			return err
		}
	}
	return nil
}

// reserve takes the place of c in the order that its tool keeps.
func (r *run) reserve(c *pending) {
	if c.tool.Reserve == nil {
		return
	}
	release, err := panics.Guard("reservation of tool "+c.Name, func() (func(), error) {
		return c.tool.Reserve(Call{ID: c.ID, Args: c.args, Update: func(Result) {}}), nil
	})
	if err != nil {
		c.fail(err)
		return
	}
	c.release = release
}

// giveBack ends the reservation of a call whose body is not running.
func (c *pending) giveBack() {
	if release := c.release; release != nil {
		c.release = nil
		release()
	}
}

// run is the goroutine of one body.
func (c *pending) run(ctx context.Context, reports chan<- report) {
	settled := make(chan struct{})
	update := func(progress Result) {
		if progress.Content == nil {
			progress.Content = []llm.Block{}
		}
		select {
		case <-settled:
			return
		default:
		}
		select {
		case reports <- report{call: c, progress: &progress}:
		case <-settled:
		}
	}
	// The error holds for a body that leaves through runtime.Goexit.
	end := report{call: c, err: fmt.Errorf("tool %s ended without a result", c.Name)}
	begun := time.Now()
	defer func() {
		if v := recover(); v != nil {
			end.err = panics.Recovered("tool "+c.Name, v)
		}
		end.durationMs = time.Since(begun).Round(time.Millisecond).Milliseconds()
		close(settled)
		if release := c.release; release != nil {
			c.release = nil
			err := panics.Do("reservation of tool "+c.Name, func() error { release(); return nil })
			end.err = errors.Join(end.err, err)
		}
		reports <- end
	}()
	if c.tool.Execute == nil {
		end.err = fmt.Errorf("tool %s cannot be executed", c.Name)
		return
	}
	result, err := c.tool.Execute(ctx, Call{ID: c.ID, Args: c.args, Update: update})
	if err != nil {
		_ = err.Error() // here, where a panic is the tool's: a nil pointer that became an error
	}
	end.result, end.err = result, err
}

// review lets the hook change the result of a call that ran.
func (r *run) review(msg *llm.Assistant, c *pending) {
	if r.cfg.AfterToolCall == nil {
		return
	}
	patch, err := panics.Guard("hook after tool calls", func() (*ResultPatch, error) {
		return r.cfg.AfterToolCall(r.ctx, r.info(msg, c), c.result)
	})
	if err != nil {
		c.fail(err)
		return
	}
	if patch != nil {
		c.settle(patch.Apply(c.result))
	}
}

// Apply is r with the fields that p sets.
func (p *ResultPatch) Apply(r Result) Result {
	if p.Content != nil {
		r.Content, r.StructuredContent = *p.Content, nil
	}
	if p.StructuredContent != nil {
		r.StructuredContent = *p.StructuredContent
	}
	if p.Details != nil {
		r.Details = *p.Details
	}
	if p.IsError != nil {
		r.IsError = *p.IsError
	}
	if p.Usage != nil {
		r.Usage = *p.Usage
	}
	if p.Terminate != nil {
		r.Terminate = *p.Terminate
	}
	return r
}

func (r *run) end(c *pending) error {
	return r.emit(Event{
		Type: ToolExecutionEnd, ToolCallID: c.ID, ToolName: c.Name, Args: c.Arguments,
		Result: &c.result, IsError: c.result.IsError, Err: c.err, DurationMs: c.durationMs,
	})
}

// toolResult is the message of a call that is over.
func (r *run) toolResult(c *pending) *llm.ToolResult {
	return &llm.ToolResult{
		ToolCallID: c.ID, ToolName: c.Name,
		Content: c.result.Content, Details: c.result.Details, Usage: c.result.Usage,
		IsError: c.result.IsError, Timestamp: r.cfg.millis(), DurationMs: c.durationMs,
	}
}
