package measure_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/measure"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestMultiplyMakesWhatTheEngineWouldHaveStored(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	a, o, _ := note(bob, 1, now)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		if _, err := tx.Activities.Claim(ctx, by(bob, a.URI)); err != nil {
			return err
		}
		return addNote(ctx, tx, bob, 1, now)
	})
	const n = 25
	var told int
	if err := measure.New(c).Multiply(t.Context(), u, a.URI, o.URI, n, func(done, all int) { told = done }); err != nil {
		t.Fatal(err)
	}
	activities, shown, err := measure.New(c).CountReceived(t.Context(), u, bob)
	if err != nil || activities != n || shown != n || told != n {
		t.Errorf("there are %d activities, %d in the feed, told of %d (%v), want %d of each", activities, shown, told, err, n)
	}
	last := vocab.ID(fmt.Sprintf("%s-%d", o.URI, n-1))
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		if object, err := tx.Objects.Find(ctx, last); err != nil || object == nil {
			t.Errorf("the last copy of the object is %v (%v)", object, err)
		}
		fresh, err := tx.Activities.Claim(ctx, by(bob, last+"/activity"))
		if len(fresh) != 0 {
			t.Error("the id of a copy can be claimed again")
		}
		items, err2 := tx.Feed.List(ctx, nil, 2)
		if err2 != nil || len(items) != 2 || items[0].Published.Sub(items[1].Published).Milliseconds() != 1 {
			t.Errorf("the feed begins with %v (%v), want copies a millisecond apart", items, err2)
		}
		return err
	})
}

func TestOweMakesWhatTheEngineWouldOweAfterDays(t *testing.T) {
	t.Parallel()
	for _, status := range []string{user.DeliveryPending, user.DeliveryParked} {
		t.Run(status, func(t *testing.T) {
			t.Parallel()
			c, u := alice(t)
			j := user.Job{ID: uuid.Must(uuid.NewV7()), Activity: "https://here.example/notes/1/activity", Object: "https://here.example/notes/1", Type: vocab.Create}
			j.Body = []byte(`{"id":"` + j.Activity + `"}`)
			var inboxes []user.Inbox
			for _, id := range []vocab.ID{"https://dead.example/users/1", "https://dead.example/users/2", "https://other.example/users/1"} {
				inboxes = append(inboxes, user.Inbox{URL: id + "/inbox", Host: id.Host(), Targets: []vocab.ID{id}})
			}
			write(t, c, u, func(ctx context.Context, tx *user.Tx) error { return tx.Deliveries.Enqueue(ctx, j, inboxes, now) })
			since := now.Add(-5 * 24 * time.Hour)
			h := instance.Host{Host: "dead.example", Failures: 9, FailingSince: &since}
			if status == user.DeliveryParked {
				h.InactiveAt = &now
			}
			const n = 25
			var told int
			if err := measure.New(c).Owe(t.Context(), u, j.Activity, h, n, now, func(done, all int) { told = done }); err != nil {
				t.Fatal(err)
			}
			read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
				open, err := tx.Deliveries.CountOpen(ctx)
				i := slices.IndexFunc(open, func(o user.OpenDeliveries) bool { return o.Status == status })
				if want := map[string]int{user.DeliveryPending: n + 3, user.DeliveryParked: n}[status]; i < 0 || open[i].Count != want || told != n {
					t.Errorf("open are %v, told of %d, want %d", open, told, want)
				}
				return err
			})
			if status == user.DeliveryPending {
				var rows []user.Delivery
				write(t, c, u, func(ctx context.Context, tx *user.Tx) (err error) {
					rows, err = tx.Deliveries.Claim(ctx, "me", now, time.Minute, user.ClaimBounds{Most: 2, Forwarded: 2})
					return err
				})
				if len(rows) != 2 || rows[0].Object != j.Object+"-1" || !strings.HasPrefix(string(rows[0].Activity), string(rows[0].Object)) || !strings.Contains(string(rows[0].Body), string(rows[0].Activity)) ||
					rows[0].Inbox == rows[1].Inbox || rows[0].Created.Before(since) || !rows[0].Created.Before(now) {
					t.Errorf("due first are %+v", rows)
				}
			}
			hosts, err := c.Instance.Hosts.List(t.Context(), true)
			parked, err2 := c.Instance.Deliveries.ListParked(t.Context())
			if err != nil || err2 != nil || len(hosts) != 1 || hosts[0].Failures != 9 || len(parked) != map[string]int{user.DeliveryParked: 1}[status] {
				t.Errorf("remembered are %+v (%v) and %+v (%v)", hosts, err, parked, err2)
			}
			if err := measure.New(c).Owe(t.Context(), u, j.Activity, instance.Host{Host: "nowhere.example", FailingSince: &since}, n, now, func(int, int) {}); fault.KindOf(err) != fault.NotFound {
				t.Errorf("owed to a host it did not go to: %v", err)
			}
		})
	}
}

func TestHostMakesConversationsThatTakeMessages(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	const n, me = 25, dbtest.AliceActor
	ids, err := measure.New(c).Host(t.Context(), u, me, n)
	if err != nil || len(ids) != n {
		t.Fatalf("%d conversations (%v), want %d", len(ids), err, n)
	}
	for _, id := range ids[:2] {
		h := dbtest.StateOf(t, c, u, id)
		if h == nil || h.GroupID != "urn:uuid:"+id.String() || h.Status != user.StatusActive || h.Mode != user.ModeEncrypted || h.Epoch != 0 {
			t.Errorf("the conversation %v is %+v", id, h)
		}
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			m, err := tx.Conversations.FindMember(ctx, id, me)
			if err == nil && !m.IsIn() {
				t.Errorf("in the conversation %v the host is no member", id)
			}
			return err
		})
	}
}

func TestServerSaysWhatItIs(t *testing.T) {
	t.Parallel()
	c, _ := alice(t)
	d := measure.New(c)
	s, err := d.DescribeServer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.Version == "" || s.Settings["synchronous_commit"] == "" || s.Settings["max_connections"] == "" || s.Backend == 0 {
		t.Errorf("the server says of itself %+v", s)
	}
	if _, err := d.CountWaits(t.Context()); err != nil {
		t.Error(err)
	}
}
