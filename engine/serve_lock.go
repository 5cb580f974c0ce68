package engine

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
)

// keepLock holds the serve lock until ctx ends. A restart of the database ends the session that
// holds the lock. keepLock then takes the lock again as soon as the database answers. If another
// process took it first, keepLock ends the engine.
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
		for {
			if release, lost, err = e.in.DB.Instance.Locks.Serve(ctx, "lightweb serve"); err == nil || ctx.Err() != nil {
				break
			}
			if fault.KindOf(err) == fault.Conflict {
				end(err)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
		if err != nil {
			return
		}
		e.in.Log.InfoContext(ctx, "database reached again")
	}
}
