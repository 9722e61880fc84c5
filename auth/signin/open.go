package signin

import (
	"errors"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

// OpenBrowser starts the browser of the system with an address and does not wait
// for it. Variables that hide names are kept from it.
func OpenBrowser(address string, hide []string) error {
	u, err := url.Parse(address)
	if err != nil || !usable(u) {
		return errors.New("the address is none that a browser should open")
	}
	words, err := browserCommand(runtime.GOOS, os.Getenv)
	if err != nil {
		return err
	}
	cmd := exec.Command(words[0], append(words[1:], u.String())...)
	if errors.Is(cmd.Err, exec.ErrNotFound) {
		return errors.New("there is no " + words[0] + " on this machine")
	}
	cmd.Env = slices.DeleteFunc(os.Environ(), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.ContainsFunc(hide, func(h string) bool { return strings.EqualFold(h, name) })
	})
	if err := cmd.Start(); err != nil {
		return err
	}
	// It may live as long as the browser, which is not ours to end.
	return cmd.Process.Release()
}

// browserCommand is the command that opens an address, which comes last.
func browserCommand(system string, getenv func(string) string) ([]string, error) {
	switch system {
	case "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler"}, nil
	case "darwin":
		return []string{"open"}, nil
	}
	// Without a display xdg-open would start a browser in this terminal.
	if getenv("DISPLAY") == "" && getenv("WAYLAND_DISPLAY") == "" && getenv("WSL_DISTRO_NAME") == "" {
		return nil, errors.New("this machine has no display")
	}
	return []string{"xdg-open"}, nil
}
