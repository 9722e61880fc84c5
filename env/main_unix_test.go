//go:build unix

package env

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// UnprivilegedEnv makes the test binary give up the rights of the superuser.
const UnprivilegedEnv = "PINCH_TEST_UNPRIVILEGED"

func TestMain(m *testing.M) {
	if os.Getenv(UnprivilegedEnv) != "" {
		if err := errors.Join(syscall.Setgid(65534), syscall.Setuid(65534)); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}
