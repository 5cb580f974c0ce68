package delivery

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/policy"
)

// logSamples are the samples of outcomes that the log shows at level Info. Deliveries that
// succeeded have a sample of their own, so that a post which reaches thousands of inboxes does
// not hide the one inbox that refuses it. At level Debug the log has all outcomes.
type logSamples struct{ delivered, postponed *logSample }

func newLogSamples(now func() time.Time) logSamples {
	return logSamples{delivered: &logSample{shown: policy.DeliveredLines.Shared(now)}, postponed: &logSample{shown: policy.PutOffLines.Shared(now)}}
}

// logSample chooses which lines of a kind are shown, and counts the others.
type logSample struct {
	shown    *policy.SharedLimiter
	unlogged atomic.Int64 // lines that were left out since the last line that was shown
}

// level returns the level for a line about a domain, and how many lines were left out before it.
func (s *logSample) level(domain string) (level slog.Level, unlogged int64) {
	if ok, _ := s.shown.Allow("", domain, 0); !ok {
		s.unlogged.Add(1)
		return slog.LevelDebug, 0
	}
	return slog.LevelInfo, s.unlogged.Swap(0)
}

// logOutcome logs how an attempt ended, and when the next one is made. A line about a success has
// the id of the activity and the host, but not the inbox, so that the log does not record which
// people write to each other. Only the other lines, which an operator may have to look into, have
// the fields user and inbox.
func (s *sender) logOutcome(ctx context.Context, r *row, o user.Outcome) {
	message, sample := "delivery put off", s.samples.postponed
	facts := []any{"activity", r.Activity, "type", r.Type, "host", r.Host, "attempt", r.Attempts + 1, "status", o.HTTPStatus, "took", o.Latency}
	switch o.Status {
	case user.DeliveryDelivered:
		message, sample = "activity delivered", s.samples.delivered
	case user.DeliveryFailed, user.DeliverySkipped:
		message = "delivery given up"
		facts = append(facts, "user", r.user, "inbox", r.Inbox, "err", o.Error)
	default:
		facts = append(facts, "user", r.user, "inbox", r.Inbox, "next", o.NextAt.UTC(), "err", o.Error)
	}
	level, unlogged := sample.level(r.domain)
	s.Log.Log(ctx, level, message, append(facts, "unlogged", unlogged)...)
}
