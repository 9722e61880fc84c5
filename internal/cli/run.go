package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/pinch-agent/pinch/harness"
	"github.com/pinch-agent/pinch/internal/cli/export"
	"github.com/pinch-agent/pinch/internal/cli/jsonmode"
	"github.com/pinch-agent/pinch/internal/cli/opening"
	"github.com/pinch-agent/pinch/internal/cli/print"
	"github.com/pinch-agent/pinch/internal/jsonwire"
)

// chooseMode is the mode of a start: rpc and json by --mode; else one shot when
// -p is given or a stream is no terminal; "" for the interactive mode.
func chooseMode(a *Args, inTerminal, outTerminal bool) Mode {
	switch {
	case a.Mode == ModeRPC || a.Mode == ModeJSON:
		return a.Mode
	case a.Print || !inTerminal || !outTerminal:
		return ModeText
	}
	return ""
}

// run does what a command line without a command word asks for.
func (p *program) run(ctx context.Context, a *Args) error {
	if len(a.Unknown) > 0 {
		f := a.Unknown[0]
		o := lookup("--" + f.Name)
		switch {
		case o == nil || f.Value == nil:
			return fmt.Errorf("Unknown option: --%s", f.Name)
		case o.takes == nothing:
			return fmt.Errorf("%s takes no value", o.long)
		}
		return fmt.Errorf("The value of %s is a word of its own: %s VALUE", o.long, o.long) // it may be a key
	}
	if a.ListModels != nil {
		c, _ := p.startCatalog(p.openCredentials())
		p.warnModelsFile(c)
		return listModels(p.out, c.Available(), *a.ListModels)
	}
	if a.Export != "" {
		return p.exportPage(ctx, a)
	}
	p.offerImport()
	mode := chooseMode(a, p.inTerminal, p.outTerminal)
	switch mode {
	case ModeRPC:
		return p.serve(ctx, a)
	case "":
		return errors.New("The interactive mode is not part of this version: pinch -p answers a prompt, pinch --mode json streams events, pinch demo shows a run")
	}
	stdin, err := p.readInput(ctx)
	if err != nil {
		return err
	}
	if err := checkBranch(a, !jsonwire.Blank(stdin) || len(a.Files)+len(a.Messages) > 0); err != nil {
		return err
	}
	b, err := p.prepare(a)
	if err != nil {
		return err
	}
	defer b.close()
	r, err := b.start(ctx)
	if err != nil {
		return err
	}
	defer r.close()
	files, err := opening.Files{Env: r.env, Read: r.read}.Load(ctx, p.files(a.Files))
	if err != nil {
		return err
	}
	prompts := opening.Prompts(stdin, files, a.Messages)
	cutOff := r.harness.Recovered()
	if len(prompts) == 0 && cutOff.CutOff && a.Branch == "" {
		prompts = []opening.Prompt{{Continue: true}}
	}
	if line := recovered(cutOff, len(prompts) > 0 && prompts[0].Continue); line != "" {
		p.warn("%s", line)
	}
	if len(prompts) == 0 && !a.Summarize && p.errTerminal { // for scripts it is nothing to do, as with pi
		p.warn("There is no prompt: write it behind -p, pipe it in, or name a file as @FILE")
	}
	if len(prompts) > 0 {
		if err := r.checkKey(ctx); err != nil {
			return err
		}
	}
	summary, err := r.goBack(ctx, a)
	if err != nil {
		return err
	}
	if len(prompts) == 0 && summary != "" && mode != ModeJSON {
		_, err := fmt.Fprintln(p.out, summary)
		return err
	}
	if mode == ModeJSON {
		return plain(jsonmode.Run(ctx, r.harness, prompts, a.Wire, p.out))
	}
	if status := print.Run(ctx, r.harness, prompts, p.out, p.errs); status != 0 {
		return exitError(status)
	}
	return nil
}

// exportPage writes the page of a session file, to the file that the first
// message names.
func (p *program) exportPage(ctx context.Context, a *Args) error {
	path := p.path(a.Export)
	if _, err := os.Stat(path); err != nil {
		if filepath.Ext(path) == "" { // rather an id
			return fmt.Errorf("File not found: %s. --export takes the file of a session; pinch sessions --json has the paths", path)
		}
		return fmt.Errorf("File not found: %s", path)
	}
	name := export.DefaultName(path)
	if len(a.Messages) > 0 && a.Messages[0] != "" {
		if name = a.Messages[0]; name[0] == '~' {
			name = p.path(name)
		}
	}
	if strings.EqualFold(filepath.Ext(name), ".jsonl") && p.path(name) != path {
		return fmt.Errorf("%s: a page is HTML; pinch sessions export writes a session as .jsonl", name)
	}
	if _, err := export.File(ctx, path, p.path(name), export.Options{}); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.out, "Exported to: %s\n", name)
	return err
}

// files makes the names of @files absolute: they are seen from here, wherever
// the session works. An empty name stays empty.
func (p *program) files(names []string) []string {
	var out []string
	for _, name := range names {
		if name != "" {
			name = p.path(name)
		}
		out = append(out, name)
	}
	return out
}

// plain is an error of the harness without the name of the operation, which
// says nothing to a person.
func plain(err error) error {
	if e, ok := errors.AsType[*harness.Error](err); ok {
		return e.Err
	}
	return err
}

// readInput is what is piped in, "" when the input is a terminal. It stops
// waiting when ctx ends.
func (p *program) readInput(ctx context.Context) (string, error) {
	if p.inTerminal {
		return "", nil
	}
	type input struct {
		b   []byte
		err error
	}
	got := make(chan input, 1)
	go func() {
		b, err := io.ReadAll(io.LimitReader(p.in, opening.MaxFile+1))
		got <- input{b, err}
	}()
	select {
	case in := <-got:
		// A closed descriptor is how some programs start others without input.
		if in.err != nil && !errors.Is(in.err, os.ErrClosed) && len(in.b) > 0 {
			return "", fmt.Errorf("Standard input could not be read: %w", in.err)
		}
		if len(in.b) > opening.MaxFile {
			return "", errors.New("Standard input is larger than 64 MiB: write it to a file, and let the model read parts of it")
		}
		return strings.ToValidUTF8(string(in.b), "\uFFFD"), nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// offerImport points a person who comes from pi to the import, once there is
// nothing of pinch's own.
func (p *program) offerImport() {
	if !p.errTerminal || p.home == "" || p.getenv("PINCH_AGENT_DIR") != "" || p.getenv("PI_CODING_AGENT_DIR") != "" {
		return
	}
	exists := func(name string) bool {
		_, err := os.Stat(filepath.Join(p.home, name))
		return err == nil
	}
	if !exists(".pinch") && exists(".pi") {
		fmt.Fprintln(p.errs, "Found ~/.pi: \"pinch import pi\" takes over its settings, keys, models and sessions (--link shares them).")
	}
}
