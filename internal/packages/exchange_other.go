//go:build !linux && !darwin

package packages

import "errors"

// exchange would make two folders change places in one step.
func exchange(string, string) error { return errors.ErrUnsupported }
