package event_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/event"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/vocab"
)

// numbersOf returns the numbers of events as a text, such as "3 4 5".
func numbersOf(events []event.Event) string {
	var all []string
	for _, e := range events {
		all = append(all, fmt.Sprint(e.ID.Seq))
	}
	return strings.Join(all, " ")
}

// idOf returns the stream's id for the event with the number seq.
func (r *rig) idOf(u vocab.Username, seq uint64) keyspace.ID {
	r.t.Helper()
	for _, row := range r.rows(u) {
		id, err := keyspace.ParseID(strings.Fields(row)[0])
		if err != nil {
			r.t.Fatal(err)
		}
		if id.Seq == seq {
			return id
		}
	}
	r.t.Fatalf("no event %d", seq)
	return keyspace.ID{}
}

// If the stream has dropped events, a reader gets them from the database, each once and in order.
// If the database has dropped them, too, the page says that events are missing.
func TestReadersGoOnFromAnyEvent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		meet  func(r *rig, alice vocab.Username)
		after uint64
		want  event.Page
		seqs  string
	}{
		{name: "all are on the stream", after: 4, seqs: "5 6 7 8"},
		{name: "from the beginning", after: 0, seqs: "1 2 3 4 5 6 7 8"},
		{name: "the stream was shortened", meet: func(r *rig, _ vocab.Username) { r.redis.Do("XTRIM", "alice:events", "MAXLEN", "3") }, after: 2, seqs: "3 4 5 6 7 8"},
		{name: "the database was shortened", meet: func(r *rig, alice vocab.Username) { r.sql(alice, `DELETE FROM event_outbox WHERE seq < 6`) }, after: 2, seqs: "3 4 5 6 7 8"},
		{name: "both were shortened", meet: func(r *rig, alice vocab.Username) {
			r.redis.Do("XTRIM", "alice:events", "MAXLEN", "3")
			r.sql(alice, `DELETE FROM event_outbox WHERE seq < 5`)
		}, after: 2, want: event.Page{Gap: true}, seqs: "5 6 7 8"},
		{name: "both were shortened up to the reader", meet: func(r *rig, alice vocab.Username) {
			r.redis.Do("XTRIM", "alice:events", "MAXLEN", "6")
			r.sql(alice, `DELETE FROM event_outbox WHERE seq < 3`)
		}, after: 2, seqs: "3 4 5 6 7 8"},
		{name: "a number was never given", meet: func(r *rig, alice vocab.Username) {
			r.sql(alice, `SELECT nextval('event_outbox_seq_seq')`)
			r.add(alice, 1)
			r.wantSame(alice)
		}, after: 8, seqs: "10"},
		{name: "Redis is away", meet: func(r *rig, _ vocab.Username) { r.redis.Kill() }, after: 6, seqs: "7 8"},
		{name: "the database was set back", meet: func(r *rig, alice vocab.Username) {
			r.stop()
			r.sql(alice, `DELETE FROM event_outbox WHERE seq > 2`)
			r.sql(alice, `ALTER SEQUENCE event_outbox_seq_seq RESTART WITH 3`)
			r.redis.Do("DEL", "alice:events")
		}, after: 8, want: event.Page{Ahead: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, alice := emitted(t, 8)
			after := keyspace.ID{}
			if tt.after > 0 {
				after = r.idOf(alice, tt.after)
			}
			if tt.meet != nil {
				tt.meet(r, alice)
			}
			reader := &event.Reader{Store: r.store, Streams: r.keys.Events}
			p, err := reader.After(t.Context(), alice, after, 100)
			if err != nil || p.Gap != tt.want.Gap || p.Ahead != tt.want.Ahead || numbersOf(p.Events) != tt.seqs {
				t.Errorf("after %d: %s, gap %t, ahead %t, %v; want %s, %+v", tt.after, numbersOf(p.Events), p.Gap, p.Ahead, err, tt.seqs, tt.want)
			}
			p, err = reader.After(t.Context(), alice, after, 1)
			if first, _, _ := strings.Cut(tt.seqs, " "); err != nil || numbersOf(p.Events) != first {
				t.Errorf("one event after %d: %s, %v; want %s", tt.after, numbersOf(p.Events), err, first)
			}
		})
	}
}

func TestReadersWaitForTheNextEvent(t *testing.T) {
	t.Parallel()
	r, alice := emitted(t, 3)
	reader := &event.Reader{Store: r.store, Streams: r.keys.Events}
	last, err := reader.Last(t.Context(), alice)
	if err != nil || last.Seq != 3 {
		t.Fatalf("the last id is %v, %v", last, err)
	}
	if p, err := reader.Next(t.Context(), alice, last, 10, 10*time.Millisecond); err != nil || len(p.Events) > 0 || p.Gap || p.Ahead {
		t.Errorf("nothing has happened: %+v, %v", p, err)
	}
	got := make(chan string)
	go func() {
		p, err := reader.Next(t.Context(), alice, last, 10, 10*time.Second)
		got <- fmt.Sprint(numbersOf(p.Events), err)
	}()
	r.add(alice, 1)
	if s := <-got; s != "4<nil>" {
		t.Errorf("the next event: %s", s)
	}
	if newest, err := reader.Newest(t.Context(), alice, 2, func(e event.Event) bool { return e.ID.Seq != 3 }); err != nil || numbersOf(newest) != "2 4" {
		t.Errorf("the newest two without the third: %s, %v", numbersOf(newest), err)
	}
	if id, err := reader.Before(t.Context(), alice, time.Now().Add(time.Minute)); err != nil || id != r.idOf(alice, 4) {
		t.Errorf("the last event before a minute from now: %v, %v", id, err)
	}
	if id, err := reader.Before(t.Context(), alice, time.Now().Add(-time.Hour)); err != nil || id != (keyspace.ID{}) {
		t.Errorf("the last event before an hour ago: %v, %v", id, err)
	}
}
