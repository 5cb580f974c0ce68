//go:build !linux

package enginetest

import "errors"

// mount returns an error, because each other operating system would need its own way to mount a
// disk.
func mount(string, int) (unmount func() error, err error) { return nil, errors.ErrUnsupported }
