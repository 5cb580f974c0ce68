package db

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// From when on attempts count at the time $2: those of a minute count until all of it is so old.
const (
	hourAgo = `$2::timestamptz - interval '1 hour 1 minute'`
	dayAgo  = `$2::timestamptz - interval '24 hours 1 minute'`
)

// Attempts are how often a token has tried to act, and when the first of these attempts was.
type Attempts struct {
	Hour, Day           int
	HourSince, DaySince time.Time // of the minute; now when there was none
}

// Attempts returns how often a token has tried within the last hour and the last day, as
// CountAttempt counts it.
func (t *Tx) Attempts(ctx context.Context, token uuid.UUID, now time.Time) (a Attempts, err error) {
	err = t.row(ctx, "read attempts", `SELECT coalesce(sum(times) FILTER (WHERE minute > `+hourAgo+`), 0), coalesce(sum(times), 0),
		coalesce(min(minute) FILTER (WHERE minute > `+hourAgo+`), $2), coalesce(min(minute), $2)
		FROM attempts WHERE token_id = $1 AND minute > `+dayAgo, []any{token, now}, &a.Hour, &a.Day, &a.HourSince, &a.DaySince)
	return a, err
}

// CountAttempt counts that a token tries to act, if it has tried less than so often within the
// last hour and the last day. Attempts of one token are counted one after another.
func (t *Tx) CountAttempt(ctx context.Context, token uuid.UUID, now time.Time, hourly, daily int) (may bool, err error) {
	if err := t.Lock(ctx, "attempts "+token.String()); err != nil {
		return false, err
	}
	n, err := t.execBeside(ctx, "count attempt", `WITH old AS (DELETE FROM attempts WHERE token_id = $1 AND minute <= `+dayAgo+`),
		tried AS (SELECT coalesce(sum(times) FILTER (WHERE minute > `+hourAgo+`), 0) AS hour,
			coalesce(sum(times), 0) AS day FROM attempts WHERE token_id = $1 AND minute > `+dayAgo+`)
		INSERT INTO attempts (token_id, minute) SELECT $1, date_trunc('minute', $2::timestamptz) FROM tried WHERE hour < $3 AND day < $4
		ON CONFLICT (token_id, minute) DO UPDATE SET times = attempts.times + 1`, token, now, hourly, daily)
	return n == 1, err
}
