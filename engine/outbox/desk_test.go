package outbox

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/enginetest/keytest"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/pipeline"
	"github.com/lightweb/lightweb/engine/proof"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/relay"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const (
	here = "https://here.example"
	me   = vocab.ID(here + "/users/alice")
)

// dispatcher stands for a dispatcher that takes no leases.
type dispatcher struct{}

func (dispatcher) Leases() user.DeliveryLeases { return user.DeliveryLeases{} }

// world stands for other servers. It holds their actors and objects.
type world struct {
	local *actor.Local

	mu          sync.Mutex
	actors      map[vocab.ID]*vocab.Actor
	objects     map[vocab.ID]string
	fails       map[vocab.ID]error
	asked       int
	objectAsked func()   // called while an object is fetched; may be nil
	handleAsked func()   // called while a handle is looked up; may be nil
	stale       vocab.ID // an actor that has changed since its copy was made; may be empty
}

// errHangs marks a server that hangs until its caller gives up.
var errHangs = errors.New("hangs")

func (w *world) HasStale() bool           { return w.stale != "" }
func (w *world) IsStale(id vocab.ID) bool { return id == w.stale }

func (w *world) Resolve(ctx context.Context, id vocab.ID) (*vocab.Actor, error) {
	if u, ok := w.local.Owner(id); ok {
		return w.local.Actor(u)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	if err := w.fails[id]; errors.Is(err, errHangs) {
		<-ctx.Done()
		return nil, ctx.Err()
	} else if err != nil {
		return nil, err
	}
	if a := w.actors[id]; a != nil {
		return a, nil
	}
	return nil, fault.New(fault.NotFound, "no such actor")
}

// Refresh does the same as Resolve, because no actor changes.
func (w *world) Refresh(ctx context.Context, id vocab.ID) (*vocab.Actor, error) {
	return w.Resolve(ctx, id)
}

func (w *world) Handle(ctx context.Context, handle string) (*vocab.Actor, error) {
	name, host, ok := strings.Cut(strings.TrimPrefix(handle, "@"), "@")
	if !ok {
		return nil, fault.New(fault.Invalid, "not a handle")
	}
	if w.handleAsked != nil {
		w.handleAsked()
	}
	return w.Resolve(ctx, vocab.ID("https://"+host+"/users/"+name))
}

func (w *world) Known(_ context.Context, id vocab.ID) (*vocab.Actor, error) {
	if u, ok := w.local.Owner(id); ok {
		return w.local.Actor(u)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.actors[id], nil
}

func (w *world) KnownHandle(_ context.Context, handle string) (*vocab.Actor, error) {
	name, host, _ := strings.Cut(strings.TrimPrefix(handle, "@"), "@")
	return w.Known(context.Background(), vocab.ID("https://"+host+"/users/"+name))
}

func (w *world) Object(_ context.Context, id vocab.ID, _ *vocab.Username) (*vocab.Object, json.RawMessage, error) {
	if w.objectAsked != nil {
		w.objectAsked()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	raw, ok := w.objects[id]
	if !ok {
		return nil, nil, fault.New(fault.NotFound, "no such object")
	}
	d, err := vocab.ParseDoc([]byte(raw))
	if err != nil {
		return nil, nil, err
	}
	obj, err := vocab.ObjectOf(d)
	return obj, json.RawMessage(raw), err
}

// person adds an actor. If shared is true, its server has a shared inbox.
func (w *world) person(t *testing.T, host, name string, shared bool) *vocab.Actor {
	t.Helper()
	id := "https://" + host + "/users/" + name
	d := vocab.Doc{"id": id, "type": "Person", "preferredUsername": name, "inbox": id + "/inbox", "followers": id + "/followers"}
	if shared {
		d["endpoints"] = vocab.Doc{"sharedInbox": "https://" + host + "/inbox"}
	}
	a, err := vocab.ParseActor(d.JSON())
	if err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.actors[a.ID] = a
	return a
}

// post adds an object of the given author.
func (w *world) post(id string, author vocab.ID, to ...string) vocab.ID {
	d := vocab.Doc{"@context": vocab.Context(), "id": id, "type": "Note", "attributedTo": string(author), "content": "<p>hi</p>",
		"published": "2026-01-01T00:00:00Z", "to": anys(to)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.objects[vocab.ID(id)] = string(d.JSON())
	return vocab.ID(id)
}

const articleID = "https://p.example/articles/1"

// article adds an Article, which can be disliked.
func (w *world) article(author vocab.ID) vocab.ID {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.objects[articleID] = string(vocab.Doc{"id": articleID, "type": "Article", "attributedTo": string(author), "to": public}.JSON())
	return articleID
}

func anys(s []string) []any {
	out := make([]any, len(s))
	for i, x := range s {
		out[i] = x
	}
	return out
}

type gate map[string]bool

func (g gate) Check(host string) error {
	if g[host] {
		return fault.New(fault.Forbidden, "blocked")
	}
	return nil
}

func (g gate) CheckActor(id vocab.ID) error {
	if g[string(id)] {
		return fault.New(fault.Forbidden, "suspended")
	}
	return g.Check(id.Host())
}

// desk is an outbox for the user alice, with real databases.
type desk struct {
	*Outbox
	t       *testing.T
	c       *db.Cluster
	world   *world
	keyring *actor.Keyring
	gate    gate
	relays  *relay.List
	files   *registry.Registry
	alice   vocab.Username
	wakes   atomic.Int32 // how many commits with new deliveries there were
	clock   atomic.Int64 // milliseconds since noon on January 1, 2026
	token   uuid.UUID
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	c := dbtest.New(t)
	dir := t.TempDir()
	keyring := actor.NewKeyring(dir, dir, here)
	d := &desk{t: t, c: c, keyring: keyring, gate: gate{}, token: uuid.New()}
	c.Subscribe(user.Subscriber{Name: "desk", Committed: func(_ context.Context, commit user.Commit) {
		if commit.Owes {
			d.wakes.Add(1)
		}
	}})
	d.alice = d.user("alice")
	d.files = registry.New(dir, dir, slog.New(slog.DiscardHandler))
	local := actor.NewLocal(here, keyring, d.files, "test")
	d.world = &world{local: local, actors: map[vocab.ID]*vocab.Actor{}, objects: map[vocab.ID]string{}, fails: map[vocab.ID]error{}}
	d.relays = relay.NewList(relay.Deps{Store: c.Instance.Relays, Actor: local.InstanceID(), Now: time.Now})
	hosted := conversation.NewRegistry(conversation.Deps{Store: c, Actors: local, Finder: d.world, Inboxes: func([]user.Destination) []user.Inbox { return nil }, Rules: d.files,
		Log: slog.New(slog.DiscardHandler), Now: time.Now})
	d.Outbox = New(Deps{Store: c, Instance: c.Instance, Local: local, Actors: d.world, Stale: d.world, Objects: d.world, Keys: keyring, Gate: d.gate, Relays: d.relays, Profiles: d.files, Handlers: handler.New(local, d.files),
		Conversations: hosted,
		Members:       conversation.NewMembers(conversation.MemberDeps{Registry: hosted, Store: c, Users: c.Instance.Users, Local: local, Log: slog.New(slog.DiscardHandler), Now: time.Now}),
		Dispatcher:    dispatcher{}, Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time {
			return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(d.clock.Add(1000)) * time.Millisecond)
		}})
	return d
}

func (d *desk) user(name string) vocab.Username {
	d.t.Helper()
	u := dbtest.User(d.t, d.c, name)
	keytest.Lend(d.t, d.keyring.Dir(u))
	if err := d.keyring.Create(u); err != nil {
		d.t.Fatal(err)
	}
	return u
}

func (d *desk) dispatch(action string, params any) (Result, error) {
	d.t.Helper()
	return d.keyed("", action, params)
}

func (d *desk) keyed(key, action string, params any) (Result, error) {
	d.t.Helper()
	raw, isRaw := params.(string)
	if !isRaw {
		b, err := json.Marshal(params)
		if err != nil {
			d.t.Fatal(err)
		}
		raw = string(b)
	}
	return d.Dispatch(d.t.Context(), Dispatch{User: d.alice, Token: d.token, IdempotencyKey: key,
		Action: pipeline.Action{Name: action, Params: json.RawMessage(raw)}})
}

func (d *desk) must(action string, params any) *user.Activity {
	d.t.Helper()
	r, err := d.dispatch(action, params)
	if err != nil {
		d.t.Fatalf("%s: %v", action, err)
	}
	return d.activity(r.ActivityID)
}

func (d *desk) read(work func(context.Context, *user.Tx) error) {
	d.t.Helper()
	if err := d.c.Read(d.t.Context(), d.alice, work); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) write(work func(context.Context, *user.Tx) error) {
	d.t.Helper()
	if err := d.c.Write(d.t.Context(), d.alice, work); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) activity(id vocab.ID) (a *user.Activity) {
	d.t.Helper()
	d.read(func(ctx context.Context, tx *user.Tx) (err error) {
		a, err = tx.Activities.Find(ctx, id)
		return err
	})
	if a == nil {
		d.t.Fatalf("activity %s is not stored", id)
	}
	return a
}

func (d *desk) object(id vocab.ID) (o *user.Object) {
	d.t.Helper()
	d.read(func(ctx context.Context, tx *user.Tx) (err error) {
		o, err = tx.Objects.Find(ctx, id)
		return err
	})
	return o
}

func (d *desk) sent() (n int) {
	d.t.Helper()
	d.read(func(ctx context.Context, tx *user.Tx) (err error) {
		n, err = tx.Activities.Count(ctx, user.Outbound, nil)
		return err
	})
	return n
}

// checkProof checks that an activity has alice's proof, and that the object in it has none
// (FE-06).
func (d *desk) checkProof(activity vocab.Doc) {
	d.t.Helper()
	keys, err := d.keyring.Keys(d.alice)
	if err != nil {
		d.t.Fatal(err)
	}
	p, err := proof.Parse(activity, d.Now())
	if err != nil || p == nil || string(p.Method) != keys.Ed25519.ID {
		d.t.Fatalf("the proof of %s is %+v, %v; want one by %s", activity.JSON(), p, err, keys.Ed25519.ID)
	}
	if err := p.Verify(keys.Ed25519.Private.Public().(ed25519.PublicKey)); err != nil {
		d.t.Error(err)
	}
	context, _ := activity["@context"].([]any)
	if !slices.Contains(context, any("https://w3id.org/security/data-integrity/v1")) {
		d.t.Errorf("@context %v, in which nobody finds a proof", context)
	}
	if o := activity.Sub("object"); o["proof"] != nil || o["@context"] != nil {
		d.t.Errorf("it embeds what holds only as a whole: %s", o.JSON())
	}
}

// owed claims all deliveries and records them as delivered.
func (d *desk) owed() (rows []user.Delivery) {
	d.t.Helper()
	d.write(func(ctx context.Context, tx *user.Tx) (err error) {
		now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
		for rows = nil; ; {
			claimed, err := tx.Deliveries.Claim(ctx, "test", now, time.Hour, user.ClaimBounds{Most: 100, Forwarded: 100})
			if err != nil || len(claimed) == 0 {
				return err
			}
			rows = append(rows, claimed...)
			for _, r := range claimed {
				if _, err := tx.Deliveries.Finish(ctx, "test", []user.Outcome{{Delivery: r.ID, Status: user.DeliveryDelivered}}, now); err != nil {
					return err
				}
			}
		}
	})
	return rows
}

func inboxes(rows []user.Delivery) []string {
	out := []string{}
	for _, r := range rows {
		out = append(out, string(r.Inbox))
	}
	slices.Sort(out)
	return out
}

func (d *desk) events() (types []string) {
	d.t.Helper()
	d.read(func(ctx context.Context, tx *user.Tx) error {
		all, err := tx.Events.List(ctx, 0, 100)
		for _, e := range all {
			types = append(types, e.Type)
		}
		return err
	})
	return types
}

// relates lists the actions that change a relationship of the user.
var relates = []string{"Follow", "Unfollow", "AcceptFollow", "RejectFollow", "SendFriendRequest", "AcceptFriendRequest", "RejectFriendRequest", "RemoveRelationship", "Block", "Unblock"}

// eventsOf returns the types of the events that an action causes. The parameter kind is the type
// of the action's activity.
func eventsOf(action, kind string) []string {
	types := []string{strings.ToLower(kind) + ".sent"}
	if slices.Contains(relates, action) {
		types = append(types, "relationship.changed")
	}
	return types
}

// audits returns the records of the audit, newest first.
func (d *desk) audits() (all []user.Audit) {
	d.t.Helper()
	rows, err := dbtest.SQL(d.t, d.c, d.alice).QueryContext(d.t.Context(), `SELECT token_id, action, params, outcome, coalesce(activity_uri, '') FROM audit ORDER BY id DESC`)
	if err != nil {
		d.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var a user.Audit
		var token uuid.NullUUID
		if err := rows.Scan(&token, &a.Action, &a.Params, &a.Outcome, &a.Activity); err != nil {
			d.t.Fatal(err)
		}
		a.Token = token.UUID
		all = append(all, a)
	}
	if err := rows.Err(); err != nil {
		d.t.Fatal(err)
	}
	return all
}

// offers stores an Offer of friendship that an actor sent. It returns the Offer's id.
func (d *desk) offers(a *vocab.Actor, kind, status string) vocab.ID {
	d.t.Helper()
	id := a.ID + vocab.ID("/offers/"+kind)
	raw := vocab.Doc{"@context": vocab.ContextAS, "id": string(id), "type": "Offer", "actor": string(a.ID), "object": vocab.Friendship{Type: kind, Subject: a.ID, Object: me}.Doc()}.JSON()
	d.write(func(ctx context.Context, tx *user.Tx) error {
		now := d.Now()
		err := tx.Activities.Add(ctx, user.Activity{ID: uuid.New(), URI: id, Direction: user.Inbound, Type: "Offer", Actor: a.ID, Published: now, Raw: raw})
		if err != nil {
			return err
		}
		if err := tx.Actors.Save(ctx, a, now); err != nil {
			return err
		}
		return tx.Relationships.Set(ctx, user.Relationship{Actor: a.ID, Type: kind, Status: status, Activity: id, Direction: user.Inbound}, now)
	})
	return id
}

// befriend makes an actor a follower of alice. It stores the actor's Follow as received.
func (d *desk) befriend(a *vocab.Actor, status string) vocab.ID {
	d.t.Helper()
	id := a.ID + "/follows/1"
	raw := vocab.Doc{"@context": vocab.ContextAS, "id": string(id), "type": "Follow", "actor": string(a.ID), "object": string(me), "proof": vocab.Doc{"type": "x"}, "summary": json.Number("9007199254740993")}.JSON()
	d.write(func(ctx context.Context, tx *user.Tx) error {
		now := d.Now()
		err := tx.Activities.Add(ctx, user.Activity{ID: uuid.New(), URI: id, Direction: user.Inbound, Type: "Follow", Actor: a.ID, Object: me, Published: now, Raw: raw})
		if err != nil {
			return err
		}
		if err := tx.Actors.Save(ctx, a, now); err != nil {
			return err
		}
		return tx.Relationships.Set(ctx, user.Relationship{Actor: a.ID, Type: user.Follower, Status: status, Activity: id}, now)
	})
	return id
}
