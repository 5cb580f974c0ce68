package user

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// hourAgo and dayAgo are times. An attempt counts for the hourly limit if it is later than
// hourAgo, and for the daily limit if it is later than dayAgo. @now is the current time. Attempts
// are stored by the minute, and a minute counts until all of it is older than the hour or day.
const (
	hourAgo = `@now::timestamptz - interval '1 hour 1 minute'`
	dayAgo  = `@now::timestamptz - interval '24 hours 1 minute'`
)

// Attempts has the numbers of actions that a token has tried in the last hour and in the last
// day, and the times of the first attempts in the hour and in the day.
type Attempts struct {
	Hour, Day           int
	HourSince, DaySince time.Time // the start of the first attempt's minute; the current time when there was no attempt
}

// FindAttempts returns the attempts of a token within the last hour and the last day, as
// CountAttempt counts them.
func (t Audits) FindAttempts(ctx context.Context, token uuid.UUID, now time.Time) (a Attempts, err error) {
	err = t.row(ctx, "read attempts", `SELECT coalesce(sum(times) FILTER (WHERE minute > `+hourAgo+`), 0), coalesce(sum(times), 0),
		coalesce(min(minute) FILTER (WHERE minute > `+hourAgo+`), @now), coalesce(min(minute), @now)
		FROM attempts WHERE token_id = @token AND minute > `+dayAgo, []any{named{"token": token, "now": now}}, &a.Hour, &a.Day, &a.HourSince, &a.DaySince)
	return a, err
}

// CountAttempt counts an attempt of a token to act, unless the token has reached the hourly or
// the daily limit. It reports whether the token may act. A lock makes attempts of one token wait
// for each other.
func (t Audits) CountAttempt(ctx context.Context, token uuid.UUID, now time.Time, hourly, daily int) (may bool, err error) {
	if err := t.lock(ctx, "attempts "+token.String()); err != nil {
		return false, err
	}
	n, err := t.execBeside(ctx, "count attempt", `WITH old AS (DELETE FROM attempts WHERE token_id = @token AND minute <= `+dayAgo+`),
		tried AS (SELECT coalesce(sum(times) FILTER (WHERE minute > `+hourAgo+`), 0) AS hour,
			coalesce(sum(times), 0) AS day FROM attempts WHERE token_id = @token AND minute > `+dayAgo+`)
		INSERT INTO attempts (token_id, minute) SELECT @token, date_trunc('minute', @now::timestamptz) FROM tried WHERE hour < @hourly AND day < @daily
		ON CONFLICT (token_id, minute) DO UPDATE SET times = attempts.times + 1`, named{"token": token, "now": now, "hourly": hourly, "daily": daily})
	return n == 1, err
}
