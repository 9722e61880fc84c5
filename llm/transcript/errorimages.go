package transcript

import "github.com/pinch-agent/pinch/llm"

// Claude takes no pictures in the result of a call that failed. They follow all
// results of the message instead, and the model is told so at both places.

// ImageAfterResults stands for each run of pictures in such a result.
const ImageAfterResults = "(image attached after the tool results)"

// ErrorImagesTitle is the text in front of the pictures of such a result.
func ErrorImagesTitle(m *llm.ToolResult) string {
	return "Images from the error result of tool call " + m.ToolCallID + " (" + m.ToolName + "):"
}
