package harness

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
)

// queue holds messages that wait for the model. What a run took stays known
// until it is in the transcript: a person sees its text until its
// message_start, and it comes back when the run ends before it was said.
type queue struct {
	waiting []agent.Message
	taken   []agent.Message
	shown   int // of taken, those whose message_start was told
}

func (q *queue) add(m agent.Message) { q.waiting = append(q.waiting, m) }

// take gives what one poll delivers.
func (q *queue) take(mode QueueMode) []agent.Message {
	n := min(1, len(q.waiting))
	if mode == All {
		n = len(q.waiting)
	}
	out := slices.Clone(q.waiting[:n])
	q.taken = append(q.taken, q.waiting[:n]...)
	q.waiting = slices.Delete(q.waiting, 0, n)
	return out
}

// show takes m off the texts that people see and reports whether it was there.
func (q *queue) show(m agent.Message) bool {
	i := slices.Index(q.taken, m)
	if i < q.shown {
		return false // not of this queue, or shown already
	}
	q.taken[q.shown], q.taken[i] = q.taken[i], q.taken[q.shown]
	q.shown++
	return true
}

// said forgets m, which is in the transcript.
func (q *queue) said(m agent.Message) {
	if i := slices.Index(q.taken, m); i >= 0 {
		q.taken = slices.Delete(q.taken, i, i+1)
		if i < q.shown {
			q.shown--
		}
	}
}

// restore puts what was taken and not said back to the head of the queue, and
// reports whether there was anything.
func (q *queue) restore() bool {
	if len(q.taken) == 0 {
		return false
	}
	q.waiting = append(q.taken, q.waiting...)
	q.taken, q.shown = nil, 0
	return true
}

// clear drops what waits and returns it. What a run took will be said.
func (q *queue) clear() []agent.Message {
	out := q.waiting
	q.waiting = nil
	return out
}

// texts lists what people see as waiting.
func (q *queue) texts() []string { return append(texts(q.taken[q.shown:]), texts(q.waiting)...) }

func texts(messages []agent.Message) []string {
	out := make([]string, len(messages))
	for i, m := range messages {
		switch m := m.(type) {
		case *llm.User:
			out[i] = contentText(m.Content)
		case *session.Custom:
			out[i] = contentText(m.Content)
		}
	}
	return out
}

// Queued are the texts that wait in the queues.
type Queued struct{ Steering, FollowUp []string }

// QueueBehavior says how an input waits for a run that is active.
type QueueBehavior string

// The behaviours.
const (
	AsSteering QueueBehavior = "steer"
	AsFollowUp QueueBehavior = "followUp"
)

// Steer queues a message for the active run: it is delivered before the next
// request, after the tools of the current answer. While idle, and during Compact
// and NavigateTree, it waits for the next prompt and joins its first turn; with
// Options.Embedded it is refused then.
func (h *Harness) Steer(text string, images ...*llm.Image) error {
	return h.queueInput("steer", Input{Text: text, Images: images, Behavior: AsSteering})
}

// FollowUp queues a message that is delivered when nothing else is left to do.
// While idle it is as Steer.
func (h *Harness) FollowUp(text string, images ...*llm.Image) error {
	return h.queueInput("follow up", Input{Text: text, Images: images, Behavior: AsFollowUp})
}

// Queue is Steer or FollowUp, as in.Behavior says, for an input whose source is
// known.
func (h *Harness) Queue(in Input) error {
	const op = "queue"
	if in.Behavior != AsSteering && in.Behavior != AsFollowUp {
		return &Error{KindInvalidArgument, op, fmt.Errorf("the behaviour %q is neither %s nor %s", in.Behavior, AsSteering, AsFollowUp)}
	}
	return h.queueInput(op, in)
}

// SteerMessages is Steer with messages as they are, such as *session.Custom.
func (h *Harness) SteerMessages(messages ...agent.Message) error {
	return h.enqueue("steer", &h.steering, messages)
}

// FollowUpMessages is FollowUp with messages as they are.
func (h *Harness) FollowUpMessages(messages ...agent.Message) error {
	return h.enqueue("follow up", &h.followUp, messages)
}

// queueInput takes an input through the hooks and into its queue.
func (h *Harness) queueInput(op string, in Input) error {
	h.mu.Lock()
	ctx := h.life
	err := h.mayQueue(op)
	if h.run != nil {
		ctx = h.run.ctx
	}
	h.mu.Unlock()
	if err != nil {
		return err
	}
	in, handled, err := h.input(ctx, op, in)
	if err != nil {
		return err
	}
	if handled {
		in.accepted(InputHandled)
		return nil
	}
	m, err := h.userMessage(op, in.Text, in.Images)
	if err != nil {
		return err
	}
	err = h.enqueue(op, h.queueFor(in.Behavior), []agent.Message{m})
	if err == nil {
		in.accepted(InputQueued)
	}
	return err
}

func (h *Harness) queueFor(b QueueBehavior) *queue {
	if b == AsFollowUp {
		return &h.followUp
	}
	return &h.steering
}

// mayQueue refuses messages for a run that there is not; h.mu is held.
func (h *Harness) mayQueue(op string) error {
	switch {
	case h.closed:
		return closedError(op)
	case h.opts.Embedded && (h.run == nil || h.run.over || h.run.structural()):
		return &Error{KindInvalidState, op, errors.New("no run is active: use Prompt or NextTurn")}
	}
	return nil
}

func (h *Harness) enqueue(op string, q *queue, messages []agent.Message) error {
	if err := checkMessages(op, messages); err != nil {
		return err
	}
	h.mu.Lock()
	if err := h.mayQueue(op); err != nil {
		h.mu.Unlock()
		return err
	}
	for _, m := range messages {
		q.add(m)
	}
	h.postQueues()
	h.mu.Unlock()
	h.deliver()
	return nil
}

// ClearQueues empties both queues and returns their texts, so that a person can
// change them. A message that is just being delivered stays: it is said.
func (h *Harness) ClearQueues() Queued {
	h.mu.Lock()
	q := Queued{Steering: texts(h.steering.clear()), FollowUp: texts(h.followUp.clear())}
	h.postQueues()
	h.mu.Unlock()
	h.deliver()
	return q
}

// Queued returns the texts that wait.
func (h *Harness) Queued() Queued {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Queued{Steering: h.steering.texts(), FollowUp: h.followUp.texts()}
}

// NextTurn keeps messages for the next prompt, which they precede.
func (h *Harness) NextTurn(messages ...agent.Message) error {
	const op = "next turn"
	if err := checkMessages(op, messages); err != nil {
		return err
	}
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return closedError(op)
	}
	h.nextTurn = append(h.nextTurn, messages...)
	if h.opts.Embedded {
		h.postQueues()
	}
	h.mu.Unlock()
	h.deliver()
	return nil
}

// postQueues tells what waits; h.mu is held. To a person a message waits until
// it is said, to a program until a run takes it.
func (h *Harness) postQueues() {
	ev := Event{Event: agent.Event{Type: QueueUpdate}}
	if h.opts.Embedded {
		ev.Steering, ev.FollowUp, ev.NextTurn = texts(h.steering.waiting), texts(h.followUp.waiting), texts(h.nextTurn)
	} else {
		ev.Steering, ev.FollowUp = h.steering.texts(), h.followUp.texts()
	}
	h.post(ev)
}

// SetSteeringMode changes how much of the steering queue one poll delivers; ""
// is OneAtATime.
func (h *Harness) SetSteeringMode(m QueueMode) error {
	return h.setMode("set steering mode", &h.steeringMode, m)
}

// SetFollowUpMode is SetSteeringMode for follow-ups.
func (h *Harness) SetFollowUpMode(m QueueMode) error {
	return h.setMode("set follow-up mode", &h.followUpMode, m)
}

func (h *Harness) setMode(op string, mode *QueueMode, m QueueMode) error {
	switch m {
	case "":
		m = OneAtATime
	case OneAtATime, All:
	default:
		return &Error{KindInvalidArgument, op, fmt.Errorf("the mode %q is neither %s nor %s", m, OneAtATime, All)}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	*mode = m
	return nil
}

// QueueModes are the modes in force.
func (h *Harness) QueueModes() (steering, followUp QueueMode) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return cmp.Or(h.steeringMode, OneAtATime), cmp.Or(h.followUpMode, OneAtATime)
}

// userMessage is what a person said, rewritten as Options.Expand wants it.
func (h *Harness) userMessage(op, text string, images []*llm.Image) (*llm.User, error) {
	if h.opts.Expand != nil {
		err := guarded(op, func() error {
			text = h.opts.Expand(text)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	m := h.said(text, images)
	return m, checkMessages(op, []agent.Message{m})
}

func (h *Harness) said(text string, images []*llm.Image) *llm.User {
	blocks := []llm.Block{&llm.Text{Text: text}}
	for _, img := range images {
		blocks = append(blocks, img)
	}
	return &llm.User{Content: llm.Content{Blocks: blocks}, Timestamp: h.now().UnixMilli()}
}

// pollSteering takes what the next turn of r says. When its prompts came from that queue,
// the first poll gives nothing, so that one message a turn stays one.
func (h *Harness) pollSteering(r *run) []agent.Message {
	h.mu.Lock()
	if r.primed {
		r.primed = false
		h.mu.Unlock()
		return nil
	}
	taken := h.steering.take(h.steeringMode)
	h.mu.Unlock()
	return h.drained(r, &h.steering, taken)
}

func (h *Harness) pollFollowUp(r *run) []agent.Message {
	h.mu.Lock()
	if r.fault != nil { // the run is about to end
		h.mu.Unlock()
		return nil
	}
	taken := h.followUp.take(h.followUpMode)
	h.mu.Unlock()
	return h.drained(r, &h.followUp, taken)
}

// drained tells a program that messages left their queue. When a listener fails
// at that they return to its head, and the run ends at its next event.
func (h *Harness) drained(r *run, q *queue, taken []agent.Message) []agent.Message {
	if len(taken) == 0 || !h.opts.Embedded {
		return taken
	}
	h.mu.Lock()
	h.postQueues()
	h.mu.Unlock()
	if err := h.told(r.ctx, r); err != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		q.restore()
		h.postQueues()
		r.fault = err
		return nil
	}
	return taken
}

// takeQueued takes the prompts of a further run: steering, else follow-ups;
// h.mu is held.
func (h *Harness) takeQueued(r *run) []agent.Message {
	queued := h.steering.take(h.steeringMode)
	if len(queued) > 0 {
		r.primed = true
	} else {
		queued = h.followUp.take(h.followUpMode)
	}
	if len(queued) > 0 && h.opts.Embedded {
		h.postQueues()
	}
	return queued
}

func closedError(op string) error {
	return &Error{KindInvalidState, op, errors.New("the harness is closed")}
}
