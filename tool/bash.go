package tool

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/env"
	"github.com/pinch-agent/pinch/internal/jsonwire"
)

//go:embed bash.md
var bashText string

// Bash is the tool that runs shell commands.
func Bash(opts BashOptions) *agent.Tool {
	return opts.declare("bash", bashText, func(command string) (env.Command, error) {
		return env.Command{Line: command}, nil
	})
}

// declare makes a tool that runs command lines; start says how.
func (o BashOptions) declare(name, md string, start func(command string) (env.Command, error)) *agent.Tool {
	t := declare(name, md,
		param{name: "command", typ: "string", required: true},
		param{name: "timeout", typ: "number"})
	t.Execute = func(ctx context.Context, call agent.Call) (agent.Result, error) {
		return o.run(ctx, call, name, start)
	}
	return t
}

const (
	// maxTimeout is what a timer of the peers can hold, in seconds.
	maxTimeout = 2147483.647
	// structuredLimit bounds the output in the structured content.
	structuredLimit = 1 << 20
	// updateEvery is the least time between two updates.
	updateEvery = 100 * time.Millisecond
)

func (o *BashOptions) run(ctx context.Context, call agent.Call, name string, start func(string) (env.Command, error)) (agent.Result, error) {
	call.Update(agent.Result{})
	command, timeout, err := parseBash(call.Args)
	if err != nil {
		return agent.Result{}, err
	}
	if o.Prefix != "" {
		command = o.Prefix + "\n" + command
	}
	c, err := start(command)
	if err != nil {
		return agent.Result{}, err
	}
	out := &shellOutput{shell: name}
	out.Capture = env.Capture{
		Head: structuredLimit, Tail: structuredLimit / 2,
		SpillBytes: MaxBytes, SpillLines: MaxLines,
		Spill: func() (io.WriteCloser, error) { return out.open(ctx, o.Env) },
	}
	updates := startUpdates(call.Update, out)
	c.Unset, c.Set = sessionVars[:], o.sessionEnv()
	c.Timeout = time.Duration(timeout * float64(time.Second))
	c.Output = io.MultiWriter(out, updates)
	exit, err := o.Env.Exec(ctx, c)
	out.Close()
	updates.stop()
	if err != nil {
		return agent.Result{}, bashError(err, exit, timeout, out)
	}
	return bashResult(exit, out), nil
}

// parseBash reads the arguments; a timeout of 0 seconds means none was given.
func parseBash(args jsontext.Value) (command string, timeout float64, err error) {
	var r jsonwire.Reader
	r.Reset(args)
	for r.Object(); r.More(); {
		switch string(r.Key()) {
		case "command":
			command = jsonwire.ToValidUTF8(r.Text())
		case "timeout":
			if r.Kind() != '0' {
				r.Skip()
				break
			}
			timeout = r.Float()
			switch {
			case !(timeout > 0) || math.IsInf(timeout, 0):
				return "", 0, errors.New("Invalid timeout: must be a finite number of seconds")
			case timeout > maxTimeout:
				return "", 0, errors.New("Invalid timeout: maximum is 2147483.647 seconds")
			}
		default:
			r.Skip()
		}
	}
	return command, timeout, r.Err()
}

// sessionVars are the variables that tell a command of its session. Inherited
// ones are those of another session.
var sessionVars = [...]string{"PI_SESSION_ID", "PI_SESSION_FILE", "PI_PROVIDER", "PI_MODEL", "PI_REASONING_LEVEL"}

func (o *BashOptions) sessionEnv() []string {
	if o.Session == nil {
		return nil
	}
	s := o.Session()
	var set []string
	for i, v := range [len(sessionVars)]string{s.ID, s.File, s.Provider, s.Model, string(s.ReasoningLevel)} {
		if v != "" {
			set = append(set, sessionVars[i]+"="+v)
		}
	}
	return set
}

// shellOutput is the output of one command, and the file that holds all of it
// when it is long.
type shellOutput struct {
	env.Capture
	shell string // name of the tool
	mu    sync.Mutex
	path  string
}

func (s *shellOutput) open(ctx context.Context, e env.ExecutionEnv) (io.WriteCloser, error) {
	f, err := e.TempFile(ctx, "pinch-"+s.shell+"-", ".log")
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.path = f.Name()
	s.mu.Unlock()
	return f, nil
}

func (s *shellOutput) spillPath() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.path
}

// shown is the end of the output, as much as a model gets.
func (s *shellOutput) shown() truncation {
	text := s.Last(2 * MaxBytes)
	total, newlines, _ := s.Size()
	return truncateTail(text, extent{bytes: total, newlines: newlines, endsLine: len(text) == 0 || text[len(text)-1] == '\n'})
}

// details are the truncation and the file, as far as there are any.
func (s *shellOutput) details(t truncation) jsontext.Value {
	b := []byte{'{'}
	if t.truncated {
		b = t.appendJSON(append(b, `"truncation":`...))
	}
	if path := s.spillPath(); path != "" {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = jsonwire.AppendString(append(b, `"fullOutputPath":`...), path)
	}
	return append(b, '}')
}

// text is what the model reads of the output: its end, and what is missing.
func (s *shellOutput) text(t truncation) string {
	if !t.truncated {
		return t.content
	}
	full := "Full output: " + s.spillPath()
	if err := s.SpillErr(); err != nil {
		full = "The full output could not be kept: " + err.Error()
	}
	switch _, _, last := s.Size(); {
	case t.lastPartial:
		return fmt.Sprintf("%s\n\n[Showing last %s of line %d (line is %s). %s]",
			t.content, sizeText(int64(t.bytes)), t.totalLines, sizeText(last), full)
	case t.by == "bytes":
		return fmt.Sprintf("%s\n\n[Showing lines %d-%d of %d (%s limit). %s]",
			t.content, t.totalLines-t.lines+1, t.totalLines, t.totalLines, sizeText(MaxBytes), full)
	}
	return fmt.Sprintf("%s\n\n[Showing lines %d-%d of %d. %s]",
		t.content, t.totalLines-t.lines+1, t.totalLines, t.totalLines, full)
}

// bashResult is the result of a command that ran to its end.
func bashResult(exit env.Exit, out *shellOutput) agent.Result {
	t := out.shown()
	text := out.text(t)
	if text == "" {
		text = "(no output)"
	}
	code := exitCode(exit)
	if code != 0 {
		text += fmt.Sprintf("\n\nCommand exited with code %d", code)
	}
	r := agent.TextResult(text)
	r.IsError = code != 0
	if t.truncated {
		r.Details = out.details(t)
	}
	r.StructuredContent = out.structured(code, exit.Duration)
	return r
}

// exitCode is the exit status as shells give it: a signal counts from 128.
func exitCode(exit env.Exit) int {
	if exit.Signal != 0 {
		return 128 + exit.Signal
	}
	return exit.Code
}

// structured is the result for programs.
func (s *shellOutput) structured(code int, took time.Duration) jsontext.Value {
	total, _, _ := s.Size()
	cut := total > structuredLimit
	var text []byte
	if !cut {
		text = s.First(structuredLimit)
	} else {
		head, tail := s.First(structuredLimit/2), s.Last(structuredLimit/2)
		head, _ = jsonwire.SplitUTF8(head)
		for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
			tail = tail[1:]
		}
		text = fmt.Appendf(head, "\n\n[... %d bytes omitted ...]\n\n", total-int64(len(head)+len(tail)))
		text = append(text, tail...)
	}
	b := jsonwire.AppendString([]byte(`{"output":`), text)
	b = strconv.AppendBool(append(b, `,"truncated":`...), cut)
	if path := s.spillPath(); cut && path != "" {
		b = jsonwire.AppendString(append(b, `,"full_output_path":`...), path)
	}
	b = strconv.AppendInt(append(b, `,"exit_code":`...), int64(code), 10)
	b = jsonwire.AppendFloat(append(b, `,"wall_time_seconds":`...), seconds(took))
	return append(b, '}')
}

// seconds is a duration in seconds with one decimal.
func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*10) / 10 }

// bashError puts a failure into words for the model.
func bashError(err error, exit env.Exit, timeout float64, out *shellOutput) error {
	e, ok := errors.AsType[*env.Error](err)
	if !ok {
		return err
	}
	var problem string
	switch {
	case e.Code == env.Aborted:
		problem = "Command aborted"
	case e.Code == env.Timeout:
		problem = fmt.Sprintf("Command timed out after %s seconds", number(timeout))
		if exit.Exited {
			problem += fmt.Sprintf(". The shell exited with code %d after %s seconds, but background processes it started kept writing output until the timeout.",
				exitCode(exit), number(seconds(exit.After)))
		}
	case e.Op == "chdir":
		return fmt.Errorf("Working directory does not exist: %s\nCannot execute %s commands.", e.Path, out.shell)
	case e.Code == env.ShellUnavailable && e.Path != "":
		return fmt.Errorf("Custom shell path not found: %s", e.Path)
	default:
		return err
	}
	if text := out.text(out.shown()); text != "" {
		problem = text + "\n\n" + problem
	}
	return errors.New(problem)
}

// updates shows the output while it grows, at most every so often.
type updates struct {
	show  func(agent.Result)
	out   *shellOutput
	dirty chan struct{} // holds one value when there is something new
	over  chan struct{}
	done  sync.WaitGroup
}

func startUpdates(show func(agent.Result), out *shellOutput) *updates {
	u := &updates{show: show, out: out, dirty: make(chan struct{}, 1), over: make(chan struct{})}
	u.done.Go(u.loop)
	return u
}

// Write notes that there is something new.
func (u *updates) Write(p []byte) (int, error) {
	select {
	case u.dirty <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (u *updates) loop() {
	pause := time.NewTimer(updateEvery) // the empty update was just shown
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
		case <-u.over:
			return
		}
		select {
		case <-u.dirty:
			u.send()
			pause.Reset(updateEvery)
		case <-u.over:
			return
		}
	}
}

func (u *updates) send() {
	t := u.out.shown()
	r := agent.TextResult(t.content)
	r.Details = u.out.details(t)
	u.show(r)
}

// stop shows what has not been shown and ends the updates.
func (u *updates) stop() {
	close(u.over)
	u.done.Wait()
	select {
	case <-u.dirty:
		u.send()
	default:
	}
}
