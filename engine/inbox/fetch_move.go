package inbox

import (
	"context"
	"fmt"

	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// fetchMove asks the servers of both accounts of a Move what they say of it now: what is
// remembered proves nothing. The target is there for the handler when both confirm the Move; that
// the recipients may follow it is committed before.
func (f *fetcher) fetchMove(ctx context.Context, x *receiving) error {
	if x.Activity.Type != vocab.Move {
		return nil
	}
	old, err := f.fetchActor(ctx, x, x.Actor.ID)
	if err != nil {
		return fmt.Errorf("fetch %s: %w", x.Actor.ID, unresolvedFault(err))
	}
	target, err := f.fetchTarget(ctx, x)
	if err != nil || target == nil || !handler.Moved(old, target) {
		return err
	}
	x.Actor, x.target = old, target
	return f.Store.Instance.Acquaintances.Add(ctx, target.ID, x.Recipients, true)
}

// fetchTarget returns the target of a Move, nil when its server does not show it. Only a server
// that cannot be asked now is reason to have the peer come again.
func (f *fetcher) fetchTarget(ctx context.Context, x *receiving) (*vocab.Actor, error) {
	id := x.Activity.Target.ID
	target, err := f.fetchActor(ctx, x, id)
	if err == nil {
		return target, nil
	}
	f.Log.InfoContext(ctx, "target not fetched", "move", x.Actor.ID, "host", id.Host(), "err", err)
	return nil, unansweredFault(err, "the target's server does not answer")
}
