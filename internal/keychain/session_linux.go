package keychain

import (
	"errors"
	"fmt"
	"os"
)

// reachable tells why there is no way to a secret service. Asking for one without
// a session bus would start a bus that outlives the program.
func reachable() error {
	if address := os.Getenv("DBUS_SESSION_BUS_ADDRESS"); address != "" && address != "autolaunch:" {
		return nil
	}
	for _, name := range []string{"bus", "dbus-session"} {
		if _, err := os.Stat(fmt.Sprintf("/run/user/%d/%s", os.Getuid(), name)); err == nil {
			return nil
		}
	}
	return errors.New("there is no desktop session with one (DBUS_SESSION_BUS_ADDRESS is not set)")
}
