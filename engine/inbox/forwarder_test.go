package inbox_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/inbox"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The engine knows which local user handed an activity over while the activity waits in the
// journal, after a restart, and when an operator retries it. bob follows alice, so an answer that
// she forwards to her followers enters bob's thread. It does not enter his thread if he has
// blocked her meanwhile.
func TestALocalHandOverKeepsItsForwarder(t *testing.T) {
	for _, tt := range []struct {
		name             string
		retried, blocked bool
		want             int // the answers that bob holds
	}{
		{"after a restart", false, false, 1},
		{"after a restart, blocked", false, true, 0},
		{"given back", true, false, 1},
		{"given back, blocked", true, true, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t)
			s.Inbox.Backoff(5*time.Millisecond, 50*time.Millisecond)
			bob, alice := s.With("bob"), string(s.Local.ID(s.Alice))
			s.Posts("us:/alice/objects/1", "as:Public")
			hand := func(body string) {
				t.Helper()
				if err := s.Inbox.Deliver(t.Context(), s.Alice, bob.Alice, []byte(s.Long(body))); err != nil {
					t.Fatal(err)
				}
			}
			me := string(bob.ID("us:/alice"))
			if err := s.Store.Write(t.Context(), bob.Alice, func(ctx context.Context, tx *user.Tx) error {
				return tx.Relationships.Set(ctx, user.Relationship{Actor: vocab.ID(alice), Type: user.Following, Status: user.Accepted, Activity: vocab.ID(me + "/activities/f")}, s.Now())
			}); err != nil {
				t.Fatal(err)
			}
			hand(`{"id":"us:/alice/objects/1/create","type":"Create","actor":"us:/alice","to":"as:Public",
				"object":{"id":"us:/alice/objects/1","type":"Note","attributedTo":"us:/alice","to":"as:Public"}}`)
			const answer = `{"id":"p:/replies/1/create","type":"Create","actor":"p:/carol","to":["us:/alice","us:/alice/followers"],
				"object":{"id":"p:/replies/1","type":"Note","attributedTo":"p:/carol","to":["us:/alice","us:/alice/followers"],"content":"hi","inReplyTo":"us:/alice/objects/1"}}`
			s.MustSend("p:/carol", mine, answer)
			if tt.retried {
				p := user.Poisoned{URI: s.ID("p:/replies/1/create"), Raw: []byte(s.Long(answer)), Forwarders: []vocab.ID{vocab.ID(alice)}}
				if err := s.Inbox.Retry(t.Context(), bob.Alice, p); err != nil {
					t.Fatal(err)
				}
			} else {
				bob.Down(t, bob.Alice)
				hand(answer)
			}
			if err := s.Inbox.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			bob.Up(t, bob.Alice)
			if tt.blocked {
				err := s.Store.Write(t.Context(), bob.Alice, func(ctx context.Context, tx *user.Tx) error {
					if _, err := tx.Relationships.End(ctx, user.Following, vocab.ID(alice), time.Now()); err != nil {
						return err
					}
					return tx.Blocks.Add(ctx, user.Block{Actor: vocab.ID(alice), Direction: user.Outbound, Activity: vocab.ID(me + "/activities/b")}, s.Now())
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			next := inbox.New(s.Deps)
			if err := next.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the journal is empty", func() bool { return !next.Stalled(bob.Alice) && journal(t, s).Rows == 0 })
			if err := next.Close(context.Background()); err != nil {
				t.Error(err)
			}
			if got := bob.Column(t, bob.Alice, `SELECT uri FROM objects WHERE uri = $1`, string(s.ID("p:/replies/1"))); len(got) != tt.want {
				t.Errorf("bob holds the answers %q, want %d", got, tt.want)
			}
			if got := bob.Column(t, bob.Alice, `SELECT activity_uri FROM requests`); len(got) != 0 {
				t.Errorf("the answer is among bob's requests: %q", got)
			}
		})
	}
}

// An Update that another actor forwards may be as old as its proof. If the Update does not say
// when the post was changed, it does not replace a stored version.
func TestAnUndatedUpdateThatIsPassedOnReplacesNothing(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	const (
		object = `{"id":"p:/notes/1","type":"Note","attributedTo":"p:/carol","to":["as:Public","us:/alice"],"published":"2024-01-01T00:00:00Z","content":"other"`
		poll   = `{"id":"p:/notes/1","type":"Question","attributedTo":"p:/carol","to":["as:Public","us:/alice"],"published":"2024-01-01T00:00:00Z","content":"first","oneOf":[{"type":"Note","name":"a","replies":{"type":"Collection","totalItems":%d}}]}`
		first  = `{"id":"p:/creates/1","type":"Create","actor":"p:/carol","to":["as:Public","us:/alice"],"object":%s}`
		update = `{"@context":["https://www.w3.org/ns/activitystreams","https://w3id.org/security/data-integrity/v1"],"id":"p:/updates/1","type":"Update","actor":"p:/carol","to":["as:Public","us:/alice"],"object":%s}`
	)
	note := strings.Replace(object, "other", "first", 1) + `}`
	changed := fmt.Sprintf(update, object+`}`)
	for _, tt := range []struct{ name, from, held, body, want string }{
		{"without a date", "q:/erin", note, changed, "first"},
		{"without a date, from its author", "p:/carol", note, changed, "other"},
		{"with the date of the change", "q:/erin", note, fmt.Sprintf(update, object+`,"updated":"2024-02-01T00:00:00Z"}`), "other"},
		{"with an older date", "q:/erin", note, fmt.Sprintf(update, object+`,"updated":"2023-02-01T00:00:00Z"}`), "first"},
		{"with the date of the Update", "q:/erin", note, strings.Replace(changed, `"actor"`, `"published":"2024-02-01T00:00:00Z","actor"`, 1), "other"},
		{"without a date, of a post that its server shows", "q:/erin", note, fmt.Sprintf(update, `"p:/notes/1"`), "other"},
		{"the counts of a poll", "q:/erin", fmt.Sprintf(poll, 7), fmt.Sprintf(update, fmt.Sprintf(poll, 5)), "first 7"},
		{"the counts of a poll, with the date of the Update", "q:/erin", fmt.Sprintf(poll, 7),
			strings.Replace(fmt.Sprintf(update, fmt.Sprintf(poll, 5)), `"actor"`, `"published":"2024-02-01T00:00:00Z","actor"`, 1), "first 7"},
		{"the counts of a poll, from its author", "p:/carol", fmt.Sprintf(poll, 7), fmt.Sprintf(update, fmt.Sprintf(poll, 8)), "first 8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := stage.Scene(t)
			s.Actor("p:/carol")
			s.MustSend("p:/carol", mine, fmt.Sprintf(first, tt.held))
			s.Serve("p:/notes/1", object+`}`)
			if err := s.Pass(tt.from, mine, s.Proven("p:/carol", tt.body)); err != nil {
				t.Fatal(err)
			}
			got := s.Column(t, s.Alice, `SELECT concat_ws(' ', raw ->> 'content', raw #>> '{oneOf,0,replies,totalItems}') FROM objects`)
			if len(got) != 1 || got[0] != tt.want {
				t.Errorf("alice has %q, want %q", got, tt.want)
			}
		})
	}
}
