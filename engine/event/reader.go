package event

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Page is a part of a user's events.
type Page struct {
	Events []Event // the oldest first
	// Gap says that events after the requested id are gone from the stream and from the
	// database. The page then begins with the oldest event that is left.
	Gap bool
	// Ahead says that the requested id is higher than any that the database has given out,
	// because the database was set back to an earlier state. The caller has to begin anew.
	Ahead bool
}

// Reader reads users' events without a consumer group. Events that the stream does not have are
// read from the database. Its methods may be called concurrently.
type Reader struct {
	Store   Store
	Streams *keyspace.Store
}

// After returns up to n events after an id; the zero ID is before all events. If Redis does not
// answer, it reads the events from the database.
func (r *Reader) After(ctx context.Context, u vocab.Username, after keyspace.ID, n int) (Page, error) {
	entries, err := r.Streams.Of(u).Range(ctx, Stream, after, n)
	if err == nil && len(entries) > 0 && entries[0].ID.Seq == after.Seq+1 {
		return Page{Events: eventsOf(entries)}, nil
	}
	if err != nil && !keyspace.IsAway(err) {
		return Page{}, err
	}
	rows, window, err := readRows(ctx, r.Store, u, int64(after.Seq), n)
	if err != nil {
		return Page{}, err
	}
	if window.Given < int64(after.Seq) {
		return Page{Ahead: true}, nil
	}
	p := Page{Events: joinEvents(rows, entries, n)}
	p.Gap = after.Seq > 0 && len(p.Events) > 0 && p.Events[0].ID.Seq > after.Seq+1 && window.Oldest > int64(after.Seq)
	return p, nil
}

// joinEvents merges rows and entries of the stream by their numbers, and returns the first n
// events, each once.
func joinEvents(rows []user.Event, entries []keyspace.Entry, n int) []Event {
	all := eventsOf(entries)
	for _, row := range rows {
		all = append(all, Of(entryOf(row)))
	}
	slices.SortStableFunc(all, func(a, b Event) int { return cmp.Compare(a.ID.Seq, b.ID.Seq) })
	all = slices.CompactFunc(all, func(a, b Event) bool { return a.ID.Seq == b.ID.Seq })
	return all[:min(n, len(all))]
}

// Next returns up to n events after an id, like After. If the stream has none, Next waits for new
// events, for the duration in the parameter while at most. Unlike After, Next fails if Redis does
// not answer.
func (r *Reader) Next(ctx context.Context, u vocab.Username, after keyspace.ID, n int, while time.Duration) (Page, error) {
	entries, err := r.Streams.Of(u).Wait(ctx, Stream, after, n, while)
	if err != nil {
		return Page{}, err
	}
	if len(entries) == 0 {
		last, err := r.Last(ctx, u)
		if err != nil || !last.Less(after) {
			return Page{}, err
		}
	} else if entries[0].ID.Seq == after.Seq+1 {
		return Page{Events: eventsOf(entries)}, nil
	}
	return r.After(ctx, u, after, n)
}

// Newest returns the last n events of the stream for which keep returns true, the oldest first.
func (r *Reader) Newest(ctx context.Context, u vocab.Username, n int, keep func(Event) bool) ([]Event, error) {
	var kept []Event
	for before := (keyspace.ID{}); len(kept) < n; {
		entries, err := r.Streams.Of(u).NewestBefore(ctx, Stream, before, batch)
		if err != nil {
			return nil, err
		}
		for k := len(entries) - 1; k >= 0 && len(kept) < n; k-- {
			if e := Of(entries[k]); keep(e) {
				kept = append(kept, e)
			}
		}
		if len(entries) < batch {
			break
		}
		before = entries[0].ID
	}
	slices.Reverse(kept)
	return kept, nil
}

// Before returns the id of the last event before a time, or the zero ID if there is none.
func (r *Reader) Before(ctx context.Context, u vocab.Username, t time.Time) (id keyspace.ID, err error) {
	err = r.Store.Read(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		e, err := tx.Events.FindBefore(ctx, t)
		if e != nil {
			id = idOf(*e)
		}
		return err
	})
	return id, err
}

// Last returns the last id of the user's stream.
func (r *Reader) Last(ctx context.Context, u vocab.Username) (keyspace.ID, error) {
	return r.Streams.Of(u).LastID(ctx, Stream)
}

// readRows reads up to n events from a user's database. These are the first events with numbers
// higher than the parameter after. readRows leaves out the event that still counts withheld
// events (see withheldType).
func readRows(ctx context.Context, store Store, u vocab.Username, after int64, n int) (rows []user.Event, w user.EventWindow, err error) {
	err = store.Read(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		if rows, err = tx.Events.List(ctx, after, n); err != nil {
			return err
		}
		w, err = tx.Events.FindWindow(ctx)
		return err
	})
	return withoutOpen(rows, w), w, err
}

func eventsOf(entries []keyspace.Entry) []Event {
	all := make([]Event, len(entries))
	for n, e := range entries {
		all[n] = Of(e)
	}
	return all
}

// Of returns the event of an entry.
func Of(e keyspace.Entry) Event {
	return Event{ID: e.ID, Type: e.Field("type"), Source: e.Field("source"), Payload: json.RawMessage(e.Field("payload")), Timestamp: e.Field("timestamp")}
}
