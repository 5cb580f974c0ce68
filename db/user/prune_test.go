package user_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	aliceID vocab.ID = "https://here.example/users/alice"
	dave    vocab.ID = "https://peer.example/users/dave" // alice has a copy of dave
	old              = 200 * 24 * time.Hour
)

// history stores rows in alice's database as if they had arrived in the past.
type history struct {
	t testing.TB
	c *dbtest.Cluster
	u vocab.Username
}

// arrives stores an activity as if it had arrived in the past. The parameter ago is the time since
// then. The activity is public, unless the parameter more says otherwise.
func (h *history) arrives(ago time.Duration, kind string, actor, uri, object vocab.ID, more map[string]any) {
	h.t.Helper()
	raw := map[string]any{"id": uri, "type": kind, "actor": actor, "object": object, "to": vocab.Public}
	maps.Copy(raw, more)
	direction := user.Inbound
	if actor == aliceID {
		direction = user.Outbound
	}
	write(h.t, h.c, h.u, func(ctx context.Context, tx *user.Tx) error {
		if _, err := tx.Activities.Claim(ctx, by(actor, uri)); err != nil {
			return err
		}
		err := tx.Activities.Add(ctx, user.Activity{ID: h.id(ago), URI: uri, Direction: direction, Type: kind, Actor: actor, Object: object, Published: now, Raw: mustJSON(raw)})
		if err != nil || kind != "Create" && kind != "Announce" {
			return err
		}
		return tx.Feed.Add(ctx, user.FeedEntry{ID: h.id(ago), Activity: uri, Actor: actor, Published: now})
	})
	h.aged("activities", "uri", uri, ago)
}

// posts stores an object and its Create.
func (h *history) posts(ago time.Duration, author vocab.ID, name string, more map[string]any) {
	h.t.Helper()
	id := author + "/" + vocab.ID(name)
	raw := map[string]any{"id": id, "type": "Note", "attributedTo": author, "to": vocab.Public}
	maps.Copy(raw, more)
	h.stored(ago, id, raw)
	h.arrives(ago, "Create", author, id+"/create", id, map[string]any{"object": raw, "to": raw["to"]})
}

func (h *history) stored(ago time.Duration, id vocab.ID, raw map[string]any) {
	h.t.Helper()
	write(h.t, h.c, h.u, func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Objects.Add(ctx, user.Object{ID: h.id(ago), URI: id, Published: now, Raw: mustJSON(raw)})
		return err
	})
	h.aged("objects", "uri", id, ago)
}

func (h *history) reacts(actor vocab.ID, kind string, activity, object vocab.ID) {
	h.t.Helper()
	write(h.t, h.c, h.u, func(ctx context.Context, tx *user.Tx) error {
		return tx.Reactions.Set(ctx, user.Reaction{Object: object, Actor: actor, Kind: kind, Type: "Like", Activity: activity}, now)
	})
}

// pins pins an object of the author's, by an old Add.
func (h *history) pins(author vocab.ID, name string) {
	h.t.Helper()
	object := author + "/" + vocab.ID(name)
	h.arrives(old, "Add", author, object+"/add", object, map[string]any{"target": author + "/featured"})
	write(h.t, h.c, h.u, func(ctx context.Context, tx *user.Tx) error {
		return tx.Pins.Set(ctx, user.Pin{Actor: author, Object: object, Activity: object + "/add"}, now)
	})
}

func (h *history) follows(actor vocab.ID) {
	h.t.Helper()
	write(h.t, h.c, h.u, func(ctx context.Context, tx *user.Tx) error {
		return tx.Relationships.Set(ctx, user.Relationship{Actor: actor, Type: user.Following, Status: user.Accepted, Activity: aliceID + "/activities/follow"}, now)
	})
}

func (h *history) knows(actor vocab.ID, ago time.Duration) {
	h.t.Helper()
	a, err := vocab.ParseActor(mustJSON(map[string]any{"id": actor, "type": "Person", "inbox": actor + "/inbox", "followers": actor + "/followers"}))
	if err != nil {
		h.t.Fatal(err)
	}
	write(h.t, h.c, h.u, func(ctx context.Context, tx *user.Tx) error { return tx.Actors.Save(ctx, a, now) })
	h.aged("actors", "uri", actor, ago)
}

func (h *history) aged(table, column string, uri vocab.ID, ago time.Duration) {
	h.t.Helper()
	run(h.t, databaseOf(h.t, h.c, h.u), `UPDATE `+table+` SET created_at = now() - $2::interval WHERE `+column+` = $1`, string(uri), ago.String())
}

// id returns an id for a row that was stored in the past. The parameter ago is the time since
// then.
func (h *history) id(ago time.Duration) uuid.UUID {
	id := uuid.Must(uuid.NewV7())
	past := user.ArrivedBy(time.Now().Add(-ago - time.Hour))
	copy(id[:6], past[:6])
	return id
}

// left returns a short line for each row that is left, sorted.
func (h *history) left() []string {
	h.t.Helper()
	conn := session(h.t, databaseOf(h.t, h.c, h.u))
	rows, err := conn.Query(h.t.Context(), `SELECT 'activity ' || uri FROM activities UNION ALL SELECT 'object ' || uri FROM objects
		UNION ALL SELECT 'feed ' || activity_uri FROM feed UNION ALL SELECT concat('reaction ', actor_uri, ' ', object_uri) FROM reactions
		UNION ALL SELECT 'pin ' || object_uri FROM pins
		UNION ALL SELECT 'actor ' || uri FROM actors`)
	if err != nil {
		h.t.Fatal(err)
	}
	var all []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			h.t.Fatal(err)
		}
		all = append(all, strings.NewReplacer(string(aliceID), "alice", string(bob), "bob", string(carol), "carol", string(dave), "dave").Replace(s))
	}
	if err := rows.Err(); err != nil {
		h.t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

func (h *history) prune(dry bool) user.Pruned {
	h.t.Helper()
	p, err := h.c.Prune(h.t.Context(), h.u, user.Pruning{Me: aliceID, Before: time.Now().Add(-180 * 24 * time.Hour), DryRun: dry})
	if err != nil {
		h.t.Fatal(err)
	}
	return p
}

func TestPruneRemovesWhatIsOldAndNobodysBusiness(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		do   func(h *history)
		goes int // number of removed objects
	}{
		{"a post of somebody else's", func(h *history) { h.posts(old, bob, "1", nil) }, 1},
		{"a young one", func(h *history) { h.posts(time.Hour, bob, "1", nil) }, 0},
		{"alice's own", func(h *history) { h.posts(old, aliceID, "1", nil) }, 0},
		{"one for followers", func(h *history) {
			h.knows(dave, time.Hour)
			h.posts(old, dave, "1", map[string]any{"to": dave + "/followers"})
		}, 1},
		{"one for followers of somebody unknown, which may be private", func(h *history) { h.posts(old, bob, "1", map[string]any{"to": bob + "/followers"}) }, 1},
		{"a private one that hides its recipients", func(h *history) { h.posts(old, bob, "1", map[string]any{"to": nil}) }, 1},
		{"one that names somebody whose name begins as hers", func(h *history) { h.posts(old, bob, "1", map[string]any{"cc": aliceID + "2"}) }, 1},
		{"what alice likes", func(h *history) {
			h.posts(old, bob, "1", nil)
			h.reacts(aliceID, user.Review, aliceID+"/activities/1", bob+"/1")
		}, 0},
		{"what alice once sent something about", func(h *history) {
			h.posts(old, bob, "1", nil)
			h.arrives(old, "Announce", aliceID, aliceID+"/activities/1", bob+"/1", nil)
		}, 0},
		{"what alice answered, and what that answers", func(h *history) {
			h.posts(old, bob, "1", nil)
			h.posts(old, carol, "2", map[string]any{"inReplyTo": bob + "/1"})
			h.posts(old, aliceID, "3", map[string]any{"inReplyTo": carol + "/2"})
		}, 0},
		{"what alice answered in other forms", func(h *history) {
			for n, form := range []any{[]any{bob + "/1"}, map[string]any{"id": bob + "/2"}, []any{map[string]any{"id": bob + "/3"}}} {
				h.posts(old, bob, strconv.Itoa(n+1), nil)
				h.posts(old, aliceID, strconv.Itoa(n+10), map[string]any{"inReplyTo": form})
			}
		}, 0},
		{"what a young post answers", func(h *history) {
			h.posts(old, bob, "1", nil)
			h.posts(time.Hour, carol, "2", map[string]any{"inReplyTo": bob + "/1"})
		}, 0},
		{"an old thread", func(h *history) {
			h.posts(old+time.Minute, bob, "1", nil)
			h.posts(old, carol, "2", map[string]any{"inReplyTo": bob + "/1"})
			h.posts(old, bob, "3", map[string]any{"inReplyTo": carol + "/2"})
		}, 3},
		{"what others like and boost", func(h *history) {
			h.posts(old, bob, "1", nil)
			h.arrives(old, "Like", carol, carol+"/like", bob+"/1", nil)
			h.reacts(carol, user.Review, carol+"/like", bob+"/1")
			h.arrives(old, "Announce", carol, carol+"/boost", bob+"/1", nil)
			h.reacts(carol, user.Announce, carol+"/boost", bob+"/1")
		}, 1},
		{"what somebody boosted lately", func(h *history) {
			h.stored(old, bob+"/1", map[string]any{"id": bob + "/1", "type": "Note", "attributedTo": bob, "to": vocab.Public})
			h.arrives(time.Hour, "Announce", carol, carol+"/boost", bob+"/1", nil)
		}, 0},
		{"what a followed author shows first", func(h *history) {
			h.follows(bob)
			h.posts(old, bob, "1", nil)
			h.pins(bob, "1")
		}, 0},
		{"what an author that alice does not follow any more shows first", func(h *history) {
			h.posts(old, bob, "1", nil)
			h.pins(bob, "1")
		}, 1},
		{"a stranger's answer that alice answered", func(h *history) {
			h.posts(old, bob, "1", map[string]any{"inReplyTo": aliceID + "/objects/1"})
			h.posts(old, aliceID, "2", map[string]any{"inReplyTo": bob + "/1"})
		}, 0},
		{"a stranger's old thread that names alice", func(h *history) {
			h.posts(old+time.Minute, bob, "1", map[string]any{"to": aliceID})
			h.posts(old, carol, "2", map[string]any{"cc": aliceID, "inReplyTo": bob + "/1"})
		}, 2},
		{"a stranger's letter that waits among the requests", func(h *history) {
			h.posts(old, bob, "1", map[string]any{"to": aliceID})
			write(h.t, h.c, h.u, func(ctx context.Context, tx *user.Tx) error {
				return tx.Requests.Add(ctx, user.Request{Activity: bob + "/1/create", Actor: bob, Host: "peer.example"}, time.Now())
			})
		}, 0},
		{"the stamp of alice's quote", func(h *history) {
			h.posts(old, aliceID, "1", map[string]any{"quoteAuthorization": bob + "/stamp"})
			h.stored(old, bob+"/stamp", map[string]any{"id": bob + "/stamp", "type": "QuoteAuthorization", "attributedTo": bob, "interactingObject": aliceID + "/1"})
		}, 0},
		{"the stamp of a quote that is gone", func(h *history) {
			h.stored(old, bob+"/stamp", map[string]any{"id": bob + "/stamp", "type": "QuoteAuthorization", "attributedTo": bob, "interactingObject": carol + "/1"})
		}, 1},
		{"an object without any activity", func(h *history) {
			h.stored(old, bob+"/1", map[string]any{"id": bob + "/1", "type": "Note", "attributedTo": bob, "to": vocab.Public})
		}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, u := alice(t)
			h := &history{t, c, u}
			tt.do(h)
			before := h.left()
			if would := h.prune(true); would.Objects != tt.goes || !slices.Equal(h.left(), before) {
				t.Errorf("a dry run says %+v and leaves %q, want %d objects and all", would, h.left(), tt.goes)
			}
			did := h.prune(false)
			if did.Objects != tt.goes || tt.goes == 0 && !slices.Equal(h.left(), before) {
				t.Errorf("prune = %+v, leaves %q, want %d objects to go", did, h.left(), tt.goes)
			}
			others := func(line string) bool { return !strings.HasPrefix(line, "actor ") }
			if tt.goes > 0 && slices.ContainsFunc(h.left(), others) {
				t.Errorf("prune leaves %q, want nothing but actors", h.left())
			}
			if again := h.prune(false); again != (user.Pruned{}) {
				t.Errorf("the second time it is %+v, want nothing", again)
			}
		})
	}
}

// Anybody may mention the user, write to the user and follow the user. Pruning keeps an activity
// that does so only if the user chose its actor as a contact.
func TestPruneKeepsWhatNamesTheUserOfContactsAlone(t *testing.T) {
	t.Parallel()
	relates := func(kind, status string) func(h *history) {
		return func(h *history) {
			write(h.t, h.c, h.u, func(ctx context.Context, tx *user.Tx) error {
				return tx.Relationships.Set(ctx, user.Relationship{Actor: bob, Type: kind, Status: status, Activity: aliceID + "/activities/follow"}, now)
			})
		}
	}
	for _, tt := range []struct {
		name  string
		ties  func(h *history)
		stays bool
	}{
		{"a stranger", func(*history) {}, false},
		{"one that alice follows", relates(user.Following, user.Accepted), true},
		{"one that alice asked to follow", relates(user.Following, user.Pending), true},
		{"one who refused that alice follows", relates(user.Following, user.Rejected), false},
		{"a friend", relates(user.FriendOf, user.Accepted), true},
		{"a follower", relates(user.Follower, user.Accepted), true}, // few activities of a follower stay, and this test has few
		{"one who asks to follow", relates(user.Follower, user.Pending), false},
		{"one in a group of alice's", func(h *history) {
			write(h.t, h.c, h.u, func(ctx context.Context, tx *user.Tx) error {
				g := user.Group{ID: uuid.New(), Name: "friends", URI: aliceID + "/groups/1", Activity: aliceID + "/activities/1"}
				if err := tx.Groups.Add(ctx, g, now); err != nil {
					return err
				}
				return tx.Groups.AddMember(ctx, g.ID, bob, aliceID+"/activities/2", now)
			})
		}, true},
		{"one whose letters alice takes", func(h *history) {
			write(h.t, h.c, h.u, func(ctx context.Context, tx *user.Tx) error { _, err := tx.Requests.Accept(ctx, bob, now); return err })
		}, true},
		{"one that alice wrote to", func(h *history) { h.posts(old, aliceID, "9", map[string]any{"to": []vocab.ID{bob}}) }, true},
		{"one whose follow alice's server accepted", func(h *history) {
			h.arrives(old, "Accept", aliceID, aliceID+"/activities/accept", bob+"/follow", map[string]any{"to": []vocab.ID{bob}})
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, u := alice(t)
			h := &history{t, c, u}
			tt.ties(h)
			before := h.left()
			named := []map[string]any{
				{"cc": []vocab.ID{carol, aliceID}},
				{"tag": map[string]any{"type": "Mention", "href": aliceID}},
				{"inReplyTo": aliceID + "/objects/1"},
				{"cc": aliceID + "/followers"},
				{"to": aliceID},
				{"attributedTo": []any{map[string]any{"type": "Person", "id": bob}}, "to": []vocab.ID{aliceID, vocab.Public}},
			}
			for n, more := range named {
				h.posts(old, bob, fmt.Sprint(n), more)
			}
			stored := h.left()
			if tt.stays {
				before = stored
			}
			h.prune(false)
			if got := h.left(); !slices.Equal(got, before) {
				t.Errorf("prune leaves\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(before, "\n"))
			}
		})
	}
}

// A contact makes a public post less public, and the new audience does not include the user. The
// copy with the old words is addressed to its author alone, but is no private message. It goes when
// it would have gone as a public post. A letter to a group looks the same without the mark, and
// stays.
func TestPruneRemovesANarrowedCopy(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	h := &history{t, c, u}
	h.follows(bob)
	h.knows(bob, time.Hour)
	for _, name := range []string{"letter", "narrowed"} {
		h.posts(old, bob, name, nil)
		doc := vocab.Doc{"id": string(bob) + "/" + name, "type": "Note", "attributedTo": string(bob), "to": []any{string(bob)}}
		if name == "narrowed" {
			doc = audience.Narrow(doc, bob)
		}
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			_, err := tx.Objects.Replace(ctx, bob+vocab.ID("/"+name), doc.JSON(), nil, now)
			return err
		})
	}
	if did := h.prune(false); did != (user.Pruned{Activities: 2, Objects: 1}) {
		t.Errorf("prune = %+v, want both public activities and the narrowed copy to go", did)
	}
	if got, want := h.left(), []string{"actor bob", "object bob/letter"}; !slices.Equal(got, want) {
		t.Errorf("left %q, want %q", got, want)
	}
}

// Anybody can follow the user. So pruning keeps only the newest KeptOfFollower activities of a
// follower.
func TestPruneKeepsTheNewestThatAFollowerSaysToTheUser(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	h := &history{t, c, u}
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		return tx.Relationships.Set(ctx, user.Relationship{Actor: bob, Type: user.Follower, Status: user.Accepted, Activity: bob + "/follow"}, now)
	})
	const more = 3
	database := databaseOf(t, c, u)
	run(t, database, `INSERT INTO activities (id, uri, direction, type, actor_uri, published, raw, created_at)
		SELECT overlay($1::text placing lpad(i::text, 12, '0') from 25)::uuid, 'https://peer.example/' || i, 'inbound', 'Listen', $3::text, now(),
			jsonb_build_object('to', 'as:Public', 'cc', $4::text), now() - interval '200 days' FROM generate_series(1, $2::int) i`,
		h.id(old).String(), user.KeptOfFollower+more, string(bob), string(aliceID))
	if did := h.prune(false); did.Activities != more {
		t.Errorf("prune = %+v, want %d activities to go", did, more)
	}
	if n := number(t, database, `SELECT count(*) FROM activities WHERE uri IN ('https://peer.example/1', 'https://peer.example/2', 'https://peer.example/3')`); n != 0 {
		t.Errorf("%d of the oldest are kept", n)
	}
	if again := h.prune(false); again != (user.Pruned{}) {
		t.Errorf("the second time it is %+v, want nothing", again)
	}
}

// A stranger likes the user's post. Pruning removes the Like activity, and the post keeps the like
// in its count.
func TestPruneKeepsTheReactionsOfStrangersToTheUsersPosts(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	h := &history{t, c, u}
	h.posts(old, aliceID, "1", nil)
	for _, kind := range []string{user.Review, user.Announce} {
		h.arrives(old, "Like", bob, bob+"/"+vocab.ID(kind), aliceID+"/1", nil)
		h.reacts(bob, kind, bob+"/"+vocab.ID(kind), aliceID+"/1")
	}
	if did := h.prune(false); did != (user.Pruned{Activities: 2}) {
		t.Errorf("prune = %+v, want both activities to go", did)
	}
	want := []string{"activity alice/1/create", "feed alice/1/create", "object alice/1", "reaction bob alice/1", "reaction bob alice/1"}
	slices.Sort(want)
	if got := h.left(); !slices.Equal(got, want) {
		t.Errorf("left %q, want %q", got, want)
	}
}

func TestPruneKeepsWhatARelationshipStandsOn(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	h := &history{t, c, u}
	for _, who := range []vocab.ID{bob, carol} {
		h.knows(who, old)
		h.arrives(old, "Follow", who, who+"/follow", "https://here.example/users/elsewhere", nil)
	}
	h.knows(dave, old)
	h.arrives(old, "Create", aliceID, aliceID+"/activities/1", aliceID+"/objects/1", map[string]any{"to": []vocab.ID{dave}})
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		return tx.Relationships.Set(ctx, user.Relationship{Actor: bob, Type: user.Follower, Status: user.Accepted, Activity: bob + "/follow"}, now)
	})
	if did := h.prune(false); did != (user.Pruned{Activities: 1, Actors: 1}) {
		t.Errorf("prune = %+v, want carol's Follow and copy to go", did)
	}
	want := []string{"activity alice/activities/1", "activity bob/follow", "actor bob", "actor dave", "feed alice/activities/1"}
	if got := h.left(); !slices.Equal(got, want) {
		t.Errorf("left %q, want %q", got, want)
	}
}

func TestPruneKeepsTheCopiesOfWhoIsBlockedAndWhoVoted(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	h := &history{t, c, u}
	for _, who := range []vocab.ID{bob, carol, dave} {
		h.knows(who, old)
	}
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		if err := tx.Blocks.Add(ctx, user.Block{Actor: bob, Direction: user.Outbound, Activity: aliceID + "/activities/1"}, now); err != nil {
			return err
		}
		_, _, err := tx.Votes.Add(ctx, user.Vote{Question: aliceID + "/objects/1", Actor: carol}, true, now)
		return err
	})
	h.prune(false)
	if got, want := h.left(), []string{"actor bob", "actor carol"}; !slices.Equal(got, want) {
		t.Errorf("left %q, want %q", got, want)
	}
}

func TestPruneKeepsTheCopiesOfWhoIsAddressedByAGroup(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	h := &history{t, c, u}
	for _, who := range []vocab.ID{bob, carol, dave} {
		h.knows(who, old)
	}
	friends := user.Group{ID: uuid.New(), Name: "friends", URI: aliceID + "/groups/1", Activity: aliceID + "/activities/1"}
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		if err := tx.Groups.Add(ctx, friends, now); err != nil {
			return err
		}
		if err := tx.Groups.AddMember(ctx, friends.ID, bob, aliceID+"/activities/2", now); err != nil {
			return err
		}
		return tx.Groups.AddUnnamed(ctx, aliceID+"/objects/1", []user.Unnamed{{Group: friends.URI, Actor: carol}})
	})
	h.prune(false)
	if got, want := h.left(), []string{"actor bob", "actor carol"}; !slices.Equal(got, want) {
		t.Errorf("left %q, want %q: dave was never in a group", got, want)
	}
}

// Pruning reads all actors in batches. It continues after a batch even if it removed nothing of
// it.
func TestPruneLooksAtAllActors(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	h := &history{t, c, u}
	const first = 500 // fills one batch
	run(t, databaseOf(t, c, u), fmt.Sprintf(`INSERT INTO actors (uri, type, inbox, raw, fetched_at) SELECT 'https://peer.example/a/' || n, 'Person', '', '{}', now() FROM generate_series(1, %d) n`, first))
	h.knows("https://peer.example/z", old)
	h.prune(false)
	if n := number(t, databaseOf(t, c, u), `SELECT count(*) FROM actors`); n != first {
		t.Errorf("%d actors are left, want the %d that came lately", n, first)
	}
}

func TestPruneForgetsMovesThatDecideNothingAnyMore(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	h := &history{t, c, u}
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for n, at := range []time.Time{time.Now().Add(-user.MoveAgain), time.Now().Add(time.Hour - user.MoveAgain)} {
			if _, err := tx.Actors.AddMove(ctx, vocab.ID(fmt.Sprintf("%s/%d", bob, n)), carol, at); err != nil {
				return err
			}
		}
		return nil
	})
	conn := session(t, databaseOf(t, c, u))
	for _, tt := range []struct {
		dry  bool
		want int
	}{{true, 2}, {false, 1}} {
		h.prune(tt.dry)
		var left int
		if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM moves`).Scan(&left); err != nil || left != tt.want {
			t.Errorf("with dry run %t %d moves are left, %v; want %d", tt.dry, left, err, tt.want)
		}
	}
}

func TestPrunedActivitiesDoNotComeBack(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	h := &history{t, c, u}
	h.posts(old, bob, "1", nil)
	h.prune(false)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		fresh, err := tx.Activities.Claim(ctx, by(bob, bob+"/1/create"))
		if len(fresh) > 0 {
			t.Error("the id of a pruned activity can be taken again")
		}
		return err
	})
}

func TestPruneGoesOnWhereItEnded(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	h := &history{t, c, u}
	const n = 1203 // fills two batches, and part of a third
	run(t, databaseOf(t, c, u), `INSERT INTO activities (id, uri, direction, type, actor_uri, object_uri, published, raw, created_at)
		SELECT overlay($1::text placing lpad(i::text, 12, '0') from 25)::uuid, 'https://peer.example/' || i, 'inbound', 'Listen', 'https://peer.example/users/bob', NULL, now(),
			'{"to": "as:Public"}', now() - interval '200 days' FROM generate_series(1, $2::int) i`, h.id(old).String(), n)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Prune(ctx, u, user.Pruning{Me: aliceID, Before: time.Now()}); fault.KindOf(err) != fault.Busy && fault.KindOf(err) != fault.Unavailable {
		t.Errorf("err = %v once the time has run out", err)
	}
	if did := h.prune(false); did.Activities != n {
		t.Errorf("pruned %d activities, want %d", did.Activities, n)
	}
}

func TestOnePruneRunsAtATime(t *testing.T) {
	t.Parallel()
	c, _ := alice(t)
	release, err := c.Instance.Locks.Prune(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Instance.Locks.Prune(t.Context()); fault.KindOf(err) != fault.Busy || !strings.Contains(fmt.Sprint(err), "another 'lightweb prune' runs (process ") {
		t.Errorf("err = %v, want who prunes", err)
	}
	release()
	release, err = c.Instance.Locks.Prune(t.Context())
	if err != nil {
		t.Fatalf("after the first has ended: %v", err)
	}
	release()
}

// The user boosts an object while a prune runs. The prune keeps the object.
func TestAnActionThatBeginsDuringAPruneKeepsItsObject(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	h := &history{t, c, u}
	h.posts(old, bob, "1", nil)
	done := make(chan error, 1)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		if there, err := tx.Objects.Hold(ctx, []vocab.ID{bob + "/1"}); err != nil || !there {
			t.Errorf("the object is there: %v, %v", there, err)
		}
		go func() { h.prune(false); done <- nil }()
		dbtest.AwaitLock(t, c, u, done)
		return tx.Reactions.Set(ctx, user.Reaction{Object: bob + "/1", Actor: aliceID, Kind: user.Announce, Type: "Announce", Activity: aliceID + "/boost"}, now)
	})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := h.left(); !slices.Contains(got, "object bob/1") || !slices.Contains(got, "reaction alice bob/1") {
		t.Errorf("left %q, want the object and the boost", got)
	}
}
