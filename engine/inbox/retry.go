package inbox

import (
	"context"
	"fmt"
	"slices"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/pipeline"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Retry puts an activity that was set aside, because it could not be applied, back into the
// journal. The process that serves the instance applies it from there. Retry fetches again the
// objects that the activity's handler needs. Then it releases the activity's id, so that the id
// is free when the journal is read. After that it writes the journal row, and at the end it
// removes the row of the activity that was set aside. So if Retry ends between two steps, the
// activity is still set aside or waits in the journal. An activity that was applied after an
// interrupted Retry is only removed. One that does not concern the user any more is put back as
// well: Apply ignores it, and records why.
func (i *Inbox) Retry(ctx context.Context, u vocab.Username, p user.Poisoned) error {
	x, err := i.receiveAgain(ctx, u, p)
	if err != nil {
		return err
	}
	defer i.memory.giveAll(x)
	if err := i.fetchAgain(ctx, x); err != nil {
		return err
	}
	in := i.rowAgain(x, p)
	applied, err := i.releaseAside(ctx, u, x.Activity, p)
	if err != nil || applied {
		return err
	}
	if err := i.Store.Instance.Journal.Resubmit(ctx, in); err != nil {
		return err
	}
	return i.Store.Write(ctx, u, func(ctx context.Context, tx *user.Tx) error { return tx.Poison.Drop(ctx, p) })
}

// receiveAgain returns an activity that was set aside as the first steps of Receive had left it.
func (i *Inbox) receiveAgain(ctx context.Context, u vocab.Username, p user.Poisoned) (*receiving, error) {
	a, err := vocab.ParseActivity(p.Raw)
	if err != nil {
		return nil, fmt.Errorf("read it again: %w", err)
	}
	x := &receiving{Inbound: pipeline.Inbound{User: u, Activity: a, Recipients: []vocab.Username{u}}}
	if len(p.Forwarders) > 0 { // the activity is applied as if the same forwarder had sent it
		x.passer = &vocab.Actor{ID: p.Forwarders[0]}
	}
	if x.Actor, err = i.Actors.Resolve(ctx, a.Actor); err != nil {
		return nil, fmt.Errorf("resolve %s: %w", a.Actor, err)
	}
	follows, err := i.Store.Instance.Acquaintances.MayFollow(ctx, u, x.Actor.ID)
	if err != nil {
		return nil, err
	}
	x.followers = map[vocab.ID]map[vocab.Username]bool{x.Actor.ID: {}}
	if follows { // also if u is suspended
		x.followers[x.Actor.ID][u] = true
	}
	return x, i.validateSchema(ctx, x)
}

// fetchAgain fetches the objects that the activity's handler needs, and makes the actors that the
// activity names known to the user. A group is not told of a budget that is used up or of an
// object that is not shown, but Retry must fail then.
func (i *Inbox) fetchAgain(ctx context.Context, x *receiving) error {
	if err := i.fetcher.fetchNeeds(ctx, x); err != nil {
		return err
	}
	switch x.unkept {
	case IgnoredGroupBudget:
		return fault.New(fault.RateLimited, "as much was fetched for the group as may be for now").WithHint("run it again")
	case IgnoredUnproven:
		return fault.New(fault.Unavailable, "the server of the announced object does not show it now")
	}
	if err := i.acquaintRecipients(ctx, x); err != nil {
		return err
	}
	if x.unkept == IgnoredGroupBudget {
		return fault.New(fault.RateLimited, "the group has made as many voters known as it may in a day").WithHint("try again tomorrow")
	}
	return nil
}

// rowAgain returns the journal row of an activity that was set aside. The original payer pays for
// it, because the operator causes only the work of Retry.
func (i *Inbox) rowAgain(x *receiving, p user.Poisoned) instance.Intake {
	x.Recipients = []vocab.Username{x.User}
	// The activity may have come to the shared inbox, for a user who has only stored something of
	// its actor.
	if i.Handlers.Lookup(x.Activity).Concern.Holders {
		x.User = vocab.Username{}
	}
	x.meant = x.meantFor(i.Deps)
	in := i.rowOf(x)
	in.Forwarders = p.Forwarders
	in.Payer = i.payerFor(append(slices.Clone(p.Forwarders), x.Activity.Actor)...)
	in.Recipients, in.Waiting = nil, x.Recipients
	return in
}

// releaseAside releases the ids of an activity that was set aside, and reports whether the
// activity was applied after an earlier Retry that was interrupted. If so, it also removes the
// row of the activity that was set aside.
func (i *Inbox) releaseAside(ctx context.Context, u vocab.Username, a *vocab.Activity, p user.Poisoned) (applied bool, err error) {
	own, version := user.Owned{ID: a.ID.Canonical(), Actor: a.Actor}, user.Owned{ID: i.Handlers.VersionID(a), Actor: a.Actor}
	err = i.Store.Write(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		there, err := tx.Activities.FindBy(ctx, user.Owned{ID: a.ID, Actor: a.Actor})
		if err != nil {
			return err
		}
		if applied = there != nil && version == own && !handler.UpdatesItself(a); applied {
			return tx.Poison.Drop(ctx, p)
		}
		if there != nil { // another version has taken effect, and keeps the id
			return tx.Activities.Unclaim(ctx, []user.Owned{version})
		}
		return tx.Activities.Unclaim(ctx, []user.Owned{own, version})
	})
	return applied, err
}
