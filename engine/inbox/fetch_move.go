package inbox

import (
	"context"
	"fmt"

	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// fetchMove fetches both accounts of a Move from their servers, because stored copies prove
// nothing. It removes the recipients who do not follow the old account, although the Move may name
// them: they have no follow to move, and if they counted as followers of the target, the target's
// domain would send to them without paying (see chargeFanOut). Then it commits that the other
// recipients may follow the target. The handler gets the target when both accounts confirm the
// Move. A Move of anything but its actor is ignored, and nothing is fetched for it.
func (f *fetcher) fetchMove(ctx context.Context, x *receiving) error {
	if x.Activity.Type != vocab.Move {
		return nil
	}
	if !handler.MovesItself(x.Activity) {
		x.unkept = IgnoredNoEffect
		return nil
	}
	followers, err := x.followersOf(ctx, f.Store, x.Actor.ID)
	if err != nil {
		return err
	}
	if x.keepRecipients(followers, IgnoredUnrelated); len(x.Recipients) == 0 {
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

// fetchTarget returns the target of a Move, or nil when its server does not show it. It fails only
// when that server cannot be reached now, or when this server is at fault. Then the peer sends the
// Move again.
func (f *fetcher) fetchTarget(ctx context.Context, x *receiving) (*vocab.Actor, error) {
	id := x.Activity.Target.ID
	target, err := f.fetchActor(ctx, x, id)
	if err == nil {
		return target, nil
	}
	f.Log.InfoContext(ctx, "target not fetched", "move", x.Actor.ID, "host", id.Host(), "err", err)
	return nil, unansweredFault(err, "the target's server does not answer")
}
