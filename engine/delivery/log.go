package delivery

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/policy"
)

// logSamples are the samples of outcomes that the log shows at level Info. Deliveries that got
// through have samples of their own: a post that reaches thousands of inboxes does not hide the
// one that refuses it. At level Debug the log has them all.
type logSamples struct{ delivered, postponed *logSample }

func newLogSamples(now func() time.Time) logSamples {
	return logSamples{delivered: &logSample{shown: policy.DeliveredLines.Shared(now)}, postponed: &logSample{shown: policy.PutOffLines.Shared(now)}}
}

// logSample chooses the lines of a kind that are shown, and counts the others.
type logSample struct {
	shown    *policy.SharedLimiter
	unlogged atomic.Int64 // since the last line that was shown
}

// level returns at which level a line about a domain is written, and how many lines were left out
// before it.
func (s *logSample) level(domain string) (level slog.Level, unlogged int64) {
	if ok, _ := s.shown.Allow("", domain, 0); !ok {
		s.unlogged.Add(1)
		return slog.LevelDebug, 0
	}
	return slog.LevelInfo, s.unlogged.Swap(0)
}

// logOutcome says how an attempt ended, and when the next one is made. The inbox and the user
// stand only in lines that somebody may have to look at: a delivery that got through is counted,
// and the log is no diary of who writes to each other.
func (s *sender) logOutcome(ctx context.Context, r *row, o db.Outcome) {
	message, sample := "delivery put off", s.samples.postponed
	facts := []any{"activity", r.Activity, "type", r.Type, "host", r.Host, "attempt", r.Attempts + 1, "status", o.HTTPStatus, "took", o.Latency}
	switch o.Status {
	case db.DeliveryDelivered:
		message, sample = "activity delivered", s.samples.delivered
	case db.DeliveryFailed, db.DeliverySkipped:
		message = "delivery given up"
		facts = append(facts, "user", r.user, "inbox", r.Inbox, "err", o.Error)
	default:
		facts = append(facts, "user", r.user, "inbox", r.Inbox, "next", o.NextAt.UTC(), "err", o.Error)
	}
	level, unlogged := sample.level(r.domain)
	s.Log.Log(ctx, level, message, append(facts, "unlogged", unlogged)...)
}
