package outbox

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// countAttempt counts what an LLM engine tries before anything is looked up for it, and refuses
// more than so much.
func (o *Outbox) countAttempt(ctx context.Context, x *exchange) error {
	return o.Store.Write(ctx, x.User, func(ctx context.Context, tx *db.Tx) error {
		may, err := tx.CountAttempt(ctx, x.Token, x.now, policy.Attempts.Hourly, policy.Attempts.Daily)
		if err == nil && !may {
			err = fault.New(fault.RateLimited, "the token may try 60 actions an hour and 500 a day").WithCode("assistant_limit").After(10 * time.Minute)
		}
		return err
	})
}

// AttemptQuotas returns how many actions a token of an LLM engine may still try.
func (o *Outbox) AttemptQuotas(ctx context.Context, u vocab.Username, token uuid.UUID) ([]policy.Quota, error) {
	now := o.Now().UTC()
	var tried db.Attempts
	err := o.Store.Read(ctx, u, func(ctx context.Context, tx *db.Tx) (err error) {
		tried, err = tx.Attempts(ctx, token, now)
		return err
	})
	return []policy.Quota{quotaOf("hour", policy.Attempts.Hourly, time.Hour, tried.Hour, tried.HourSince, now),
		quotaOf("day", policy.Attempts.Daily, 24*time.Hour, tried.Day, tried.DaySince, now)}, err
}

// quotaOf returns what is left of so many attempts in a window. Attempts are counted by the minute,
// each of which counts until a window after its end.
func quotaOf(name string, limit int, window time.Duration, used int, since, now time.Time) policy.Quota {
	q := policy.Quota{Name: name, Limit: limit, Window: window, Left: max(limit-used, 0)}
	if used > 0 {
		q.Reset = max(since.Add(window+time.Minute).Sub(now), 0)
	}
	return q
}

// restrainAssistant refuses what an LLM engine may not do although its scope has the action: words
// that are not public to somebody the user does not talk with.
func (o *Outbox) restrainAssistant(ctx context.Context, tx *db.Tx, x *exchange) error {
	if x.activity.Type != vocab.Create || audience.IsPublic(x.activity.Addressing) {
		return nil
	}
	for _, a := range x.named {
		talks, err := tx.TalksWith(ctx, o.Local.Followers(x.User), a.ID)
		if err != nil {
			return err
		}
		if !talks {
			return fault.New(fault.Forbidden, "the token may write in private only to actors the user already talks with").WithCode("stranger")
		}
	}
	return nil
}
