package harness

import (
	"errors"
	"slices"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/llm"
)

// queue holds messages that wait for the model. What a run took stays known
// until it is in the transcript: a person sees its text until its
// message_start, and it comes back when the run ends before it was said.
type queue struct {
	waiting []*llm.User
	taken   []*llm.User
	shown   int // of taken, those whose message_start was told
}

func (q *queue) add(m *llm.User) { q.waiting = append(q.waiting, m) }

// take gives what one poll delivers.
func (q *queue) take(mode QueueMode) []agent.Message {
	n := min(1, len(q.waiting))
	if mode == All {
		n = len(q.waiting)
	}
	var out []agent.Message
	for _, m := range q.waiting[:n] {
		out = append(out, m)
	}
	q.taken = append(q.taken, q.waiting[:n]...)
	q.waiting = slices.Delete(q.waiting, 0, n)
	return out
}

// show takes m off the texts that people see and reports whether it was there.
func (q *queue) show(m *llm.User) bool {
	i := slices.Index(q.taken, m)
	if i < q.shown {
		return false // not of this queue, or shown already
	}
	q.taken[q.shown], q.taken[i] = q.taken[i], q.taken[q.shown]
	q.shown++
	return true
}

// said forgets m, which is in the transcript.
func (q *queue) said(m *llm.User) {
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

// clear drops what waits and returns its texts. What a run took will be said.
func (q *queue) clear() []string {
	out := texts(q.waiting)
	q.waiting = nil
	return out
}

// texts lists what people see as waiting.
func (q *queue) texts() []string { return append(texts(q.taken[q.shown:]), texts(q.waiting)...) }

func texts(messages []*llm.User) []string {
	out := make([]string, len(messages))
	for i, m := range messages {
		out[i] = llm.TextOf(m.Content.Blocks, "")
	}
	return out
}

// Queued are the texts that wait in the queues.
type Queued struct{ Steering, FollowUp []string }

// Steer queues a message for the active run: it is delivered before the next
// request, after the tools of the current answer. While idle it waits for the
// next prompt and joins its first turn.
func (h *Harness) Steer(text string, images ...*llm.Image) error {
	return h.enqueue("steer", &h.steering, h.userMessage(text, images))
}

// FollowUp queues a message that is delivered when nothing else is left to do.
func (h *Harness) FollowUp(text string, images ...*llm.Image) error {
	return h.enqueue("follow up", &h.followUp, h.userMessage(text, images))
}

func (h *Harness) enqueue(op string, q *queue, m *llm.User) error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return closedError(op)
	}
	q.add(m)
	h.postQueues()
	h.mu.Unlock()
	h.deliver()
	return nil
}

// ClearQueues empties both queues and returns their texts, so that a person can
// change them. A message that is just being delivered stays: it is said.
func (h *Harness) ClearQueues() Queued {
	h.mu.Lock()
	q := Queued{Steering: h.steering.clear(), FollowUp: h.followUp.clear()}
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
	defer h.mu.Unlock()
	if h.closed {
		return closedError(op)
	}
	h.nextTurn = append(h.nextTurn, messages...)
	return nil
}

// postQueues tells what waits; h.mu is held.
func (h *Harness) postQueues() {
	h.post(Event{
		Event:    agent.Event{Type: QueueUpdate},
		Steering: h.steering.texts(),
		FollowUp: h.followUp.texts(),
	})
}

func (h *Harness) userMessage(text string, images []*llm.Image) *llm.User {
	if h.opts.Expand != nil {
		text = h.opts.Expand(text)
	}
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
	defer h.mu.Unlock()
	if r.primed {
		r.primed = false
		return nil
	}
	return h.steering.take(h.opts.SteeringMode)
}

func (h *Harness) pollFollowUp() []agent.Message {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.followUp.take(h.opts.FollowUpMode)
}

// takeQueued takes the prompts of a further run: steering, else follow-ups;
// h.mu is held.
func (h *Harness) takeQueued(r *run) []agent.Message {
	if queued := h.steering.take(h.opts.SteeringMode); len(queued) > 0 {
		r.primed = true
		return queued
	}
	return h.followUp.take(h.opts.FollowUpMode)
}

func closedError(op string) error {
	return &Error{KindInvalidState, op, errors.New("the harness is closed")}
}
