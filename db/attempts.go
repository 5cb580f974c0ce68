package db

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// CountAttempt counts that a token tries to act, if it has tried less than so often within the
// last hour and the last day. Attempts of one token are counted one after another.
func (t *Tx) CountAttempt(ctx context.Context, token uuid.UUID, now time.Time, hourly, daily int) (may bool, err error) {
	if err := t.Lock(ctx, "attempts "+token.String()); err != nil {
		return false, err
	}
	n, err := t.execBeside(ctx, "count attempt", `WITH old AS (DELETE FROM attempts WHERE token_id = $1 AND minute <= $2::timestamptz - interval '24 hours 1 minute'),
		tried AS (SELECT coalesce(sum(times) FILTER (WHERE minute > $2::timestamptz - interval '1 hour 1 minute'), 0) AS hour,
			coalesce(sum(times), 0) AS day FROM attempts WHERE token_id = $1 AND minute > $2::timestamptz - interval '24 hours 1 minute')
		INSERT INTO attempts (token_id, minute) SELECT $1, date_trunc('minute', $2::timestamptz) FROM tried WHERE hour < $3 AND day < $4
		ON CONFLICT (token_id, minute) DO UPDATE SET times = attempts.times + 1`, token, now, hourly, daily)
	return n == 1, err
}
