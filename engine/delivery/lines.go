package delivery

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/policy"
)

// lines are the samples of outcomes that the log shows at level Info. What got through has samples of its own: a post that
// reaches thousands of inboxes does not hide the one that refuses it. At level Debug the log has them all.
type lines struct{ delivered, putOff *sample }

func newLines(now func() time.Time) lines {
	return lines{delivered: &sample{shown: policy.DeliveredLines.Shared(now)}, putOff: &sample{shown: policy.PutOffLines.Shared(now)}}
}

// sample chooses the lines of a kind that are shown, and counts the others.
type sample struct {
	shown    *policy.SharedLimiter
	unlogged atomic.Int64 // since the last line that was shown
}

// level returns at which level a line about a domain is written, and how many lines were left out before it.
func (s *sample) level(domain string) (level slog.Level, unlogged int64) {
	if ok, _ := s.shown.Allow("", domain, 0); !ok {
		s.unlogged.Add(1)
		return slog.LevelDebug, 0
	}
	return slog.LevelInfo, s.unlogged.Swap(0)
}

// log tells how an attempt ended, and when the next one is made. The inbox and the user stand only in lines about what
// somebody may have to look at: what got through is counted, and the log is no diary of who writes to each other.
func (d *Dispatcher) log(ctx context.Context, r *row, o db.Outcome) {
	message, of := "delivery put off", d.lines.putOff
	facts := []any{"activity", r.Activity, "type", r.Type, "host", r.Host, "attempt", r.Attempts + 1, "status", o.HTTPStatus, "took", o.Latency}
	switch o.Status {
	case db.DeliveryDelivered:
		message, of = "activity delivered", d.lines.delivered
	case db.DeliveryFailed, db.DeliverySkipped:
		message = "delivery given up"
		facts = append(facts, "user", r.user.name, "inbox", r.Inbox, "err", o.Error)
	default:
		facts = append(facts, "user", r.user.name, "inbox", r.Inbox, "next", o.NextAt.UTC(), "err", o.Error)
	}
	level, unlogged := of.level(r.domain)
	d.Log.Log(ctx, level, message, append(facts, "unlogged", unlogged)...)
}
