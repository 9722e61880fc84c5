package replay_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/completions"
	"github.com/pinch-agent/pinch/llm/replay"
)

// A program is run once with a Recorder around its wire formats. Its test then
// plays the file, without a key and without the service.
func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "greeting.jsonl")

	// Once: ask the service, here one that says good morning.
	service := &http.Client{Transport: goodMorning{}}
	rec, err := replay.Create(file, replay.Options{Client: service})
	if err != nil {
		panic(err)
	}
	recorded := llm.NewRegistry(rec.Wrap(completions.New(completions.Config{})))
	model := &llm.Model{ID: "m", API: completions.ID, Provider: "p", BaseURL: "https://p.example/v1", MaxTokens: 100}
	ask(recorded, model, "a-secret-key")
	if err := rec.Close(); err != nil {
		panic(err)
	}

	// In the test.
	playback, err := replay.Open(file)
	if err != nil {
		panic(err)
	}
	registry := llm.NewRegistry(completions.New(completions.Config{}))
	registry.Register(playback.API(registry.Stream))
	ask(registry, playback.Model("greeting"), "")
	fmt.Println(playback.Left(), "requests left")
	// Output:
	// p/m: Good morning.
	// p/m: Good morning.
	// 0 requests left
}

func ask(registry *llm.Registry, m *llm.Model, key string) {
	stream, err := registry.Stream(context.Background(), m, &llm.Request{
		Messages: []llm.Message{&llm.User{Content: llm.Plain("Hello?")}},
		Options:  llm.Options{APIKey: key},
	})
	if err != nil {
		panic(err)
	}
	answer := stream.Result()
	fmt.Printf("%s/%s: %s\n", answer.Provider, answer.Model, answer.Content[0].(*llm.Text).Text)
}
