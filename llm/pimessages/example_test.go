package pimessages_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/pimessages"
)

// The backend says which model answered and what it cost.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range []string{
			`{"type":"start"}`,
			`{"type":"text_start","contentIndex":0}`,
			`{"type":"text_delta","contentIndex":0,"delta":"At noon."}`,
			`{"type":"text_end","contentIndex":0,"content":"At noon."}`,
			`{"type":"done","reason":"stop","usage":{"input":9,"output":4,"totalTokens":13,"cost":{"total":0.25}},"responseModel":"small-2"}`,
		} {
			io.WriteString(w, "data: "+event+"\n\n")
		}
	}))
	defer server.Close()

	model := &llm.Model{ID: "auto", API: pimessages.ID, Provider: "radius", BaseURL: server.URL + "/v1", Input: []string{"text"}}
	stream, err := pimessages.New(pimessages.Config{}).Stream(context.Background(), model, &llm.Request{
		Messages: llm.Fold("Answer in one line.", nil, []llm.Message{llm.UserText("When is high water?", 0)}),
		Options:  llm.Options{APIKey: "key"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	m := stream.Result()
	fmt.Printf("%s (%s, $%.2f)\n", llm.TextOf(m.Content, ""), m.ResponseModel, m.Usage.Cost.Total)
	// Output: At noon. (small-2, $0.25)
}
