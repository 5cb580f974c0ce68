package outbox

import (
	"context"
	"slices"
	"time"

	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Bounds of the look-ups of the communities of one post. Ids beyond them are not looked up.
const (
	maxCommunities = 3
	communityTime  = 2 * time.Second // for each
)

// addressCommunities addresses the communities (Group actors) among the ids. The action is about a
// public post that names these ids in audience (FEP-1b12). Only the community's own server can
// pass the activity on to the members. A community that is blocked, or that cannot be found, is
// left out.
func (f *finder) addressCommunities(ctx context.Context, x *exchange, ids []vocab.ID) error {
	ids = slices.DeleteFunc(ids, func(id vocab.ID) bool { return f.gate.CheckActor(id) != nil })
	var found []*vocab.Actor
	for _, id := range ids[:min(len(ids), maxCommunities)] {
		if a := f.findCommunity(ctx, x, id); a != nil {
			found = append(found, a)
		}
	}
	found, err := f.withoutBlockedActors(ctx, x, found)
	for _, a := range found {
		x.addCommunity(a)
	}
	return err
}

// findCommunity returns the Group actor that id names, or nil if there is none.
func (f *finder) findCommunity(ctx context.Context, x *exchange, id vocab.ID) *vocab.Actor {
	asking, cancel := context.WithTimeout(ctx, communityTime)
	defer cancel()
	a, err := f.reachWithin(ctx, asking, x, id)
	if err != nil {
		f.log.DebugContext(ctx, "community could not be found", "actor", id, "user", x.User, "err", err)
		return nil
	}
	if !handler.IsGroup(a) {
		return nil
	}
	return a
}

// withoutBlockedActors returns the actors without those that the user or the operator blocks. An
// actor's document may have another id than the one that was asked for.
func (f *finder) withoutBlockedActors(ctx context.Context, x *exchange, actors []*vocab.Actor) ([]*vocab.Actor, error) {
	var ids []vocab.ID
	for _, a := range actors {
		ids = append(ids, a.ID)
	}
	blocked, err := f.findBlocked(ctx, x, ids)
	return slices.DeleteFunc(actors, func(a *vocab.Actor) bool { return blocked[a.ID] || f.gate.CheckActor(a.ID) != nil }), err
}

// addCommunity addresses a community, once.
func (x *exchange) addCommunity(a *vocab.Actor) {
	if slices.ContainsFunc(x.communities, a.ID.Same) {
		return
	}
	x.communities = append(x.communities, a.ID)
	if !audience.NamesOpenly(vocab.Addressing{To: x.to, Cc: x.cc}, a.ID) {
		x.cc = append(slices.Clip(x.cc), a.ID)
	}
	x.addNamed(a)
}

// setAudience writes the communities into the document of an activity or object that belongs to
// them. A single community is written without a list, because Lemmy reads no list there.
func setAudience(d vocab.Doc, communities []vocab.ID) {
	switch len(communities) {
	case 0:
	case 1:
		d["audience"] = string(communities[0])
	default:
		d["audience"] = listIDs(communities)
	}
}
