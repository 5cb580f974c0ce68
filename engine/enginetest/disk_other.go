//go:build !linux

package enginetest

import "errors"

// mount reports an error, because every operating system mounts a small disk in another way.
func mount(string, int) (unmount func() error, err error) { return nil, errors.ErrUnsupported }
