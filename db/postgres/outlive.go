package postgres

import (
	"context"
	"time"
)

// Outlive returns a context for work that is owed even if ctx ends. It ends that long after ctx
// at the latest, because a server that hangs would keep the process otherwise.
func Outlive(ctx context.Context, long time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		end := time.AfterFunc(long, cancel)
		context.AfterFunc(longer, func() { end.Stop() })
	})
	return longer, func() { stop(); cancel() }
}
