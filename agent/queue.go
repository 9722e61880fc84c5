package agent

// QueueMode says how many messages leave a queue when a run asks for some.
type QueueMode string

// The queue modes. The zero value is OneAtATime.
const (
	OneAtATime QueueMode = "one-at-a-time" // the oldest, so that each gets an answer of its own
	All        QueueMode = "all"           // everything that waits
)

// queue holds messages that wait for a run. Its owner guards it.
type queue struct {
	mode     QueueMode
	messages []Message
}

// next is what drain would take.
func (q *queue) next() []Message {
	if q.mode != All && len(q.messages) > 1 {
		return q.messages[:1:1]
	}
	return q.messages[:len(q.messages):len(q.messages)]
}

func (q *queue) drain() []Message {
	out := q.next()
	if len(out) == len(q.messages) {
		q.messages = nil // the list belongs to the run now
	} else {
		q.messages = q.messages[len(out):]
	}
	return out
}
