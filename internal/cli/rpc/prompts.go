package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/internal/cli/record"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/tool"
)

// entrance is a prompt that is not accepted yet. Prompts enter one after the
// other, so that of two at once the first one starts.
type entrance struct {
	cancel context.CancelFunc
	open   chan struct{} // closed when the next one may enter
}

func (a *active) enter(p *entrance) (before *entrance) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(a.prompts); n > 0 {
		before = a.prompts[n-1]
	}
	a.prompts = append(a.prompts, p)
	return before
}

func (a *active) entered(p *entrance) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := slices.Index(a.prompts, p); i >= 0 {
		a.prompts = slices.Delete(a.prompts, i, i+1)
		close(p.open)
	}
}

func (s *server) prompt(c *command) {
	in, err := c.input()
	if err != nil {
		s.fail(c, err)
		return
	}
	if v := c.get("streamingBehavior"); v != nil && string(v) != "null" && string(v) != `""` {
		in.Behavior = harness.AsSteering
		if string(v) == `"followUp"` {
			in.Behavior = harness.AsFollowUp
		}
	}
	a := s.c
	ctx, cancel := context.WithCancel(a.ctx)
	p := &entrance{cancel, make(chan struct{})}
	before := a.enter(p)
	a.tasks.Go(func() {
		defer cancel()
		defer a.entered(p)
		if before != nil {
			<-before.open
		}
		in = a.fit(in)
		accepted := false
		in.Accepted = func(d harness.Disposition) {
			if d == harness.InputQueued {
				_ = a.Harness.Delivered(ctx) // fails only with the program
			}
			if d == harness.InputStarted {
				a.ended(false)
			}
			s.disposed(c, d)
			accepted = true
			a.entered(p)
		}
		_, err := a.Harness.Submit(ctx, in)
		if !accepted && a.ending(err) {
			_ = a.Harness.WaitForIdle(ctx) // Submit says what ended ctx
			_, err = a.Harness.Submit(ctx, in)
		}
		switch {
		case !accepted:
			s.fail(c, a.refusal(err))
		case err != nil && s.ctx.Err() == nil:
			// The records tell how the run ended, not always why.
			s.o.Warn("%v", err)
		}
	})
}

func (a *active) ended(over bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = over
}

// ending reports whether a prompt was refused because of a run whose agent_end
// is written and that only has to be put away. A client that writes its next
// prompt then has done nothing wrong.
func (a *active) ending(err error) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.over && a.running(err)
}

// running reports whether a prompt was refused because of a run.
func (a *active) running(err error) bool {
	e, ok := errors.AsType[*harness.Error](err)
	if !ok || e.Kind != harness.KindBusy {
		return false
	}
	switch a.Harness.Phase() {
	case harness.PhaseCompaction, harness.PhaseBranchSummary:
		return false
	}
	return true
}

// refusal says what a client can do about a prompt while a run is active.
func (a *active) refusal(err error) error {
	if !a.running(err) {
		return err
	}
	return errors.New("Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message.")
}

// queue handles steer and follow_up.
func (s *server) queue(c *command, b harness.QueueBehavior) {
	in, err := c.input()
	if err == nil {
		in.Behavior = b
		in.Accepted = func(d harness.Disposition) {
			s.settled()
			s.disposed(c, d)
		}
		err = s.c.Harness.Queue(s.c.fit(in))
	}
	if err != nil {
		s.fail(c, err)
	}
}

func (s *server) disposed(c *command, d harness.Disposition) {
	s.done(c, object(func(o *jsonwire.Object) { o.Text("disposition", string(d)) }))
}

// input is the message of a command and its images.
func (c *command) input() (harness.Input, error) {
	in := harness.Input{Source: harness.FromRPC}
	var err error
	if in.Text, err = c.text("message"); err != nil {
		return in, err
	}
	list := c.get("images")
	if list == nil || string(list) == "null" {
		return in, nil
	}
	wrong := fmt.Errorf(`%s needs "images" as a list of {"type":"image","data":BASE64,"mimeType":TYPE}`, c.name)
	var r jsonwire.Reader
	r.Reset(list)
	if r.Kind() != '[' {
		return in, wrong
	}
	for r.Array(); r.More(); {
		img := &llm.Image{}
		for r.Object(); r.More(); {
			switch string(r.Key()) {
			case "data":
				img.Data = r.Text()
			case "mimeType":
				img.MimeType = r.Text()
			default:
				r.Skip()
			}
		}
		if img.Data == "" || img.MimeType == "" {
			return in, wrong
		}
		in.Images = append(in.Images, img)
	}
	return in, r.Err()
}

// fit makes the pictures of an input ones that the model takes; what was done to
// them stands below the text.
func (a *active) fit(in harness.Input) harness.Input {
	var images []*llm.Image
	var notes []string
	for _, img := range in.Images {
		fitted, hints := tool.FitImage(img, a.Harness.Model(), a.FitImages)
		if fitted != nil {
			images = append(images, fitted)
		}
		notes = append(notes, hints...)
	}
	in.Images = images
	if len(notes) > 0 {
		in.Text = strings.TrimPrefix(in.Text+"\n\n"+strings.Join(notes, "\n"), "\n\n")
	}
	return in
}

// abort ends what is active, and the prompts that are about to begin, and
// answers when all is quiet.
func (s *server) abort(c *command) {
	a := s.c
	a.mu.Lock()
	entering := slices.Clone(a.prompts)
	a.mu.Unlock()
	for _, p := range entering {
		p.cancel()
	}
	a.Harness.Abort()
	a.tasks.Go(func() {
		for _, p := range entering {
			<-p.open
		}
		_ = a.Harness.WaitForIdle(context.Background()) // the run is ending
		s.done(c, nil)
	})
}

func (s *server) clearQueue(c *command) {
	q := s.c.Harness.ClearQueues()
	s.settled()
	s.done(c, object(func(o *jsonwire.Object) {
		texts(o, "steering", q.Steering)
		texts(o, "followUp", q.FollowUp)
	}))
}

func texts[S ~string](o *jsonwire.Object, name string, list []S) {
	o.Key(name)
	o.B = jsonwire.AppendStrings(o.B, list)
}

func (s *server) abortRetry(c *command) {
	s.c.Harness.AbortRetry()
	s.done(c, nil)
}

func (s *server) compact(c *command) {
	instructions, err := c.optional("customInstructions")
	if err != nil {
		s.fail(c, err)
		return
	}
	a := s.c
	a.tasks.Go(func() {
		done, err := a.Harness.Compact(a.ctx, instructions)
		if err != nil {
			s.fail(c, err)
			return
		}
		s.done(c, func(dst []byte) []byte { return record.AppendCompacted(dst, done) })
	})
}
