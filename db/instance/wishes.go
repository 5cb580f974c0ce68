package instance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The kinds of wishes (see Wish).
const (
	WishBlock  = "block"
	WishMute   = "mute"
	WishFollow = "follow"
)

// MaxWishes limits how many wishes of one kind a user may have.
const MaxWishes = 10_000

// maxQuick limits the number of blocks and mutes of one user that one call of Due returns.
const maxQuick = 20

// Wish is an account that a user will block, mute or follow because of an import.
type Wish struct {
	User     vocab.Username `db:"username"`
	Kind     string
	Account  string // a handle or an id
	Host     string
	Attempts int // that failed
}

// Wishes are the wishes of all users.
type Wishes struct{ on conns }

// Add adds wishes of one user, and returns how many are new. A wish that is stored already stays
// as it is. The fault is Conflict, and nothing is added, when u would have more than MaxWishes of
// one kind.
func (s Wishes) Add(ctx context.Context, u vocab.Username, all []Wish, now time.Time) (added int, err error) {
	err = s.on.inTx(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		added, err = insertWishes(ctx, tx, u, all, now)
		return err
	})
	return added, postgres.Fault("store wishes", err)
}

// Check returns the fault that Add would return, and adds nothing.
func (s Wishes) Check(ctx context.Context, u vocab.Username, all []Wish, now time.Time) error {
	taken := errors.New("taken")
	err := s.on.inTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := insertWishes(ctx, tx, u, all, now); err != nil {
			return err
		}
		return taken // so that nothing stays
	})
	if errors.Is(err, taken) {
		return nil
	}
	return postgres.Fault("check wishes", err)
}

func insertWishes(ctx context.Context, tx pgx.Tx, u vocab.Username, all []Wish, now time.Time) (added int, err error) {
	var kinds, accounts, hosts []string
	for _, w := range all {
		kinds, accounts, hosts = append(kinds, w.Kind), append(accounts, postgres.Text(w.Account)), append(hosts, postgres.Text(w.Host))
	}
	if err := lockUser(ctx, tx, u); err != nil {
		return 0, err
	}
	tag, err := tx.Exec(ctx, `INSERT INTO wishes (username, kind, account, host, due_at)
		SELECT $1, kind, account, host, $5 FROM unnest($2::text[], $3::text[], $4::text[]) AS w (kind, account, host)
		ON CONFLICT DO NOTHING`, u, kinds, accounts, hosts, now)
	if err != nil {
		return 0, err
	}
	var most int
	if err := tx.QueryRow(ctx, `SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM wishes WHERE username = $1 GROUP BY kind) AS k`, u).Scan(&most); err != nil {
		return 0, err
	}
	if most > MaxWishes {
		return 0, fault.New(fault.Conflict, fmt.Sprintf("more than %d accounts would wait for %s", MaxWishes, u)).WithHint("import again when some of them are done")
	}
	return int(tag.RowsAffected()), nil
}

// Due returns wishes that are due, in random order. For each active user it returns up to
// maxQuick blocks and mutes, and one follow. It returns at most a given number of wishes.
func (s Wishes) Due(ctx context.Context, now time.Time, most int) ([]Wish, error) {
	return postgres.Collect[Wish](ctx, s.on, "list wishes", `
		WITH RECURSIVE whose AS (
			(SELECT username FROM wishes ORDER BY username LIMIT 1)
			UNION ALL
			SELECT (SELECT w.username FROM wishes w WHERE w.username > whose.username ORDER BY w.username LIMIT 1) FROM whose WHERE whose.username IS NOT NULL)
		SELECT w.username, w.kind, w.account, w.host, w.attempts FROM whose JOIN users u ON u.username = whose.username AND u.state = 'active'
		CROSS JOIN LATERAL (
			(SELECT * FROM wishes WHERE username = u.username AND kind IN ('block', 'mute') AND due_at <= $1 ORDER BY kind, due_at LIMIT $2)
			UNION ALL
			(SELECT * FROM wishes WHERE username = u.username AND kind = 'follow' AND due_at <= $1 ORDER BY due_at LIMIT 1)) AS w
		ORDER BY random() LIMIT $3`, now, maxQuick, most)
}

// Remove removes a wish that is fulfilled, or that cannot be fulfilled.
func (s Wishes) Remove(ctx context.Context, w Wish) error {
	_, err := s.on.Exec(ctx, `DELETE FROM wishes WHERE username = $1 AND kind = $2 AND account = $3`, w.User, w.Kind, w.Account)
	return postgres.Fault("remove wish", err)
}

// ListAccounts returns the accounts of the wishes of one kind that u has.
func (s Wishes) ListAccounts(ctx context.Context, u vocab.Username, kind string) ([]string, error) {
	return postgres.CollectColumn[string](ctx, s.on, "list wishes of a user", `SELECT account FROM wishes WHERE username = $1 AND kind = $2`, u, kind)
}

// Postpone stores the number of failed attempts that w has, and when the next attempt is due.
func (s Wishes) Postpone(ctx context.Context, w Wish, until time.Time) error {
	_, err := s.on.Exec(ctx, `UPDATE wishes SET attempts = $5, due_at = $4 WHERE username = $1 AND kind = $2 AND account = $3`, w.User, w.Kind, w.Account, until, w.Attempts)
	return postgres.Fault("postpone wish", err)
}
