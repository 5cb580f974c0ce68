package instance

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Actors are the stored actors of other servers, with their keys.
type Actors struct{ on conns }

// RemoteActor is a stored actor of another server.
type RemoteActor struct {
	Actor     *vocab.Actor
	Handle    string    // user@host; empty until WebFinger has confirmed it
	FetchedAt time.Time // when the actor was fetched; if Gone is true, when it was marked as gone
	Gone      bool      // its server, or the actor itself, said that the actor was deleted
}

const remoteActorColumns = `a.raw, coalesce(a.handle, ''), coalesce(a.gone_at, a.fetched_at), a.gone_at IS NOT NULL`

// Find returns an actor, nil when it is not stored.
func (s Actors) Find(ctx context.Context, id vocab.ID) (*RemoteActor, error) {
	return s.find(ctx, `SELECT `+remoteActorColumns+` FROM actors a WHERE a.uri = $1`, id)
}

// FindAll returns those of the actors that are stored, by id. It leaves out an actor that an
// earlier version stored in a form that this version cannot read.
func (s Actors) FindAll(ctx context.Context, ids []vocab.ID) (map[vocab.ID]*RemoteActor, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := s.on.Query(ctx, `SELECT a.uri, `+remoteActorColumns+` FROM actors a WHERE a.uri = ANY($1)`, texts(ids))
	if err != nil {
		return nil, postgres.Fault("read remote actors", err)
	}
	defer rows.Close()
	found := make(map[vocab.ID]*RemoteActor, len(ids))
	for rows.Next() {
		var id vocab.ID
		var raw []byte
		var r RemoteActor
		if err := rows.Scan(&id, &raw, &r.Handle, &r.FetchedAt, &r.Gone); err != nil {
			return nil, postgres.Fault("read remote actors", err)
		}
		if err := r.parse(raw); fault.KindOf(err) == fault.Invalid {
			continue
		} else if err != nil {
			return nil, err
		}
		found[id] = &r
	}
	return found, postgres.Fault("read remote actors", rows.Err())
}

// FindByKey returns the actor that lists the key, nil when no such actor is stored.
func (s Actors) FindByKey(ctx context.Context, key vocab.ID) (*RemoteActor, error) {
	return s.find(ctx, `SELECT `+remoteActorColumns+` FROM actor_keys k JOIN actors a ON a.uri = k.actor_uri WHERE k.key_id = $1`, key)
}

// FindByHandle returns the actor for which WebFinger confirmed the handle user@host, nil when no
// such actor is stored. If there are several, it returns the one that was fetched last.
func (s Actors) FindByHandle(ctx context.Context, handle string) (*RemoteActor, error) {
	return s.find(ctx, `SELECT `+remoteActorColumns+` FROM actors a WHERE a.handle = $1 ORDER BY a.fetched_at DESC LIMIT 1`, handle)
}

func (s Actors) find(ctx context.Context, query string, arg any) (*RemoteActor, error) {
	var raw []byte
	var r RemoteActor
	err := s.on.QueryRow(ctx, query, arg).Scan(&raw, &r.Handle, &r.FetchedAt, &r.Gone)
	if postgres.IsNoRows(err) {
		return nil, nil
	}
	if err != nil {
		return nil, postgres.Fault("read remote actor", err)
	}
	if err := r.parse(raw); err != nil {
		return nil, err
	}
	return &r, nil
}

// parse sets r.Actor from the stored document raw.
func (r *RemoteActor) parse(raw []byte) error {
	a, err := vocab.ParseActor(raw)
	if err == nil {
		r.Actor, err = a.Reduced()
	}
	if err != nil {
		return fmt.Errorf("read remote actor: %w", err)
	}
	return nil
}

// Save stores those members of an actor's document that the engine reads, and the keys that the
// actor lists. The document must come from the actor's own server. Save skips a key of another
// origin, and a key that another stored actor lists. It changes nothing if the stored actor is
// newer than r.FetchedAt.
func (s Actors) Save(ctx context.Context, r RemoteActor) error {
	return s.write(ctx, r, `INSERT INTO actors (uri, host, handle, raw, fetched_at) VALUES (@uri, @host, nullif(@handle, ''), @raw, @fetched)
		ON CONFLICT (uri) DO UPDATE SET raw = excluded.raw, fetched_at = excluded.fetched_at, gone_at = NULL,
			handle = coalesce(excluded.handle, actors.handle) WHERE `+noLaterThan+`excluded.fetched_at`)
}

// Renew does what Save does, but only for an actor that is stored already.
func (s Actors) Renew(ctx context.Context, r RemoteActor) error {
	return s.write(ctx, r, `UPDATE actors SET host = @host, handle = coalesce(nullif(@handle, ''), handle), raw = @raw, fetched_at = @fetched, gone_at = NULL
		WHERE uri = @uri AND `+noLaterThan+`@fetched`)
}

// noLaterThan is the first part of the condition that the stored actor is not newer than a time.
// The SQL of that time is appended to it.
const noLaterThan = `coalesce(actors.gone_at, actors.fetched_at) <= `

func (s Actors) write(ctx context.Context, r RemoteActor, write string) error {
	a, err := r.Actor.Reduced()
	if err != nil {
		return fmt.Errorf("save remote actor: %w", err)
	}
	keys := make([]string, 0, len(a.Keys))
	for _, k := range a.Keys {
		if k.ID.SameOrigin(a.ID) {
			keys = append(keys, string(k.ID))
		}
	}
	args := pgx.NamedArgs{"uri": a.ID, "host": a.ID.Host(), "handle": r.Handle, "raw": a.Raw, "fetched": r.FetchedAt}
	err = s.on.inTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, write, args)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM actor_keys WHERE actor_uri = $1 AND key_id <> ALL($2)`, a.ID, keys); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO actor_keys (key_id, actor_uri) SELECT DISTINCT k, $1 FROM unnest($2::text[]) k ORDER BY k
			ON CONFLICT (key_id) DO NOTHING`, a.ID, keys)
		return err
	})
	return postgres.Fault("save remote actor", err)
}

// NoteUse stores the time now as the actor's last use if the stored last use is earlier than the
// time in the parameter since. It reports whether the actor is stored at all. Prune counts its 30
// days from the last use.
func (s Actors) NoteUse(ctx context.Context, id vocab.ID, now, since time.Time) (remembered bool, err error) {
	err = s.on.QueryRow(ctx, `WITH used AS (UPDATE actors SET used_at = $2 WHERE uri = $1 AND used_at < $3 RETURNING uri)
		SELECT EXISTS (SELECT FROM used) OR EXISTS (SELECT FROM actors WHERE uri = $1 AND used_at >= $3)`, id, now, since).Scan(&remembered)
	return remembered, postgres.Fault("note use of remote actor", err)
}

// MarkGone stores that the actor's server, or the actor itself, said that the actor was deleted.
// The keys of the actor verify no signatures until Save stores the actor again.
func (s Actors) MarkGone(ctx context.Context, id vocab.ID, now time.Time) error {
	_, err := s.on.Exec(ctx, `UPDATE actors SET gone_at = $2 WHERE uri = $1`, id, now)
	return postgres.Fault("mark actor gone", err)
}

// MarkStale makes the stored actor count as fetched in 1970, so that its next use fetches it
// again. If its server does not answer then, the stored actor is still used.
func (s Actors) MarkStale(ctx context.Context, id vocab.ID) error {
	_, err := s.on.Exec(ctx, `UPDATE actors SET fetched_at = 'epoch' WHERE uri = $1`, id)
	return postgres.Fault("mark actor stale", err)
}

// How long a remote actor that is no user's acquaintance stays stored.
const (
	actorUnused = 30 * 24 * time.Hour  // since the last use
	actorGone   = 365 * 24 * time.Hour // since the deletion
)

// useNoted is longer than the time between two calls of NoteUse for an actor that is in use.
const useNoted = 48 * time.Hour

// pruneBatch is the number of rows that one pruning statement handles.
const pruneBatch = 500

// Prune removes the actors that are no user's acquaintance and that were not used for 30 days; an
// actor that was deleted stays for a year instead. Actors that an activity in the journal needs
// stay as long as the activity waits. Prune uses statements of bounded size with rests between
// them. It returns how many actors it removed. If dryRun is true, it only counts these actors.
func (s Actors) Prune(ctx context.Context, now time.Time, dryRun bool) (n int, err error) {
	unused, err := s.unusedSince(ctx, now)
	if err != nil {
		return 0, err
	}
	const old = `uri = ANY($1) AND CASE WHEN gone_at IS NULL THEN used_at < $2 ELSE gone_at < $3 END
		AND NOT EXISTS (SELECT FROM acquaintances q WHERE q.actor_uri = a.uri)`
	query := `WITH gone AS (DELETE FROM actors a WHERE ` + old + ` RETURNING 1) SELECT count(*) FROM gone`
	if dryRun {
		query = `SELECT count(*) FROM actors a WHERE ` + old
	}
	for last := ""; ; {
		began := time.Now()
		page, err := postgres.CollectColumn[string](ctx, s.on, "list remote actors", `SELECT uri FROM actors WHERE uri > $1 ORDER BY uri LIMIT $2`, last, pruneBatch)
		if err != nil || len(page) == 0 {
			return n, err
		}
		var some int
		if err := s.on.QueryRow(ctx, query, page, unused, now.Add(-actorGone)).Scan(&some); err != nil {
			return n, postgres.Fault("prune remote actors", err)
		}
		n += some
		if len(page) < pruneBatch {
			return n, nil
		}
		last = page[len(page)-1]
		if err := postgres.Rest(ctx, time.Since(began)); err != nil {
			return n, err
		}
	}
}

// unusedSince returns the time before which an actor must have been used last, so that Prune
// removes it: 30 days ago, or before any activity in the journal arrived if that is earlier. The
// use of the actors that an activity needs is noted when it arrives, but only once a day.
func (s Actors) unusedSince(ctx context.Context, now time.Time) (time.Time, error) {
	since := now.Add(-actorUnused)
	var oldest *time.Time
	if err := s.on.QueryRow(ctx, `SELECT min(received_at) FROM intake`).Scan(&oldest); err != nil {
		return since, postgres.Fault("look into the journal", err)
	}
	if oldest != nil && oldest.Add(-useNoted).Before(since) {
		since = oldest.Add(-useNoted)
	}
	return since, nil
}
