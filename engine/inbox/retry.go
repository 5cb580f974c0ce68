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
	r := retry{i, u, p}
	x, err := r.receiveAgain(ctx)
	if err != nil {
		return err
	}
	defer i.memory.giveAll(x)
	if err := r.fetchAgain(ctx, x); err != nil {
		return err
	}
	in := r.rowAgain(x)
	applied, err := r.releaseIDs(ctx, x.Activity)
	if err != nil || applied {
		return err
	}
	if err := i.Store.Instance.Journal.Resubmit(ctx, in); err != nil {
		return err
	}
	return i.Store.Write(ctx, u, func(ctx context.Context, tx *user.Tx) error { return tx.Poison.Drop(ctx, p) })
}

// retry is one run of Retry.
type retry struct {
	*Inbox
	user  vocab.Username
	aside user.Poisoned
}

// receiveAgain returns an activity that was set aside as the first steps of Receive had left it.
func (r retry) receiveAgain(ctx context.Context) (*receiving, error) {
	a, err := vocab.ParseActivity(r.aside.Raw)
	if err != nil {
		return nil, fmt.Errorf("read it again: %w", err)
	}
	x := &receiving{Inbound: pipeline.Inbound{User: r.user, Activity: a, Recipients: []vocab.Username{r.user}}}
	if len(r.aside.Forwarders) > 0 { // the activity is applied as if the same forwarder had sent it
		x.passer = &vocab.Actor{ID: r.aside.Forwarders[0]}
	}
	if x.Actor, err = r.Actors.Resolve(ctx, a.Actor); err != nil {
		return nil, fmt.Errorf("resolve %s: %w", a.Actor, err)
	}
	follows, err := r.Store.Instance.Acquaintances.MayFollow(ctx, r.user, x.Actor.ID)
	if err != nil {
		return nil, err
	}
	x.followers = map[vocab.ID]map[vocab.Username]bool{x.Actor.ID: {}}
	if follows { // also if the user is suspended
		x.followers[x.Actor.ID][r.user] = true
	}
	return x, r.validateSchema(ctx, x)
}

// fetchAgain fetches the objects that the activity's handler needs, and makes the actors that the
// activity names known to the user. A group is not told of a budget that is used up or of an
// object that is not shown, but Retry must fail then.
func (r retry) fetchAgain(ctx context.Context, x *receiving) error {
	if err := r.fetcher.fetchNeeds(ctx, x); err != nil {
		return err
	}
	switch x.unkept {
	case IgnoredGroupBudget:
		return fault.New(fault.RateLimited, "as much was fetched for the group as may be for now").WithHint("run it again")
	case IgnoredUnproven:
		return fault.New(fault.Unavailable, "the server of the announced object does not show it now")
	}
	if err := r.acquaintRecipients(ctx, x); err != nil {
		return err
	}
	if x.unkept == IgnoredGroupBudget {
		return fault.New(fault.RateLimited, "the group has made as many voters known as it may in a day").WithHint("try again tomorrow")
	}
	return nil
}

// rowAgain returns the journal row of an activity that was set aside. The original payer pays for
// it, because the operator causes only the work of Retry.
func (r retry) rowAgain(x *receiving) instance.Intake {
	x.Recipients = []vocab.Username{r.user}
	// The activity may have come to the shared inbox, for a user who has only stored something of
	// its actor.
	if r.Handlers.Lookup(x.Activity).Concern.Holders {
		x.User = vocab.Username{}
	}
	x.meant = x.meantFor(r.Deps)
	in := r.rowOf(x)
	in.Forwarders = r.aside.Forwarders
	in.Payer = r.payerFor(append(slices.Clone(r.aside.Forwarders), x.Activity.Actor)...)
	in.Recipients, in.Waiting = nil, x.Recipients
	return in
}

// releaseIDs releases the ids of an activity that was set aside, and reports whether the
// activity was applied after an earlier Retry that was interrupted. If so, it also removes the
// row of the activity that was set aside.
func (r retry) releaseIDs(ctx context.Context, a *vocab.Activity) (applied bool, err error) {
	own, version := user.Owned{ID: a.ID.Canonical(), Actor: a.Actor}, user.Owned{ID: r.Handlers.VersionID(a), Actor: a.Actor}
	err = r.Store.Write(ctx, r.user, func(ctx context.Context, tx *user.Tx) error {
		there, err := tx.Activities.FindBy(ctx, user.Owned{ID: a.ID, Actor: a.Actor})
		if err != nil {
			return err
		}
		if applied = there != nil && version == own && !handler.UpdatesItself(a); applied {
			return tx.Poison.Drop(ctx, r.aside)
		}
		if there != nil { // another version has taken effect, and keeps the id
			return tx.Activities.Unclaim(ctx, []user.Owned{version})
		}
		return tx.Activities.Unclaim(ctx, []user.Owned{own, version})
	})
	return applied, err
}
