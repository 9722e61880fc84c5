// Package record writes the records of the JSON and RPC modes: what happens, one
// JSON object a line. It knows the form of events and how to write them without
// stalling a run that a person ends; it knows no commands.
package record

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/agent"
	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/internal/jsonwire"
	"github.com/pinch-agent/pinch/llm"
)

// Wire is a form of the records of an answer on its way.
type Wire string

// The forms. Current, the zero value, says what is new: a delta costs what its
// text costs, however long the answer has become. Legacy is for clients of older
// programs and repeats the whole answer so far in each record, twice.
const (
	Current Wire = ""
	Legacy  Wire = "legacy"
)

// AppendEvent appends ev as one record, without a line end. It returns dst
// unchanged for a step of a model's stream that is no news to a client: the
// start and the end, which message_start and message_end tell.
func (w Wire) AppendEvent(dst []byte, ev *harness.Event) []byte {
	start := len(dst)
	dst = append(dst, `{"type":"`...)
	dst = append(dst, ev.Type...)
	dst = append(dst, '"')
	switch ev.Type {
	case agent.AgentEnd:
		dst = append(dst, `,"messages":`...)
		dst = jsonwire.AppendArray(dst, ev.Messages, agent.Message.AppendJSON)
		dst = append(dst, `,"willRetry":`...)
		dst = strconv.AppendBool(dst, ev.WillRetry)
	case agent.MessageStart, agent.MessageEnd:
		dst = append(dst, `,"message":`...)
		dst = ev.Message.AppendJSON(dst)
	case agent.MessageUpdate:
		n := len(dst)
		if dst = w.appendUpdate(dst, ev); len(dst) == n {
			return dst[:start]
		}
	case agent.TurnEnd:
		dst = append(dst, `,"message":`...)
		dst = ev.Message.AppendJSON(dst)
		dst = append(dst, `,"toolResults":`...)
		dst = jsonwire.AppendArray(dst, ev.ToolResults, (*llm.ToolResult).AppendJSON)
	case agent.ToolExecutionStart, agent.ToolExecutionUpdate, agent.ToolExecutionEnd:
		dst = appendExecution(dst, ev)
	case harness.AgentSettled:
		dst = append(dst, `,"aborted":`...)
		dst = strconv.AppendBool(dst, ev.Aborted)
	case harness.QueueUpdate:
		dst = append(dst, `,"steering":`...)
		dst = jsonwire.AppendStrings(dst, ev.Steering)
		dst = append(dst, `,"followUp":`...)
		dst = jsonwire.AppendStrings(dst, ev.FollowUp)
	case harness.AutoRetryStart, harness.SummarizationRetryScheduled:
		dst = append(dst, `,"attempt":`...)
		dst = strconv.AppendInt(dst, int64(ev.Attempt), 10)
		dst = append(dst, `,"maxAttempts":`...)
		dst = strconv.AppendInt(dst, int64(ev.MaxAttempts), 10)
		dst = append(dst, `,"delayMs":`...)
		dst = strconv.AppendInt(dst, ev.DelayMs, 10)
		dst = append(dst, `,"errorMessage":`...)
		dst = jsonwire.AppendString(dst, ev.ErrorMessage)
	case harness.AutoRetryEnd:
		dst = append(dst, `,"success":`...)
		dst = strconv.AppendBool(dst, ev.Success)
		dst = append(dst, `,"attempt":`...)
		dst = strconv.AppendInt(dst, int64(ev.Attempt), 10)
		if !ev.Success {
			dst = append(dst, `,"finalError":`...)
			dst = jsonwire.AppendString(dst, ev.FinalError)
		}
	case harness.CompactionStart:
		dst = append(dst, `,"reason":`...)
		dst = jsonwire.AppendString(dst, ev.Reason)
	case harness.CompactionEnd:
		dst = append(dst, `,"reason":`...)
		dst = jsonwire.AppendString(dst, ev.Reason)
		if ev.Compacted != nil {
			dst = append(dst, `,"result":`...)
			dst = AppendCompacted(dst, ev.Compacted)
		}
		dst = append(dst, `,"aborted":`...)
		dst = strconv.AppendBool(dst, ev.Aborted)
		dst = append(dst, `,"willRetry":`...)
		dst = strconv.AppendBool(dst, ev.WillRetry)
		if ev.ErrorMessage != "" {
			dst = append(dst, `,"errorMessage":`...)
			dst = jsonwire.AppendString(dst, ev.ErrorMessage)
		}
	case harness.SummarizationRetryAttemptStart:
		dst = append(dst, `,"source":`...)
		dst = jsonwire.AppendString(dst, ev.Source)
		if ev.Reason != "" {
			dst = append(dst, `,"reason":`...)
			dst = jsonwire.AppendString(dst, ev.Reason)
		}
	case harness.EntryAppended:
		dst = append(dst, `,"entry":`...)
		dst = append(dst, ev.Entry.Raw()...)
	case harness.SessionInfoChanged:
		if ev.Name != "" {
			dst = append(dst, `,"name":`...)
			dst = jsonwire.AppendString(dst, ev.Name)
		}
	case harness.ThinkingLevelChanged:
		dst = append(dst, `,"level":`...)
		dst = jsonwire.AppendString(dst, ev.Level)
	}
	return append(dst, '}')
}

// AppendCompacted appends what a compaction did as a JSON object.
func AppendCompacted(dst []byte, c *harness.Compacted) []byte {
	dst = append(dst, `{"summary":`...)
	dst = jsonwire.AppendString(dst, c.Summary)
	dst = append(dst, `,"firstKeptEntryId":`...)
	dst = jsonwire.AppendString(dst, c.FirstKept)
	dst = append(dst, `,"tokensBefore":`...)
	dst = strconv.AppendInt(dst, c.TokensBefore, 10)
	dst = append(dst, `,"estimatedTokensAfter":`...)
	dst = strconv.AppendInt(dst, c.TokensAfter, 10)
	if c.Usage != nil {
		dst = append(dst, `,"usage":`...)
		dst = c.Usage.AppendJSON(dst)
	}
	if c.Details != nil {
		dst = append(dst, `,"details":`...)
		dst = appendValue(dst, c.Details)
	}
	return append(dst, '}')
}

// appendUpdate appends the members of a message_update, or nothing.
func (w Wire) appendUpdate(dst []byte, ev *harness.Event) []byte {
	n := len(dst)
	m, ok := ev.Message.(*llm.Assistant)
	if w == Current {
		dst = append(dst, `,"usage":`...)
		var usage llm.Usage
		if ok {
			usage = m.Usage
		}
		dst = usage.AppendJSON(dst)
	}
	u := ev.Update
	dst = append(dst, `,"assistantMessageEvent":{"type":"`...)
	dst = append(dst, u.Type.String()...)
	dst = append(dst, `","contentIndex":`...)
	dst = strconv.AppendInt(dst, int64(u.Index), 10)
	switch u.Type {
	case llm.EventTextStart, llm.EventThinkingStart:
	case llm.EventTextDelta, llm.EventThinkingDelta, llm.EventToolCallDelta:
		dst = append(dst, `,"delta":`...)
		dst = jsonwire.AppendString(dst, u.Delta)
	case llm.EventTextEnd, llm.EventThinkingEnd:
		dst = append(dst, `,"content":`...)
		dst = jsonwire.AppendString(dst, u.Text())
	case llm.EventToolCallStart:
		if c := u.ToolCall(); c != nil && w == Current {
			dst = append(dst, `,"id":`...)
			dst = jsonwire.AppendString(dst, c.ID)
			dst = append(dst, `,"toolName":`...)
			dst = jsonwire.AppendString(dst, c.Name)
		}
	case llm.EventToolCallEnd:
		if c := u.ToolCall(); c != nil {
			dst = append(dst, `,"toolCall":`...)
			dst = c.AppendJSON(dst)
		}
	default:
		return dst[:n]
	}
	if w == Legacy && ok {
		dst = append(dst, `,"partial":`...)
		at := len(dst)
		dst = appendPartial(dst, m)
		end := len(dst)
		dst = append(dst, `},"message":`...)
		return append(dst, dst[at:end]...)
	}
	return append(dst, '}')
}

// appendPartial appends an answer on its way as clients of older programs know
// it: nothing was pending there.
func appendPartial(dst []byte, m *llm.Assistant) []byte {
	shown := m.Snapshot()
	if shown.StopReason == llm.StopPending {
		shown.StopReason = llm.StopStop
	}
	return shown.AppendJSON(dst)
}

func appendExecution(dst []byte, ev *harness.Event) []byte {
	dst = append(dst, `,"toolCallId":`...)
	dst = jsonwire.AppendString(dst, ev.ToolCallID)
	dst = append(dst, `,"toolName":`...)
	dst = jsonwire.AppendString(dst, ev.ToolName)
	if ev.Type != agent.ToolExecutionEnd {
		dst = append(dst, `,"args":`...)
		dst = appendValue(dst, ev.Args)
	}
	switch ev.Type {
	case agent.ToolExecutionUpdate:
		dst = append(dst, `,"partialResult":`...)
		dst = appendResult(dst, ev.Result)
	case agent.ToolExecutionEnd:
		dst = append(dst, `,"result":`...)
		dst = appendResult(dst, ev.Result)
		dst = append(dst, `,"isError":`...)
		dst = strconv.AppendBool(dst, ev.IsError)
		if ev.DurationMs != nil {
			dst = append(dst, `,"durationMs":`...)
			dst = strconv.AppendInt(dst, *ev.DurationMs, 10)
		}
	}
	return dst
}

func appendResult(dst []byte, r *agent.Result) []byte {
	if r == nil {
		return append(dst, "null"...)
	}
	dst = append(dst, `{"content":`...)
	dst = llm.AppendBlocks(dst, r.Content)
	if r.Details != nil {
		dst = append(dst, `,"details":`...)
		dst = appendValue(dst, r.Details)
	}
	if r.StructuredContent != nil {
		dst = append(dst, `,"structuredContent":`...)
		dst = appendValue(dst, r.StructuredContent)
	}
	if r.Usage != nil {
		dst = append(dst, `,"usage":`...)
		dst = r.Usage.AppendJSON(dst)
	}
	// A tool that reports a failure of its own, such as a command's exit status,
	// says so in its result; an error result that the loop made does not.
	if r.IsError && r.StructuredContent != nil {
		dst = append(dst, `,"isError":true`...)
	}
	if r.Terminate {
		dst = append(dst, `,"terminate":true`...)
	}
	return append(dst, '}')
}

// appendValue appends a value that came from outside; a bad one must not break
// the record, so it becomes null.
func appendValue(dst []byte, v jsontext.Value) []byte {
	n := len(dst)
	dst, err := jsonwire.AppendCompact(dst, v)
	if err != nil {
		return append(dst[:n], "null"...)
	}
	return dst
}
