package google_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/google"
)

// A model of the Gemini API, asked to think a little.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, `data: {"candidates":[{"content":{"parts":[{"text":"Tides.","thought":true}]}}]}`+"\n\n")
		io.WriteString(w, `data: {"candidates":[{"content":{"parts":[{"text":"At noon."}]},"finishReason":"STOP"}]}`+"\n\n")
	}))
	defer server.Close()

	model := &llm.Model{
		ID: "gemini-2.5-flash", API: google.ID, Provider: "google", BaseURL: server.URL + "/v1beta",
		Reasoning: true, Input: []string{"text", "image"}, ContextWindow: 1_000_000, MaxTokens: 65_000,
	}
	api := google.New(google.Config{})
	stream, err := api.Stream(context.Background(), model, &llm.Request{
		Messages: []llm.Message{llm.UserText("When is high water?", 0)},
		Options:  llm.Options{APIKey: "key", Reasoning: llm.LevelLow},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for ev := range stream.Events() {
		switch ev.Type {
		case llm.EventThinkingDelta:
			fmt.Printf("(%s) ", ev.Delta)
		case llm.EventTextDelta:
			fmt.Println(ev.Delta)
		case llm.EventError:
			fmt.Println(ev.Message.ErrorMessage)
		}
	}
	// Output: (Tides.) At noon.
}

// Vertex says what it lacks.
func ExampleNewVertex() {
	api := google.NewVertex(google.Config{Getenv: func(name string) string {
		return map[string]string{"GOOGLE_CLOUD_PROJECT": "my-project"}[name]
	}})
	model := &llm.Model{
		ID: "gemini-2.5-pro", API: google.VertexID, Provider: "google-vertex",
		BaseURL: "https://{location}-aiplatform.googleapis.com",
	}
	stream, err := api.Stream(context.Background(), model, &llm.Request{Messages: []llm.Message{llm.UserText("Hello", 0)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(stream.Result().ErrorMessage)
	// Output: Vertex AI requires a location. Set GOOGLE_CLOUD_LOCATION or pass location in options.
}

// The rules of a model follow from its id.
func ExampleRulesOf() {
	for _, id := range []string{"gemini-2.5-pro", "gemini-3-pro"} {
		r := google.RulesOf(id)
		fmt.Println(id, "level:", r.ThinkingLevel, "ids:", r.CallIDs)
	}
	// Output:
	// gemini-2.5-pro level: false ids: false
	// gemini-3-pro level: true ids: true
}
