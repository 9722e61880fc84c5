//go:build !linux

package keychain

// reachable is nil: the system answers for itself.
func reachable() error { return nil }
