package bedrock_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net/http"
	"net/http/httptest"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/llm/bedrock"
)

func Example() {
	// In place of the service: what it would answer.
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
		for _, e := range [][2]string{
			{"messageStart", `{"role":"assistant"}`},
			{"contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"Hello "}}`},
			{"contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"there.\n"}}`},
			{"contentBlockStop", `{"contentBlockIndex":0}`},
			{"messageStop", `{"stopReason":"end_turn"}`},
			{"metadata", `{"usage":{"inputTokens":9,"outputTokens":3}}`},
		} {
			w.Write(frame(e[0], e[1]))
		}
	}))
	defer service.Close()

	api := bedrock.New(bedrock.Config{Version: "1.0.0", Client: service.Client()})
	model := &llm.Model{
		ID: "anthropic.claude-sonnet-4-5-20250929-v1:0", API: bedrock.ID, Provider: "amazon-bedrock", BaseURL: service.URL,
		Input: []string{"text"}, ContextWindow: 200_000, MaxTokens: 8000,
	}
	stream, err := api.Stream(context.Background(), model, &llm.Request{
		Messages: llm.Fold("You are terse.", nil, []llm.Message{llm.UserText("Hello", 1)}),
		Options: llm.Options{
			Env: map[string]string{"AWS_REGION": "us-east-1", "AWS_BEARER_TOKEN_BEDROCK": "key"}, // or AWS_PROFILE, …
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for ev := range stream.Events() {
		switch ev.Type {
		case llm.EventTextDelta:
			fmt.Print(ev.Delta)
		case llm.EventError:
			fmt.Println(ev.Message.ErrorMessage)
		case llm.EventDone:
			fmt.Println("done:", ev.Message.StopReason)
		}
	}
	// Output:
	// Hello there.
	// done: stop
}

// frame is an event as the service sends it.
func frame(event, payload string) []byte {
	header := func(name, value string) []byte {
		b := append([]byte{byte(len(name))}, name...)
		b = binary.BigEndian.AppendUint16(append(b, 7), uint16(len(value)))
		return append(b, value...)
	}
	headers := append(header(":event-type", event), header(":message-type", "event")...)
	b := binary.BigEndian.AppendUint32(nil, uint32(16+len(headers)+len(payload)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(headers)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, headers...), payload...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}
