package transcript_test

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/transcript"
)

// A run was cut off between a call and its result; the next request still goes.
func Example() {
	model := &llm.Model{ID: "m", API: "my-format", Provider: "acme", Input: []string{"text"}}
	history := []llm.Message{
		llm.UserText("list the files", 1),
		&llm.Assistant{Content: []llm.Block{&llm.ToolCall{ID: "1", Name: "ls", Arguments: jsontext.Value("{}")}}},
		llm.UserText("are you there?", 2),
	}

	type encoded struct{ json []byte }
	var memo llm.Memo // of the conversation; a request carries it
	request := func(messages []llm.Message) {
		t := transcript.HistoryOf[encoded](&memo, model.Ref()).Build(messages, &transcript.Rules{Model: model})
		defer t.Done()
		made := 0
		for i := range t.Items {
			if it := &t.Items[i]; it.Wire.json == nil {
				it.Wire.json = it.Message.AppendJSON(nil)
				made++
			}
		}
		fmt.Println(len(t.Items), "messages,", made, "encoded")
	}
	request(history)
	request(append(history, &llm.Assistant{Content: []llm.Block{&llm.Text{Text: "Yes."}}}, llm.UserText("good", 3)))
	// Output:
	// 4 messages, 4 encoded
	// 6 messages, 2 encoded
}
