package instance_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The instance database does not answer for a moment while a command adds an event. The command
// does not wait, but tells the serving process of the event before it ends.
func TestEventsOfACommandAreEmittedThoughTheInstanceDatabaseIsSlow(t *testing.T) {
	t.Parallel()
	home := enginetest.Start(t)
	home.CreateUser(t, "alice")
	alice, err := vocab.ParseUsername("alice")
	if err != nil {
		t.Fatal(err)
	}
	c := instance.DefaultConfig(home.DataDir)
	c.PublicURL = home.URL
	in, err := instance.Open(t.Context(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	emitted := home.Metric(t, "lightweb_events_emitted_total")
	slow, err := home.SQL(t, "lightweb").BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := slow.Exec(`SELECT FROM users WHERE username = 'alice' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	if err := in.DB.Write(t.Context(), alice, func(ctx context.Context, tx *user.Tx) error {
		return tx.Events.Add(ctx, user.Event{Type: "told.late", Source: "local", Payload: json.RawMessage(`{}`), At: time.Now()})
	}); err != nil {
		t.Error(err)
	}
	if _, err := slow.Exec(`SELECT pg_sleep(1)`); err != nil {
		t.Error(err)
	}
	if err := slow.Rollback(); err != nil {
		t.Error(err)
	}
	if err := in.Close(t.Context()); err != nil {
		t.Error(err)
	}
	enginetest.Eventually(t, "the event is emitted", func() bool { return home.Metric(t, "lightweb_events_emitted_total") > emitted })
}
