package llm

// AnswerError says that an answer failed or was aborted. The answer keeps what
// had arrived of it.
type AnswerError struct {
	Reason  StopReason // StopError or StopAborted; "" when there is no answer at all
	Message string     // of the provider, or of what ended the request
}

func (e *AnswerError) Error() string {
	switch {
	case e.Message != "":
		return e.Message
	case e.Reason == StopAborted:
		return "the answer was aborted"
	case e.Reason == StopError:
		return "the answer failed"
	}
	return "there is no answer"
}

// Err is an *AnswerError when the answer failed or was aborted, and also when m
// is nil, so that a caller need not look at that first. It is nil for an answer
// that was cut at the output limit, see StopLength.
func (m *Assistant) Err() error {
	switch {
	case m == nil:
		return &AnswerError{}
	case m.StopReason == StopError || m.StopReason == StopAborted:
		return &AnswerError{Reason: m.StopReason, Message: m.ErrorMessage}
	}
	return nil
}

// Text joins the text blocks of the answer: what it says, without thinking and
// calls. It is "" for a nil m.
func (m *Assistant) Text() string {
	if m == nil {
		return ""
	}
	return TextOf(m.Content, "")
}

// Text joins the text blocks of the message: what it says, in either form of its
// content.
func (m *User) Text() string { return m.Content.Text + TextOf(m.Content.Blocks, "") }

// Text joins the text blocks of the result.
func (m *ToolResult) Text() string { return TextOf(m.Content, "") }
