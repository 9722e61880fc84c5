package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/pinch-agent/pinch/internal/cli/narrate"
	"github.com/pinch-agent/pinch/internal/demo"
	"github.com/pinch-agent/pinch/llm"
)

const demoPrompt = "The tests of this Go module fail. Find out why, repair the code, and show that they pass."

const demoText = `For prompts of your own: pinch --model demo/echo -p, or demo/FILE.json with a
scenario of your own.
`

// runDemo lets the scripted model repair the sample module, on the same way
// that every run takes, and checks the outcome for itself.
func runDemo(ctx context.Context, p *program, c *command, words []string) error {
	if _, ok, err := c.parseOptions(p, words); !ok {
		return err
	}
	goTool, err := exec.LookPath("go")
	if err != nil {
		return errors.New("The demo runs the tests of a Go module and needs the go command on PATH: install Go, or try pinch --model demo/echo -p hello")
	}
	dir, err := os.MkdirTemp("", "pinch-demo-")
	if err != nil {
		return fmt.Errorf("The demo needs a temporary folder: %w", err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	module := filepath.Join(dir, "stats")
	if err := os.Mkdir(module, 0o755); err != nil {
		return err
	}
	if err := demo.WriteSample(module); err != nil {
		return err
	}
	// The person's own settings, keys and context files stay out of it.
	inside := *p
	inside.cwd = module
	inside.getenv = func(name string) string {
		switch name {
		case "PINCH_AGENT_DIR":
			return filepath.Join(dir, "agent")
		case "PINCH_CODING_AGENT_SESSION_DIR", "PI_CODING_AGENT_SESSION_DIR":
			return ""
		}
		return p.getenv(name)
	}
	a := &Args{Model: demoProvider + "/fix-test", NoContextFiles: true, Approve: new(false), NoSkills: true, NoTemplates: true}
	b, err := inside.prepare(a)
	if err != nil {
		return err
	}
	defer b.close()
	r, err := b.start(ctx)
	if err != nil {
		return err
	}
	defer r.close()
	fmt.Fprintf(p.out, "A scripted model, no network, a small Go module in %s\n\n> %s\n\n", module, demoPrompt)
	n := narrate.New(p.out)
	defer r.harness.Subscribe(n.Event)()
	answer, err := r.harness.Prompt(ctx, demoPrompt)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return plain(err)
	}
	n.Summary(r.harness.Session().File())
	switch {
	case answer == nil:
		return errors.New("The scripted model said nothing")
	case answer.StopReason != llm.StopStop:
		return fmt.Errorf("The scripted model did not finish: %s", answer.ErrorMessage)
	}
	return checkSample(ctx, p, goTool, module)
}

// checkSample runs the sample's tests, whatever the model says about them.
func checkSample(ctx context.Context, p *program, goTool, module string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, goTool, "test", "./...")
	cmd.Dir = module
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		p.errs.Write(out)
		return fmt.Errorf("The sample's tests do not pass (%w); it is in %s", err, module)
	}
	fmt.Fprintln(p.out, "Checked: the sample's tests pass.")
	return nil
}
