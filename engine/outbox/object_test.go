package outbox

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// A client can use an activity's id in place of its object's id, because a feed shows both.
func TestAnActivityStandsForItsObject(t *testing.T) {
	t.Parallel()
	d := town(t)
	d.must("Like", naming(bobsPost)) // stores a copy of bob's post
	came := func(id, kind string, object vocab.ID) {
		d.write(func(ctx context.Context, tx *user.Tx) error {
			return tx.Activities.Add(ctx, user.Activity{ID: uuid.New(), URI: vocab.ID(id), Direction: user.Inbound, Type: kind, Actor: bob, Object: object, Published: d.Now(),
				Raw: vocab.Doc{"id": id, "type": kind, "actor": bob, "object": string(object)}.JSON()})
		})
	}
	create := d.must("CreateNote", map[string]any{"content": "hi"})
	came(bob+"/creates/1", "Create", bobsPost)
	came(bob+"/boosts/1", "Announce", create.Object)
	want := func(action string, params map[string]any, object vocab.ID) *user.Activity {
		t.Helper()
		r, err := d.dispatch(action, params)
		if err != nil || r.ObjectID != object {
			t.Fatalf("%s %v is answered with %q, %v; want %s", action, params, r.ObjectID, err, object)
		}
		return d.activity(r.ActivityID)
	}
	want("Unlike", naming(bob+"/creates/1"), bobsPost)
	liked := want("Like", naming(bob+"/creates/1"), bobsPost)
	if again := want("Like", naming(bobsPost), bobsPost); again.URI != liked.URI {
		t.Error("it was liked twice, by either id")
	}
	want("Unlike", naming(liked.URI), bobsPost)
	want("Boost", naming(bob+"/creates/1"), bobsPost)
	want("Like", naming(bob+"/boosts/1"), create.Object)
	reply := d.must("Reply", map[string]any{"objectId": bob + "/creates/1", "content": "yes"})
	if got := mustDoc(t, reply.Raw).Sub("object").Text("inReplyTo"); got != bobsPost {
		t.Errorf("it answers %s", got)
	}
	want("UpdateObject", map[string]any{"objectId": create.URI, "content": "ho"}, create.Object)
	d.refused("DeleteObject", naming(bob+"/boosts/1"), fault.NotFound, "")
	want("DeleteObject", naming(create.URI), create.Object)
	want("DeleteObject", naming(create.URI), create.Object)

	const elsewhere = "https://p.example/acts/9"
	d.world.post("https://p.example/notes/9", bob, public)
	d.world.objects[elsewhere] = string(vocab.Doc{"id": elsewhere, "type": "Create", "actor": bob, "object": "https://p.example/notes/9"}.JSON())
	if err := d.assist(d.token, "Like", vocab.Doc{"objectId": elsewhere}); codeOf(err) != "not_known_here" {
		t.Errorf("Like of an activity that is not here, by an LLM engine: %v", err)
	}
	want("Like", naming(elsewhere), "https://p.example/notes/9")
}

// A request can be accepted by the id of its message or of the message's Create, because a feed
// shows both to clients.
func TestARequestIsAnsweredByTheIDOfItsMessage(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"creates", "notes"} {
		d := town(t)
		d.write(func(ctx context.Context, tx *user.Tx) error {
			create, note := vocab.ID(bob+"/creates/1"), bob+"/notes/1"
			err := tx.Activities.Add(ctx, user.Activity{ID: uuid.New(), URI: create, Direction: user.Inbound, Type: "Create", Actor: bob, Object: vocab.ID(note), Published: d.Now(),
				Raw: vocab.Doc{"id": string(create), "type": "Create", "actor": bob, "object": note}.JSON()})
			if err != nil {
				return err
			}
			return tx.Requests.Add(ctx, user.Request{Activity: create, Actor: bob, Host: "p.example"}, d.Now())
		})
		d.refused("DeclineRequest", map[string]any{"activityId": bob + "/notes/2"}, fault.NotFound, "no_request")
		d.must("Block", map[string]any{"actorUri": bob})
		d.refused("AcceptRequest", map[string]any{"activityId": bob + "/" + by + "/1"}, fault.Conflict, "blocked")
		d.must("Unblock", map[string]any{"actorUri": bob})
		d.must("AcceptRequest", map[string]any{"activityId": bob + "/" + by + "/1"})
		if n := d.measured(`SELECT count(*) FROM requests`); n != 0 {
			t.Errorf("%d requests wait after %s/1 was accepted", n, by)
		}
	}
}

// The id of another local user's Create leads to the Create's object if alice may see the object.
// Otherwise the answer is as for an unknown object.
func TestANeighboursCreateStandsForWhatMayBeSeen(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	neighbour := d.user("bob")
	author := d.Local.ID(neighbour)
	for name, to := range map[string]string{"public": public, "private": string(author) + "/followers"} {
		object, create := d.Local.NewObjectID(neighbour), d.Local.NewActivityID(neighbour)
		note := vocab.Doc{"id": string(object), "type": "Note", "attributedTo": string(author), "content": "hi", "to": []any{to}}
		err := d.c.Write(t.Context(), neighbour, func(ctx context.Context, tx *user.Tx) error {
			if _, err := tx.Objects.Add(ctx, user.Object{ID: uuid.New(), URI: object, Published: d.Now(), Raw: note.JSON()}); err != nil {
				return err
			}
			return tx.Activities.Add(ctx, user.Activity{ID: uuid.New(), URI: create, Direction: user.Outbound, Type: "Create", Actor: author, Object: object, Published: d.Now(),
				Raw: vocab.Doc{"id": string(create), "type": "Create", "actor": string(author), "object": note}.JSON()})
		})
		if err != nil {
			t.Fatal(err)
		}
		if name == "private" {
			d.refused("Like", naming(create), fault.NotFound, "")
		} else if r, err := d.dispatch("Like", naming(create)); err != nil || r.ObjectID != object {
			t.Errorf("Like of the Create of a public note: %q, %v", r.ObjectID, err)
		}
	}
}
