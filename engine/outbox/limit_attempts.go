package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// countAttempt counts an attempt of an LLM engine to act, before anything is looked up for it. It
// refuses attempts beyond the hourly and daily limits.
func (o *Outbox) countAttempt(ctx context.Context, x *exchange) error {
	return o.Store.Write(ctx, x.User, func(ctx context.Context, tx *user.Tx) error {
		may, err := tx.Audits.CountAttempt(ctx, x.Token, x.now, policy.Attempts.Hourly, policy.Attempts.Daily)
		if err != nil || may {
			return err
		}
		tried, err := tx.Audits.FindAttempts(ctx, x.Token, x.now)
		if err != nil {
			return err
		}
		var wait time.Duration
		for _, q := range attemptQuotas(tried, x.now) {
			if q.Left == 0 {
				wait = max(wait, q.Reset)
			}
		}
		return fault.New(fault.RateLimited, fmt.Sprintf("the token may try %d actions an hour and %d a day", policy.Attempts.Hourly, policy.Attempts.Daily)).WithCode("assistant_limit").After(wait)
	})
}

// AttemptQuotas returns how many more actions a token of an LLM engine may try within its hourly
// limit, and how many within its daily limit.
func (o *Outbox) AttemptQuotas(ctx context.Context, u vocab.Username, token uuid.UUID) ([]policy.Quota, error) {
	now := o.Now().UTC()
	var tried user.Attempts
	err := o.Store.Read(ctx, u, func(ctx context.Context, tx *user.Tx) (err error) {
		tried, err = tx.Audits.FindAttempts(ctx, token, now)
		return err
	})
	return attemptQuotas(tried, now), err
}

// attemptQuotas returns what tried leaves of the hourly and of the daily limit.
func attemptQuotas(tried user.Attempts, now time.Time) []policy.Quota {
	return []policy.Quota{quotaOf("hour", policy.Attempts.Hourly, time.Hour, tried.Hour, tried.HourSince, now),
		quotaOf("day", policy.Attempts.Daily, 24*time.Hour, tried.Day, tried.DaySince, now)}
}

// quotaOf returns the quota of a window of time, such as an hour. The parameter limit is the
// number of allowed attempts, and used is the number of counted attempts. The parameter since is
// the minute of the oldest counted attempt. All attempts of a minute count until the window has
// passed since the end of that minute.
func quotaOf(name string, limit int, window time.Duration, used int, since, now time.Time) policy.Quota {
	q := policy.Quota{Name: name, Limit: limit, Window: window, Left: max(limit-used, 0)}
	if used > 0 {
		q.Reset = max(since.Add(window+time.Minute).Sub(now), 0)
	}
	return q
}
