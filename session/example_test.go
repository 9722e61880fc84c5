package session_test

import (
	"fmt"

	"github.com/pinch-agent/pinch/llm"
	"github.com/pinch-agent/pinch/session"
	"github.com/pinch-agent/pinch/session/memory"
)

func Example() {
	s, err := memory.Open(session.Options{CWD: "/srv/demo"})
	if err != nil {
		panic(err)
	}
	defer s.Close()
	question, _ := s.AppendMessage(llm.UserText("Which colour?", 1))
	s.AppendMessage(&llm.Assistant{Content: []llm.Block{&llm.Text{Text: "Red."}}, Timestamp: 2})

	// Ask differently: back to the place before the question.
	target, _ := s.Target(question.ID)
	s.Branch(target.Leaf)
	s.AppendMessage(llm.UserText(target.Text+" Not red.", 3))

	for _, m := range session.ToLLM(s.Context().Messages) {
		fmt.Println(m.Role(), llm.TextOf(m.(*llm.User).Content.Blocks, ""))
	}
	fmt.Println(len(s.Tree()), "trees,", len(s.Entries()), "entries")
	// Output:
	// user Which colour? Not red.
	// 2 trees, 3 entries
}
