package bedrock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// processTime bounds the run of a credential_process, which may ask its user.
const processTime = 2 * time.Minute

// process runs the command of a profile that prints credentials. Neither its
// output nor its complaints get into an error: both may hold secrets.
func (f *finder) process(ctx context.Context, command, name string) (keys, error) {
	fail := func(cause error) (keys, error) {
		return keys{}, &CredentialsError{Origin: profileOrigin(name), Cause: cause, Advice: "Run its credential_process by hand to see what is wrong"}
	}
	ctx, cancel := context.WithTimeout(ctx, processTime)
	defer cancel()
	c := shell(ctx, command)
	var out bounded
	c.Stdout = &out
	c.WaitDelay = 2 * time.Second
	if err := c.Run(); err != nil {
		var exit *exec.ExitError
		switch {
		case ctx.Err() != nil:
			return fail(fmt.Errorf("its credential_process was stopped: %w", context.Cause(ctx)))
		case errors.As(err, &exit):
			return fail(fmt.Errorf("its credential_process ends with status %d", exit.ExitCode()))
		}
		return fail(fmt.Errorf("its credential_process cannot be run: %w", err))
	}
	k, err := readKeys(out.Bytes(), profileOrigin(name))
	if err != nil {
		return fail(fmt.Errorf("its credential_process: %w", err))
	}
	return k, nil
}

// bounded keeps the first maxReply bytes that are written.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), maxReply-b.Len())])
	return len(p), nil
}
