package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Background is a program that goes on in the background after the process that was run has ended.
type Background struct {
	holds *os.File // the reading end of a pipe. The program holds the other end while it lives
}

// Start runs a program that goes into the background, such as a server that becomes a daemon, as
// Run does. It returns when the process that was run has ended.
func (a Account) Start(ctx context.Context, dir, program string, args ...string) (*Background, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", program, err)
	}
	defer func() { _ = write.Close() }() // the program has its own copy
	if _, err := a.run(ctx, []*os.File{write}, dir, program, args); err != nil {
		return nil, errors.Join(err, read.Close())
	}
	return &Background{holds: read}, nil
}

// HasEnded reports whether the program in the background has ended, too. It is false for a
// program that has not got far yet, however slow the machine is.
func (b *Background) HasEnded() bool {
	if err := b.holds.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		return false
	}
	_, err := b.holds.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

// Close ends the watch. The program goes on.
func (b *Background) Close() error { return b.holds.Close() }
