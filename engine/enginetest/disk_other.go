//go:build !linux

package enginetest

import "errors"

// mount would put a small disk in the place of a folder: every system has another way to do so.
func mount(string, int) (unmount func() error, err error) { return nil, errors.ErrUnsupported }
