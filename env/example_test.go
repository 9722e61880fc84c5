//go:build unix

package env_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/pinch-agent/pinch/env"
)

func ExampleLocal_Exec() {
	e := &env.Local{Dir: os.TempDir(), Hide: []string{"ANTHROPIC_API_KEY"}}
	exit, err := e.Exec(context.Background(), env.Command{
		Line:    "echo hello; exit 3",
		Timeout: time.Minute,
		Output:  os.Stdout,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("exit status", exit.Code)
	// Output:
	// hello
	// exit status 3
}
