package engine

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
)

// serveCommand is the command under which other processes see the holder of the serve lock.
const serveCommand = "lightweb serve"

// unseenTries is how many times in a row keepLock finds the lock taken by a process that it
// cannot see, before it takes that process for another engine. A process that has just ended
// cannot be seen either.
const unseenTries = 5

// keepLock holds the serve lock until ctx ends. A restart of the database ends the session that
// holds the lock. keepLock then takes the lock again as soon as the database answers. If another
// engine took it first, keepLock ends the engine. If a command such as 'lightweb restore' took it,
// keepLock waits until the command has ended.
func (e *Engine) keepLock(ctx context.Context, release func(), lost <-chan struct{}, end context.CancelCauseFunc) {
	for {
		select {
		case <-ctx.Done():
			release()
			return
		case <-lost:
		}
		e.in.Log.WarnContext(ctx, "database connection lost")
		var err error
		if release, lost, err = e.retakeLock(ctx); err != nil {
			if ctx.Err() == nil {
				end(err)
			}
			return
		}
		e.in.Log.InfoContext(ctx, "database reached again")
	}
}

// retakeLock tries to take the serve lock until it succeeds. It returns an error if another engine
// has the lock, or when ctx ends.
func (e *Engine) retakeLock(ctx context.Context) (release func(), lost <-chan struct{}, err error) {
	unseen, told := 0, ""
	for {
		release, lost, err = e.in.DB.Instance.Locks.Serve(ctx, serveCommand)
		if err == nil || ctx.Err() != nil {
			return release, lost, err
		}
		if fault.KindOf(err) == fault.Conflict {
			holder := instance.HolderOf(err)
			if unseen++; holder != "" {
				unseen = 0
			}
			if holder == serveCommand || unseen == unseenTries {
				return nil, nil, err
			}
			if holder != told {
				e.in.Log.WarnContext(ctx, "serve lock is held by a command", "command", holder, "err", err, "hint", "the engine goes on when the command has ended")
				told = holder
			}
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}
