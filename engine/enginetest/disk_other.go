//go:build !linux

package enginetest

import "errors"

// mount reports an error: every operating system has another way to mount a small disk.
func mount(string, int) (unmount func() error, err error) { return nil, errors.ErrUnsupported }
