package agent

import (
	"maps"
	"slices"

	"github.com/pinch-agent/pinch/llm"
)

// ask sends the transcript to the model and tells its answer as it arrives.
// An error means that there is no answer, not even a failed one.
func (r *run) ask() (*llm.Assistant, error) {
	req, err := r.request()
	if err != nil {
		return nil, err
	}
	stream, err := r.cfg.Stream(r.ctx, r.model, req)
	if err != nil {
		return nil, err
	}
	defer stream.Close()

	// One event for the whole answer: an update must not allocate.
	var ev llm.Event
	var partial *llm.Assistant
	for {
		var ok bool
		if ev, ok = stream.Next(); !ok {
			break
		}
		switch ev.Type {
		case llm.EventDone, llm.EventError:
			if ev.Message != nil {
				return r.answered(ev.Message, partial != nil)
			}
		case llm.EventStart:
			partial = ev.Partial
			if err := r.emit(Event{Type: MessageStart, Message: partial}); err != nil {
				return nil, err
			}
		default:
			if partial == nil {
				continue
			}
			if err := r.emit(Event{Type: MessageUpdate, Message: ev.Partial, Update: &ev}); err != nil {
				return nil, err
			}
		}
	}
	return r.answered(r.cutShort(partial), partial != nil)
}

// answered closes an answer with its final message. One that never started
// starts and ends with it.
func (r *run) answered(msg *llm.Assistant, started bool) (*llm.Assistant, error) {
	msg.ThinkingLevel = r.level
	if !started {
		if err := r.emit(Event{Type: MessageStart, Message: msg}); err != nil {
			return nil, err
		}
	}
	return msg, r.emit(Event{Type: MessageEnd, Message: msg})
}

// cutShort is the final message of a stream that ended without one.
func (r *run) cutShort(partial *llm.Assistant) *llm.Assistant {
	var m *llm.Assistant
	if partial != nil {
		m = partial.Snapshot()
	} else {
		m = blankAnswer(r.model, r.cfg.millis())
	}
	m.StopReason, m.ErrorMessage = llm.StopError, "the stream ended without a final message"
	if r.ctx.Err() != nil {
		m.StopReason, m.ErrorMessage = llm.StopAborted, "Request was aborted"
	}
	return m
}

// blankAnswer is an answer of m that says nothing.
func blankAnswer(m *llm.Model, timestamp int64) *llm.Assistant {
	return &llm.Assistant{
		Content: []llm.Block{},
		API:     m.API, Provider: m.Provider, Model: m.ID,
		Timestamp: timestamp,
	}
}

func (r *run) request() (*llm.Request, error) {
	req := &llm.Request{Options: r.cfg.Options}
	if r.cfg.TransformContext == nil && r.cfg.ToLLM == nil {
		req.Messages = r.known()
	} else {
		messages := slices.Clip(r.messages)
		if r.cfg.TransformContext != nil {
			var err error
			if messages, err = r.cfg.TransformContext(r.ctx, messages); err != nil {
				return nil, err
			}
		}
		if r.cfg.ToLLM != nil {
			req.Messages = r.cfg.ToLLM(messages)
		} else {
			req.Messages = appendKnown(make([]llm.Message, 0, len(messages)), messages)
		}
	}
	req.Reasoning = r.level
	if r.cfg.Credentials != nil {
		key, headers, err := r.cfg.Credentials(r.ctx, r.model)
		if err != nil {
			return nil, err
		}
		if key != "" {
			req.APIKey = key
		}
		if len(headers) > 0 {
			merged := maps.Clone(req.Headers)
			if merged == nil {
				merged = make(map[string]*string, len(headers))
			}
			maps.Copy(merged, headers)
			req.Headers = merged
		}
	}
	return req, nil
}

// known is the transcript without messages that no model knows. It grows with
// the transcript, so that a request adds only what is new.
func (r *run) known() []llm.Message {
	r.wire = appendKnown(r.wire, r.messages[r.wired:])
	r.wired = len(r.messages)
	return slices.Clip(r.wire)
}

func appendKnown(dst []llm.Message, messages []Message) []llm.Message {
	for _, m := range messages {
		if m, ok := m.(llm.Message); ok {
			dst = append(dst, m)
		}
	}
	return dst
}
