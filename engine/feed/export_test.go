package feed

import "context"

// ShareReads returns the function that makes a read once for all callers that give the same name
// at the same time.
func ShareReads() func(ctx context.Context, name string, read func(context.Context) (Stored, error)) (Stored, bool, error) {
	return new(flights).share
}
