package outbox

import (
	"context"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/feed"
)

// entries returns the entries of the main feed, newest first.
func (d *desk) entries() (items []user.FeedItem) {
	d.t.Helper()
	d.read(func(ctx context.Context, tx *user.Tx) (err error) {
		items, err = tx.Feed.List(ctx, nil, 10)
		return err
	})
	return items
}

// readUpTo returns the entry up to which the main feed is marked as read. If there is no mark, it
// returns the zero id.
func (d *desk) readUpTo() (id uuid.UUID) {
	d.t.Helper()
	d.read(func(ctx context.Context, tx *user.Tx) error {
		mark, err := tx.Feed.FindMark(ctx, feed.Main)
		if mark != nil {
			id = mark.ID
		}
		return err
	})
	return id
}

// A mark moves only forward. Marking stores no activity and no deliveries. Each time the mark
// moves, other programs get one event.
func TestAFeedIsMarkedAsRead(t *testing.T) {
	t.Parallel()
	d := town(t)
	for range 3 {
		d.note(map[string]any{"content": "hello"})
	}
	d.owed()
	sent, told, items := d.sent(), len(d.events()), d.entries()
	middle := items[1].ID
	mark := func(params map[string]any) Result {
		t.Helper()
		r, err := d.dispatch("MarkRead", params)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := mark(map[string]any{"feed": "main", "entryId": middle.String()}); r.ActivityID != "" || r.Job != nil {
		t.Errorf("answered with %+v, want neither activity nor job", r)
	}
	if got := d.readUpTo(); got != middle {
		t.Errorf("read up to %s, want %s", got, middle)
	}
	oldest := user.Place{At: items[2].Published, ID: items[2].ID}
	mark(map[string]any{"feed": "main", "cursor": feed.EncodeCursor(d.alice.String()+"/feed/main", oldest)})
	if got := d.readUpTo(); got != middle {
		t.Errorf("after an older item was marked, read up to %s, want %s", got, middle)
	}
	if _, err := d.keyed("k", "MarkRead", map[string]any{"feed": "main", "entryId": items[0].ID.String()}); err != nil {
		t.Fatal(err)
	}
	if again, err := d.keyed("k", "MarkRead", map[string]any{"feed": "main", "entryId": items[0].ID.String()}); err != nil || !again.Replayed {
		t.Errorf("with the same key: %+v, %v; want the stored answer", again, err)
	}
	if got := d.readUpTo(); got != items[0].ID {
		t.Errorf("read up to %s, want %s", got, items[0].ID)
	}
	if got := d.events()[told:]; !slices.Equal(got, []string{"feed.read", "feed.read"}) {
		t.Errorf("events %q, want feed.read for each time the mark moved", got)
	}
	if owed := d.owed(); d.sent() != sent || len(owed) != 0 {
		t.Errorf("%d activities and %d deliveries were made, want none", d.sent()-sent, len(owed))
	}
	for _, tt := range []struct {
		params map[string]any
		kind   fault.Kind
		code   string
	}{
		{map[string]any{"feed": "home", "entryId": middle.String()}, fault.Unprocessable, "invalid_parameter"},
		{map[string]any{"feed": "group.friends", "entryId": middle.String()}, fault.Unprocessable, "invalid_parameter"},
		{map[string]any{"feed": "main"}, fault.Unprocessable, "invalid_parameter"},
		{map[string]any{"entryId": middle.String()}, fault.Unprocessable, "invalid_parameter"},
		{map[string]any{"feed": "main", "entryId": "x"}, fault.Unprocessable, "invalid_parameter"},
		{map[string]any{"feed": "main", "entryId": middle.String(), "cursor": "x"}, fault.Unprocessable, "invalid_parameter"},
		{map[string]any{"feed": "notifications", "cursor": feed.EncodeCursor(d.alice.String()+"/feed/main", oldest)}, fault.Unprocessable, "invalid_parameter"},
		{map[string]any{"feed": "notifications", "entryId": middle.String()}, fault.NotFound, "no_entry"},
		{map[string]any{"feed": "main", "entryId": uuid.NewString()}, fault.NotFound, "no_entry"},
	} {
		d.refused("MarkRead", tt.params, tt.kind, tt.code)
	}
}
