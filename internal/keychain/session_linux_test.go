package keychain

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestNoSession(t *testing.T) {
	if _, err := os.Stat(fmt.Sprintf("/run/user/%d", os.Getuid())); err == nil {
		t.Skip("there is a desktop session")
	}
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	t.Setenv("PATH", t.TempDir()) // nothing to start
	_, err := System{}.Get(t.Context(), "pinch", "p")
	if err == nil || !strings.Contains(err.Error(), "no desktop session") {
		t.Errorf("got %v", err)
	}
}
