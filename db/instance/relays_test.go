package instance_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestRelays(t *testing.T) {
	t.Parallel()
	c, _ := alice(t)
	ctx, now := t.Context(), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	relay := instance.Relay{Actor: "https://relay.example/actor", Inbox: "https://relay.example/inbox", Style: instance.RelayMastodon, State: instance.RelayPending,
		Follow: "https://us.example/actor#follows/1", CreatedAt: now, UpdatedAt: now}
	other := instance.Relay{Actor: "https://another.example/relay", Inbox: "https://another.example/inbox", Style: instance.RelayLitePub, State: instance.RelayPending,
		Follow: "https://us.example/actor#follows/2", CreatedAt: now, UpdatedAt: now}
	for _, r := range []instance.Relay{relay, other} {
		if err := c.Instance.Relays.Save(ctx, r, now); err != nil {
			t.Fatal(err)
		}
	}
	want := func(when string, all ...instance.Relay) {
		t.Helper()
		got, err := c.Instance.Relays.All(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(all, got); diff != "" {
			t.Errorf("%s: %s", when, diff)
		}
	}
	want("added", other, relay)

	later := now.Add(time.Hour)
	for _, s := range []struct {
		name          string
		actor, follow vocab.ID
		want          bool
	}{
		{"another one's Follow", relay.Actor, other.Follow, false},
		{"somebody else", "https://evil.example/actor", relay.Follow, false},
		{"the relay", relay.Actor, relay.Follow, true},
	} {
		if got, err := c.Instance.Relays.SetState(ctx, s.actor, s.follow, instance.RelayAccepted, later); err != nil || got != s.want {
			t.Errorf("%s: %v, %v; want %v", s.name, got, err, s.want)
		}
	}
	relay.State, relay.UpdatedAt = instance.RelayAccepted, later
	want("accepted", other, relay)
	if _, err := c.Instance.Relays.SetState(ctx, relay.Actor, relay.Follow, instance.RelayAccepted, later.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	want("accepted again", other, relay)

	if got, err := c.Instance.Relays.Find(ctx, relay.Actor); err != nil || got == nil || *got != relay {
		t.Errorf("by actor: %+v, %v; want %+v", got, err, relay)
	}
	if got, err := c.Instance.Relays.Find(ctx, "https://evil.example/actor"); err != nil || got != nil {
		t.Errorf("nobody: %+v, %v; want none", got, err)
	}

	relay.State, relay.Follow, relay.UpdatedAt = instance.RelayPending, "https://us.example/actor#follows/3", later.Add(2*time.Hour)
	if err := c.Instance.Relays.Save(ctx, relay, relay.UpdatedAt); err != nil {
		t.Fatal(err)
	}
	want("added again", other, relay)

	for _, there := range []bool{true, false} {
		if got, err := c.Instance.Relays.Remove(ctx, other.Actor); err != nil || got != there {
			t.Errorf("remove: %v, %v; want %v", got, err, there)
		}
	}
	want("removed", relay)
}

func TestFollowedOn(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	ctx := t.Context()
	for actor, follows := range map[vocab.ID]bool{"https://followed.example/users/bob": true, "https://known.example/users/eve": false,
		"https://followed.example.evil.example/users/eve": false, "https://port.example:8443/carol": true} {
		if err := c.Instance.Acquaintances.Add(ctx, actor, []vocab.Username{u}, follows); err != nil {
			t.Fatal(err)
		}
	}
	for origin, want := range map[string]bool{"https://followed.example": true, "http://followed.example": false, "https://known.example": false,
		"https://followed.example.evil.example": false, "https://port.example": false, "https://port.example:8443": true, "https://followed": false, "": false} {
		if got, err := c.Instance.Acquaintances.IsFollowed(ctx, origin); err != nil || got != want {
			t.Errorf("FollowedOn(%q) = %v, %v; want %v", origin, got, err, want)
		}
	}
}
