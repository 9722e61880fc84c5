package responses_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/responses"
)

// A deployment of Azure OpenAI whose name is not that of the model.
func ExampleNewAzure() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(r.URL, r.Header.Get("api-key"))
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, `data: {"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"msg_1","content":[{"type":"output_text","text":"Hello"}]}}

data: {"type":"response.completed","response":{"status":"completed"}}

`)
	}))
	defer server.Close()

	azure := responses.NewAzure(responses.Config{Version: "1.2.3"})
	m := &llm.Model{ID: "gpt-5", API: responses.AzureID, Provider: "azure", MaxTokens: 4096}
	stream := azure.StreamWith(context.Background(), m, &llm.Request{
		Messages: llm.Fold("You are terse.", nil, []llm.Message{llm.UserText("Hi", 1)}),
		Options:  llm.Options{APIKey: "secret"},
	}, responses.AzureOptions{BaseURL: server.URL + "/openai/v1", Deployment: "team-gpt-5"})
	answer := stream.Result()
	fmt.Println(answer.Model, llm.TextOf(answer.Content, ""))
	// Output:
	// /openai/v1/responses?api-version=v1 secret
	// gpt-5 Hello
}
