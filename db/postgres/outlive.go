package postgres

import (
	"context"
	"time"
)

// Outlive returns a context for work that must be done even if ctx ends. After the end of ctx,
// the returned context lasts at most for the duration in the parameter long. Otherwise a server
// that hangs would keep the process.
func Outlive(ctx context.Context, long time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		end := time.AfterFunc(long, cancel)
		context.AfterFunc(longer, func() { end.Stop() })
	})
	return longer, func() { stop(); cancel() }
}
