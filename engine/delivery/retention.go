package delivery

import (
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/vocab"
)

// rowsKept is how long a delivery that got through has a row of its own.
const rowsKept = 7 * day

// Retention returns for how long deliveries are kept, by how they ended, and jobs. lasting are the
// types that take something back.
func Retention(now time.Time, jobs time.Duration, lasting []string) db.DeliveryRetention {
	return db.DeliveryRetention{Now: now, Delivered: rowsKept, Jobs: jobs, Parked: lifetime,
		Lasting: longLifetime, Types: lasting, Failed: FailedEvent}
}

// FailedEvent tells a user that a delivery was given up.
func FailedEvent(d db.Delivery, why string, now time.Time) db.Event {
	payload := vocab.Doc{"eventId": uuid.Must(uuid.NewV7()).String(), "activityUri": string(d.Activity), "activityType": d.Type,
		"inbox": string(d.Inbox), "error": why, "trust": "self"}
	return db.Event{Type: "delivery.failed", Source: "ap", Payload: payload.JSON(), At: now}
}
