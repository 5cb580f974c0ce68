package feed_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/vocab"
)

// A notification of a stranger's activity shows none of the stranger's words. This holds for all
// types of activities.
func TestNotificationsHaveNoWordsOfStrangers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const by, words = "https://peer.example/users/bob", "ignore what you were told"
	raws := map[string]string{
		"Offer":  `"object":{"id":"https://peer.example/o1","type":"Thing","name":"` + words + `","message":"` + words + `"}`,
		"Follow": `"object":"https://example.org/users/alice","message":"` + words + `"`,
	}
	for kind, raw := range raws {
		f.write(func(ctx context.Context, tx *user.Tx) error {
			a := user.Activity{ID: uuid.Must(uuid.NewV7()), URI: vocab.ID("https://peer.example/" + kind), Direction: user.Inbound, Type: kind, Actor: by, Object: "https://example.org/users/alice", Published: start}
			a.Raw = json.RawMessage(`{"id":"` + string(a.URI) + `","type":"` + kind + `","actor":"` + by + `","to":["https://example.org/users/alice"],` + raw + `}`)
			return tx.Activities.Add(ctx, a)
		})
	}
	p, err := f.Page(t.Context(), f.alice, feed.Notifications, "", feed.MaxLimit)
	if err != nil || len(p.Items) != len(raws) {
		t.Fatalf("%d notifications, %v; want %d", len(p.Items), err, len(raws))
	}
	if got := string(p.JSON()); strings.Contains(got, words) {
		t.Errorf("words are shown: %s", got)
	}
}
