package harness_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// programs are what the test binary does instead of testing when the variable of
// that name is set.
var programs = map[string]func(value string){}

func TestMain(m *testing.M) {
	for name, run := range programs {
		if value, ok := os.LookupEnv(name); ok {
			run(value)
			return
		}
	}
	goleak.VerifyTestMain(m)
}
