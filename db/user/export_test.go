package user

import (
	"context"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Exec runs any statement in a transaction.
func Exec(ctx context.Context, t *Tx, query string) error {
	_, err := t.exec(ctx, "test", query)
	return err
}

// Sever closes the connection of a transaction on the side of the client.
func Sever(t *Tx) error { return t.conn.PgConn().Conn().Close() }

// Count counts the deliveries of a job by state.
func (t Jobs) Count(ctx context.Context, job uuid.UUID) (JobCounts, error) {
	c, err := one[JobCounts](ctx, t.tx, "count deliveries", `SELECT count(*) AS total, count(*) FILTER (WHERE status = 'pending') AS pending, count(*) FILTER (WHERE status = 'delivered') AS delivered,
		count(*) FILTER (WHERE status = 'failed') AS failed, count(*) FILTER (WHERE status = 'skipped') AS skipped FROM deliveries WHERE job_id = $1`, job)
	if err != nil {
		return JobCounts{}, err
	}
	return *c, nil
}

// Count counts the reactions of a type to an object.
func (t Reactions) Count(ctx context.Context, object vocab.ID, kind, reaction string) (int, error) {
	return t.count(ctx, `SELECT count(*) FROM reactions WHERE object_uri = $1 AND kind = $2 AND type = $3`, object, kind, reaction)
}

// CountAnswers counts the stored answers.
func CountAnswers(ctx context.Context, t *Tx) (n int, err error) {
	err = t.row(ctx, "test", `SELECT count(*) FROM idempotency_keys`, nil, &n)
	return n, err
}

// Unsent counts the activities that t has not yet sent to the database.
func Unsent(t *Tx) int { return len(t.unsent.activities) }

// KeptOfFollower is the number of activities of a follower that pruning keeps, if the follower is
// no contact.
const KeptOfFollower = keptOfFollower

// ArrivedBy is the function arrivedBy, exported for tests.
var ArrivedBy = arrivedBy

// These are the SQL predicates of audiences. Each refers to the document as raw.
var (
	AddressesPublic = addressesPublic
	Private         = privateIn("raw", "raw ->> 'attributedTo'", "@to::text")
	Named           = namedIn("raw", "@to::text")
	SentTo          = sentTo("raw", "@to::text")
	Among           = amongIn("raw", "@to::jsonb")
	Here            = hereIn("raw", "raw ->> 'attributedTo'")
	AddressesAny    = addressesAny
	Listed          = formsOf
)

// Holds reports whether a predicate holds for a document, which the predicate names raw. It calls
// its argument @to.
func Holds(ctx context.Context, t *Tx, predicate string, raw []byte, args ...any) (is bool, err error) {
	all := named{"raw": raw}
	for _, to := range args {
		all["to"] = to
	}
	err = t.row(ctx, "test", `SELECT coalesce(`+predicate+`, false) FROM (SELECT @raw::jsonb AS raw) d`, []any{all}, &is)
	return is, err
}

// WriteTold does the same as Write, and returns the Commit instead of passing it to subscribers.
func (d *Databases) WriteTold(ctx context.Context, u vocab.Username, work func(context.Context, *Tx) error) (*Commit, error) {
	return d.write(ctx, u, work)
}

// SubscriberTime is the longest time that a writer waits for one subscriber.
const SubscriberTime = subscriberTime

// NamedArgs are the arguments of a statement by name.
type NamedArgs = named
