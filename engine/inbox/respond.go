package inbox

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/intake"
	"github.com/lightweb/lightweb/engine/vocab"
)

// respond makes the activity durable for its recipients, and returns the answer to the request.
func (i *Inbox) respond(ctx context.Context, x *receiving) error {
	if err := i.makeDurable(ctx, x); err != nil {
		return err
	}
	return x.refused
}

// makeDurable makes the activity durable before it is acknowledged, so that no acknowledged
// activity is lost. For one recipient it waits for the commit in that user's database. For
// several recipients, or for one whose database cannot be used now, it waits for the commit of
// the intake journal.
func (i *Inbox) makeDurable(ctx context.Context, x *receiving) error {
	if err := i.acquaintRecipients(ctx, x); err != nil || len(x.Recipients) == 0 {
		return err
	}
	if err := i.keepActors(ctx, x); err != nil {
		return err
	}
	x.meant = x.meantFor(i.Deps)
	return i.intake.Accept(ctx, intake.Arrival{Recipients: x.Recipients, Unasked: x.strangers,
		ItemFor: i.itemsOf(x),
		Row:     func() instance.Intake { return i.rowOf(x) }})
}

// writeOpenly encodes the activity without hidden recipients. If the activity has none,
// writeOpenly returns the bytes that came.
func writeOpenly(a *vocab.Activity) json.RawMessage {
	if !a.Doc.Hides() {
		return a.Raw
	}
	return a.Doc.WithoutHidden().JSON()
}

// writeStored encodes the activity as users' databases store it: without hidden recipients, and
// with canonical ids and plain types.
func writeStored(a *vocab.Activity) json.RawMessage {
	d, named := a.Doc.WithCanonicalIDs()
	d, typed := d.WithPlainTypes()
	if named || typed {
		return d.WithoutHidden().JSON()
	}
	return writeOpenly(a)
}

// meantFor returns the users that the activity is meant for in person: those that it names, and
// the owner of the inbox to which its own actor sent it.
func (x *receiving) meantFor(d Deps) map[vocab.Username]bool {
	users := map[vocab.Username]bool{}
	for _, id := range x.arrival(d).InPerson() {
		if u, ok := d.Local.Owner(id); ok {
			users[u] = true
		}
	}
	return users
}

// itemsOf returns a function that returns the activity in the form in which it is applied for one
// recipient. The function does not read x, whose request may have ended.
func (i *Inbox) itemsOf(x *receiving) func(vocab.Username) intake.Item {
	common := applying{raw: writeStored(x.Activity), payer: x.paidBy(), fetched: x.fetched, documents: x.documents, reader: x.reader,
		Received: handler.Received{Activity: x.Activity, Actor: x.Actor, Proven: x.proven, Target: x.target, Now: i.Now(), Signed: x.signedAt()}}
	if x.passer != nil {
		common.Forwarders = []*vocab.Actor{x.passer}
	}
	common.large = int64(len(common.raw)) > i.BodyLimit
	meant := x.meant
	return func(u vocab.Username) intake.Item {
		item := common
		item.User, item.Me, item.Named = u, i.Local.ID(u), meant[u]
		return &item
	}
}

// signedAt returns when the request was signed: the earliest time that its signatures give. It is
// zero for the activity of a local user.
func (x *receiving) signedAt() (at time.Time) {
	for _, c := range x.claims {
		if at.IsZero() || c.Created.Before(at) {
			at = c.Created
		}
	}
	return at
}

// rowOf returns the activity as the journal stores it. The row has all that Apply needs later,
// when no other server can be asked.
func (i *Inbox) rowOf(x *receiving) instance.Intake {
	in := instance.Intake{Key: instance.KeyOf(i.Handlers.VersionID(x.Activity), x.Actor.ID), Raw: x.Activity.Raw, Recipients: x.Recipients, Payer: x.paidBy()}
	in.Named = slices.DeleteFunc(slices.Clone(x.Recipients), func(u vocab.Username) bool { return !x.meant[u] })
	if x.passer == nil {
		in.SignedAt = x.signedAt()
	} else {
		in.Forwarders = []vocab.ID{x.passer.ID}
	}
	in.Fetched = writeFetched(x.fetched, x.reader, x.proven)
	return in
}
