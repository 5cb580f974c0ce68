package outbox

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// fanOut chooses the inboxes and relays that activities are sent to.
type fanOut struct {
	addresses actor.Addresses
	handlers  *handler.Registry
	gate      Gate
	relays    Relays
}

// newJob returns the delivery job of the activity, without its inboxes.
func (f *fanOut) newJob(x *exchange) user.Job {
	return user.Job{ID: uuid.Must(uuid.NewV7()), Activity: x.activity.ID, Object: f.handlers.OrderOf(x.activity), Type: x.activity.Type, Body: x.body, Audience: x.listAudience()}
}

// showJob returns the delivery job as the answer shows it, or nil if there are no inboxes.
func showJob(id uuid.UUID, inboxes []user.Inbox) *Job {
	if len(inboxes) == 0 {
		return nil
	}
	counts := user.JobCounts{Total: len(inboxes)}
	recipients := map[vocab.ID]bool{}
	for _, i := range inboxes {
		if i.Skip != "" {
			counts.Skipped++
			continue
		}
		counts.Pending++
		for _, t := range i.Targets {
			recipients[t] = true
		}
	}
	return &Job{JobID: id.String(), Recipients: len(recipients), Counts: counts}
}

// withdrawDeliveries cancels the deliveries of a deleted post that were certainly never tried.
// An inbox with such a delivery gets no Delete either, if it got no other activity with the
// post. But if the post is public, the inbox gets the Delete, because its server may have
// fetched the post.
func (f *fanOut) withdrawDeliveries(ctx context.Context, tx *user.Tx, x *exchange) error {
	withdrawn, err := tx.Deliveries.WithdrawUntried(ctx, x.before.URI, x.now)
	if err != nil || len(withdrawn) == 0 || audience.IsPublic(vocab.Addressing{To: x.to, Cc: x.cc}) {
		return err
	}
	sent, err := tx.Deliveries.ListSentTo(ctx, x.before.URI)
	x.inboxes = slices.DeleteFunc(x.inboxes, func(i user.Inbox) bool {
		return slices.Contains(withdrawn, i.URL) && !slices.ContainsFunc(sent, func(s user.Inbox) bool { return s.URL == i.URL })
	})
	return err
}
