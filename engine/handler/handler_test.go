package handler_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

func activity(t *testing.T, kind, object string) *vocab.Activity {
	t.Helper()
	a, err := vocab.ParseActivity([]byte(`{"id":"https://peer.example/1","type":"` + kind + `","actor":"https://peer.example/carol","object":` + object + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestTheHandlerOfAnObjectTypeComesBeforeThatOfAll(t *testing.T) {
	t.Parallel()
	r := handler.New(nil, nil)
	mine := handler.Key{Type: "Create", ObjectType: "Recipe"}
	r.Register(mine, handler.Handler{Needs: func(*vocab.Activity) []vocab.ID { return []vocab.ID{"https://peer.example/key"} }})
	for object, want := range map[string]int{`{"id":"https://peer.example/2","type":"Recipe"}`: 1, `{"id":"https://peer.example/2","type":"Note"}`: 0} {
		if needs := r.Needs(activity(t, "Create", object)); len(needs) != want {
			t.Errorf("Create of %s needs %v, want %d things", object, needs, want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a second handler was registered for one key, want a panic")
		}
	}()
	r.Register(mine, handler.Handler{})
}

func TestAnUnknownTypeIsLeftAlone(t *testing.T) {
	t.Parallel()
	r := handler.New(nil, nil)
	a := activity(t, "Listen", `"https://peer.example/song"`)
	if err := r.Check(a); err != nil || r.Needs(a) != nil {
		t.Errorf("Check = %v, Needs = %v; want neither", err, r.Needs(a))
	}
	if _, err := r.Received(t.Context(), nil, &handler.Received{Activity: a}); err != nil {
		t.Error(err)
	}
	if err := r.Sent(t.Context(), nil, &handler.Sent{Activity: a}); err != nil {
		t.Error(err)
	}
}

func TestEventsHaveIdsOfTheirOwn(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	seen := map[string]bool{}
	for range 2 {
		e := handler.NewEvent(handler.EventType("Create", "received"), handler.Payload{Activity: "https://peer.example/1", Type: "Create",
			Actor: "https://peer.example/carol", Trust: user.TrustStranger}, now)
		var payload map[string]string
		if err := json.Unmarshal(e.Payload, &payload); err != nil {
			t.Fatal(err)
		}
		seen[payload["eventId"]] = true
		delete(payload, "eventId")
		want := map[string]string{"activityUri": "https://peer.example/1", "activityType": "Create", "actorUri": "https://peer.example/carol", "trust": "stranger"}
		if e.Type != "create.received" || e.Source != "ap" || !e.At.Equal(now) || len(payload) != len(want) {
			t.Errorf("event = %+v", e)
		}
		for name, value := range want {
			if payload[name] != value {
				t.Errorf("%s = %q, want %q", name, payload[name], value)
			}
		}
	}
	if len(seen) != 2 || seen[""] {
		t.Errorf("ids = %v, want two", seen)
	}
}

func TestTombstone(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600))
	for former, want := range map[string]string{
		"Note": `{"deleted":"2026-01-02T02:04:05Z","formerType":"Note","id":"https://us.example/1","type":"Tombstone"}`,
		"":     `{"deleted":"2026-01-02T02:04:05Z","id":"https://us.example/1","type":"Tombstone"}`,
	} {
		if got := string(handler.Tombstone("https://us.example/1", former, now)); got != want {
			t.Errorf("Tombstone of %q = %s, want %s", former, got, want)
		}
	}
}

func TestMine(t *testing.T) {
	t.Parallel()
	r := handler.Received{Me: vocab.ID(peertest.Origin + "/users/alice")}
	for id, want := range map[vocab.ID]bool{
		r.Me: true, r.Me + "/objects/1": true, r.Me + "#key": true, "HTTPS://US.example:443/users/alice/objects/1": true,
		r.Me + "2": false, r.Me + "2/objects/1": false, peertest.Origin + "/users": false, "https://peer.example/users/alice": false, "": false,
	} {
		if got := r.Mine(id); got != want {
			t.Errorf("Mine(%q) = %t, want %t", id, got, want)
		}
	}
}

// Handlers do not change an activity, because the writers of several users read the same activity
// at once.
func TestHandlersLeaveAloneWhatRecipientsShare(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	s.Follows("p:/carol")
	for _, body := range []string{
		`{"id":"p:/creates/1","type":"Create","actor":"p:/carol","to":"as:Public","object":{"id":"p:/notes/1","type":"Note","bto":"p:/dave"}}`,
		`{"id":"p:/updates/1","type":"Update","actor":"p:/carol","object":{"id":"p:/notes/1","type":"Note","bcc":"p:/dave","content":"new"}}`,
		`{"id":"p:/deletes/1","type":"Delete","actor":"p:/carol","object":{"id":"p:/notes/1","type":"Note"}}`,
		follow,
	} {
		a, err := vocab.ParseActivity([]byte(s.Long(body)))
		if err != nil {
			t.Fatal(err)
		}
		sender, err := s.Actors.Resolve(t.Context(), a.Actor)
		if err != nil {
			t.Fatal(err)
		}
		before := string(a.Doc.JSON())
		err = s.Store.Write(t.Context(), s.Alice, func(ctx context.Context, tx *user.Tx) error {
			_, err := s.Handlers.Received(ctx, tx, &handler.Received{User: s.Alice, Me: s.Local.ID(s.Alice), Activity: a, Actor: sender, Named: true, Now: s.Now(), Applied: s.Now(), Tells: func(string) bool { return true }})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if after := string(a.Doc.JSON()); after != before {
			t.Errorf("the activity\n%s\nbecame\n%s", before, after)
		}
	}
}
