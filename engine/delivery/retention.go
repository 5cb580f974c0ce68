package delivery

import (
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// rowsKept is the time for which a delivery that succeeded keeps a row of its own.
const rowsKept = 7 * day

// Retention returns how long jobs and deliveries are stored. The time for a delivery depends on
// how it ended. The parameter jobs is the time for jobs, and lasting has the types of
// activities that take something back.
func Retention(now time.Time, jobs time.Duration, lasting []string) user.DeliveryRetention {
	return user.DeliveryRetention{Now: now, Delivered: rowsKept, Jobs: jobs, Parked: lifetime,
		Lasting: longLifetime, Types: lasting, Failed: FailedEvent}
}

// FailedEvent returns the event that tells a user that a delivery was given up.
func FailedEvent(d user.Delivery, why string, now time.Time) user.Event {
	return user.NewEvent("delivery.failed", user.SourceAP, user.TrustSelf,
		vocab.Doc{"activityUri": string(d.Activity), "activityType": d.Type, "inbox": string(d.Inbox), "error": why}, now)
}
