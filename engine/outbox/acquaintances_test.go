package outbox_test

import (
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/outbox"
	"github.com/lightweb/lightweb/engine/pipeline"
	"github.com/lightweb/lightweb/engine/relay"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// idle stands for a dispatcher that delivers nothing.
type idle struct{}

// Leases implements outbox.Dispatcher.
func (idle) Leases() user.DeliveryLeases { return user.DeliveryLeases{} }

// After any sequence of actions and activities, the acquaintances are complete. They list every
// actor of which a user's database holds anything, and every actor that a user follows or has
// asked to follow.
func TestAcquaintancesNeverSayTooLittle(t *testing.T) {
	t.Parallel()
	in := peertest.NewInbound(t)
	w := &town{in: in, t: t, outbox: outbox.New(outbox.Deps{Store: in.Store, Instance: in.Store.Instance, Local: in.Local, Actors: in.Actors, Stale: in.Actors, Objects: in.Actors, Keys: in.Keys, Relays: relay.NewList(relay.Deps{}),
		Gate: in.Gate, Profiles: in.Registry, Handlers: in.Handlers, Dispatcher: idle{}, Log: slog.New(slog.DiscardHandler), Now: in.Now})}
	for n, address := range []string{"127.0.0.2", "127.0.0.3"} {
		w.peers = append(w.peers, peertest.New(t, address))
		for i := range 2 {
			a := w.peers[n].Actor(fmt.Sprintf("/actor%d", i))
			a.Doc["featured"] = featured(a)
			a.Show()
			w.actors = append(w.actors, a)
		}
	}
	for _, name := range []string{"alice", "bob"} {
		w.users = append(w.users, in.User(t, name))
	}
	for seed := range uint64(4) {
		w.rand = rand.New(rand.NewPCG(seed, 1))
		w.done = nil
		for range 60 {
			w.step()
			w.checkParams(fmt.Sprintf("seed %d, after %s", seed, strings.Join(w.done, ", ")))
		}
	}
	if len(w.refused)*2 > 240 {
		t.Errorf("most of what was done was refused: %q", w.refused)
	}

	for _, table := range []string{"blocks", "pins", "moves"} {
		q := `SELECT '' FROM ` + table
		if len(w.in.Column(t, w.users[0], q))+len(w.in.Column(t, w.users[1], q)) == 0 {
			t.Errorf("nobody has anything in %s", table)
		}
	}

	w.in.Instance(t, `DELETE FROM acquaintances`)
	r, err := in.Store.MakeAcquaintances(t.Context(), db.Acquainting{}, in.Local.ID)
	if err != nil || !r.Removed {
		t.Fatalf("made again: %+v, %v", r, err)
	}
	w.checkParams("made again from the users' databases")
}

// town holds two users and the actors around them.
type town struct {
	t      *testing.T
	in     *peertest.Inbound
	outbox *outbox.Outbox
	peers  []*peertest.Peer
	actors []*peertest.Actor
	users  []vocab.Username
	rand   *rand.Rand

	n       int        // the number in the next new id
	objects []vocab.ID // the objects that anybody has made
	sent    []sent     // the activities that actors have sent
	done    []string   // the actions and activities of the current seed
	refused []string
}

type sent struct {
	by *peertest.Actor
	id vocab.ID

	kind, object string
}

func pick[T any](w *town, from []T) T { return from[w.rand.IntN(len(from))] }

func (w *town) step() {
	u, a := pick(w, w.users), pick(w, w.actors)
	var err error
	what := ""
	switch w.rand.IntN(24) {
	case 0, 1:
		what, err = w.dispatch(u, "Follow", vocab.Doc{"actorUri": w.anybody(u)})
	case 2:
		what, err = w.dispatch(u, "Unfollow", vocab.Doc{"actorUri": w.anybody(u)})
	case 3:
		what, err = w.dispatch(u, "CreateNote", vocab.Doc{"content": "hello", "to": []any{w.anybody(u)}})
	case 4, 5:
		if len(w.objects) > 0 {
			name := pick(w, []string{"Like", "Boost", "Unlike", "Unboost", "DeleteObject"})
			what, err = w.dispatch(u, name, vocab.Doc{"objectId": string(pick(w, w.objects))})
		}
	case 6:
		if len(w.objects) > 0 {
			what, err = w.dispatch(u, "Reply", vocab.Doc{"objectId": string(pick(w, w.objects)), "content": "no"})
		}
	case 7:
		what, err = w.receive(a, u, "Follow", string(w.in.Local.ID(u)))
	case 8, 9:
		what, err = w.receive(a, u, "Create", w.note(a))
	case 10, 11:
		if len(w.objects) > 0 {
			what, err = w.receive(a, u, pick(w, []string{"Announce", "Like", "Dislike"}), string(pick(w, w.objects)))
		}
	case 12, 13:
		if own := w.by(a); len(own) > 0 {
			back := pick(w, own)
			what, err = w.receive(a, u, "Undo", vocab.Doc{"id": string(back.id), "type": back.kind, "actor": string(a.ID), "object": back.object})
		}
	case 14:
		what, err = w.receive(a, u, pick(w, []string{"Accept", "Reject", "Accept"}), vocab.Doc{"type": "Follow", "actor": string(w.in.Local.ID(u)), "object": string(a.ID)})
	case 15:
		if own := w.madeBy(a.ID); len(own) > 0 {
			what, err = w.receive(a, u, "Delete", string(pick(w, own)))
		}
	case 16:
		what, err = w.dispatch(u, pick(w, []string{"Block", "Unblock", "Unblock"}), vocab.Doc{"actorUri": w.anybody(u)})
	case 17:
		what, err = w.receive(a, u, "Block", string(w.in.Local.ID(u)))
	case 18, 19:
		if own := w.madeBy(a.ID); len(own) > 0 {
			what, err = w.receive(a, u, pick(w, []string{"Add", "Add", "Remove"}), string(pick(w, own)), vocab.Doc{"target": featured(a)})
		}
	case 20, 21:
		what, err = w.move(a, pick(w, w.actors), u)
	case 22, 23: // an answer that the user u forwards
		if own := w.madeBy(w.in.Local.ID(u)); len(own) > 0 {
			n := w.note(a)
			n["inReplyTo"], n["cc"] = string(pick(w, own)), string(w.in.Local.Followers(u))
			what, err = w.receive(a, u, "Create", n, vocab.Doc{"to": nil, "cc": n["cc"]})
		}
	}
	if err != nil {
		what += " (refused)"
		w.refused = append(w.refused, fmt.Sprintf("%s: %v", what, err))
	}
	w.done = append(w.done, what)
}

// anybody returns the id of a random actor other than u.
func (w *town) anybody(u vocab.Username) string {
	if n := w.rand.IntN(len(w.actors) + 1); n < len(w.actors) {
		return string(w.actors[n].ID)
	}
	for _, other := range w.users {
		if other != u {
			return string(w.in.Local.ID(other))
		}
	}
	return ""
}

// note returns a new post of a's, which a's server serves.
func (w *town) note(a *peertest.Actor) vocab.Doc {
	w.n++
	path := fmt.Sprintf("%s/notes/%d", a.ID, w.n)
	d := vocab.Doc{"id": path, "type": "Note", "attributedTo": string(a.ID), "to": string(vocab.Public), "content": "hello"}
	for _, p := range w.peers {
		if rest, ok := strings.CutPrefix(path, p.Origin); ok {
			p.Serve(rest, d.JSON())
		}
	}
	w.objects = append(w.objects, vocab.ID(path))
	return d
}

// featured returns the id of an actor's featured collection.
func featured(a *peertest.Actor) string { return string(a.ID) + "/featured" }

// move sends a Move to u. Both accounts confirm the Move until it is handled.
func (w *town) move(from, to *peertest.Actor, u vocab.Username) (string, error) {
	from.Doc["movedTo"], to.Doc["alsoKnownAs"] = string(to.ID), []any{string(from.ID)}
	from.Show()
	to.Show()
	defer func() {
		delete(from.Doc, "movedTo")
		delete(to.Doc, "alsoKnownAs")
		from.Show()
		to.Show()
	}()
	return w.receive(from, u, "Move", string(from.ID), vocab.Doc{"target": string(to.ID)})
}

// madeBy returns the objects that an actor has made.
func (w *town) madeBy(actor vocab.ID) []vocab.ID {
	return slices.DeleteFunc(slices.Clone(w.objects), func(id vocab.ID) bool { return !strings.HasPrefix(string(id), string(actor)+"/") })
}

func (w *town) by(a *peertest.Actor) []sent {
	return slices.DeleteFunc(slices.Clone(w.sent), func(s sent) bool { return s.by != a })
}

// dispatch runs an action of u's. It hands the activities of the action over to the users of this
// server.
func (w *town) dispatch(u vocab.Username, name string, params vocab.Doc) (string, error) {
	what := fmt.Sprintf("%s: %s %s", u, name, params.JSON())
	r, err := w.outbox.Dispatch(w.t.Context(), outbox.Dispatch{User: u, Action: pipeline.Action{Name: name, Params: params.JSON()}})
	if err != nil {
		return what, err
	}
	if name == "CreateNote" || name == "Reply" {
		for _, id := range w.in.Column(w.t, u, `SELECT object_uri FROM activities WHERE uri = $1`, string(r.ActivityID)) {
			w.objects = append(w.objects, vocab.ID(id))
		}
	}
	return what, w.handOver(u)
}

func (w *town) handOver(u vocab.Username) error {
	for _, row := range w.in.Column(w.t, u, `UPDATE deliveries d SET status = 'delivered' FROM delivery_jobs j WHERE j.id = d.job_id AND d.host = '' AND d.status = 'pending'
		RETURNING d.inbox || ' ' || convert_from(j.body, 'UTF8')`) {
		inbox, body, _ := strings.Cut(row, " ")
		to, ok := w.in.Local.InboxOwner(vocab.ID(inbox))
		if !ok {
			return fmt.Errorf("%s is nobody's inbox", inbox)
		}
		if err := w.in.Inbox.Deliver(w.t.Context(), u, to, []byte(body)); err != nil {
			return err
		}
		if err := w.handOver(to); err != nil { // hands over the answer
			return err
		}
	}
	return nil
}

// receive sends an activity of a's to u's inbox or to the shared inbox. Then it hands over the
// answers and forwarded activities of this server's users.
func (w *town) receive(a *peertest.Actor, u vocab.Username, kind string, object any, more ...vocab.Doc) (string, error) {
	w.n++
	d := vocab.Doc{"id": fmt.Sprintf("%s/activities/%d", a.ID, w.n), "type": kind, "actor": string(a.ID), "object": object, "to": string(vocab.Public)}
	for _, m := range more {
		maps.Copy(d, m)
	}
	inbox, owner := w.in.Local.Inbox(u), u
	if w.rand.IntN(3) == 0 {
		inbox, owner = w.in.Local.SharedInbox(), vocab.Username{}
	}
	about, _ := object.(string)
	w.sent = append(w.sent, sent{a, vocab.ID(d["id"].(string)), kind, about})
	body := d.JSON()
	r := a.Post(w.t, string(inbox), vocab.ActivityJSON, body, signature.RFC9421, w.in.Now())
	what := fmt.Sprintf("%s to %s: %s", a.ID, inbox, body)
	if err := w.in.Inbox.Receive(w.t.Context(), r, body, owner); err != nil {
		return what, err
	}
	for _, u := range w.users {
		if err := w.handOver(u); err != nil {
			return what, err
		}
	}
	return what, nil
}

// checkParams fails the test if a user's acquaintances lack an actor.
func (w *town) checkParams(when string) {
	w.t.Helper()
	for _, u := range w.users {
		for query, follows := range map[string]bool{
			`SELECT actor_uri FROM relationships UNION SELECT actor_uri FROM activities UNION SELECT raw ->> 'attributedTo' FROM objects WHERE raw ? 'attributedTo'
				UNION SELECT uri FROM actors UNION SELECT actor_uri FROM reactions UNION SELECT actor_uri FROM feed
				UNION SELECT actor_uri FROM blocks UNION SELECT actor_uri FROM pins UNION SELECT actor_uri FROM votes`: false,
			`SELECT actor_uri FROM relationships WHERE type = 'following' AND status IN ('pending', 'accepted')`: true,
		} {
			for _, id := range w.in.Column(w.t, u, query) {
				if id == string(w.in.Local.ID(u)) {
					continue
				}
				known, err := w.in.Store.Instance.Acquaintances.Users(w.t.Context(), vocab.ID(id), follows)
				if err != nil {
					w.t.Fatal(err)
				}
				if !slices.Contains(known, u) {
					w.t.Fatalf("%s: %s and %s are not acquainted (follows: %t)", when, u, id, follows)
				}
			}
		}
	}
}
