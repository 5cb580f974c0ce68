package outbox

import (
	"context"
	"slices"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Bounds of the look-ups of the communities of one post. Ids beyond them are not looked up.
const (
	maxCommunities  = 3
	communitiesTime = 5 * time.Second
)

// addressCommunities addresses those of the ids that are communities, that is, Group actors. The
// ids are those that a public post names in audience (FEP-1b12). The action is about that post.
// Only the community's own server can pass the activity on to the members. A community that is
// blocked, or that cannot be found, is left out.
func (f *finder) addressCommunities(ctx context.Context, x *exchange, ids []vocab.ID) error {
	ids = slices.DeleteFunc(ids, func(id vocab.ID) bool { return f.gate.CheckActor(id) != nil })
	ids, err := f.withoutBlockedIDs(ctx, x, ids[:min(len(ids), maxCommunities)])
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, communitiesTime)
	defer cancel()
	for _, id := range ids {
		a, err := f.reachActor(limited, x, id)
		if err != nil {
			f.log.DebugContext(ctx, "community could not be found", "actor", id, "user", x.User, "err", err)
			continue
		}
		if handler.IsGroup(a) {
			x.addCommunity(a)
		}
	}
	return ctx.Err()
}

// withoutBlockedIDs returns the ids without those of actors that the user blocks.
func (f *finder) withoutBlockedIDs(ctx context.Context, x *exchange, ids []vocab.ID) ([]vocab.ID, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var blocked map[vocab.ID]bool
	err := f.store.Read(ctx, x.User, func(ctx context.Context, tx *user.Tx) (err error) {
		blocked, err = tx.Blocks.FindAmong(ctx, ids)
		return err
	})
	return slices.DeleteFunc(ids, func(id vocab.ID) bool { return blocked[id] }), err
}

// addCommunity addresses a community.
func (x *exchange) addCommunity(a *vocab.Actor) {
	x.communities = append(x.communities, a.ID)
	if !audience.NamesOpenly(vocab.Addressing{To: x.to, Cc: x.cc}, a.ID) {
		x.cc = append(slices.Clip(x.cc), a.ID)
	}
	x.addNamed(a)
}

// setAudience writes the communities that something belongs to into its document. A single one is
// no list, because Lemmy reads no list there.
func setAudience(d vocab.Doc, communities []vocab.ID) {
	switch len(communities) {
	case 0:
	case 1:
		d["audience"] = string(communities[0])
	default:
		d["audience"] = listIDs(communities)
	}
}
