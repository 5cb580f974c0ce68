package conversation_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// actors knows the actors of an instance, us.example, and those of other servers.
type actors struct{}

func (actors) ID(u vocab.Username) vocab.ID {
	return vocab.ID("https://us.example/users/" + u.String())
}

func (a actors) NewActivityID(u vocab.Username) vocab.ID {
	return a.ID(u) + "/activities/" + vocab.ID(uuid.NewString())
}

// hostKey is the signing key of every user.
var hostKey = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))

func (actors) Attest(_ vocab.Username, text []byte) ([]byte, error) {
	return ed25519.Sign(hostKey, text), nil
}

// Refresh returns an actor of another server. The server is a Lightweb server, unless it is
// swicg.example.
func (actors) Refresh(_ context.Context, id vocab.ID) (*vocab.Actor, error) {
	if id.Host() == "gone.example" {
		return nil, fault.New(fault.NotFound, "there is no such actor")
	}
	d := vocab.Doc{"id": string(id), "type": "Person", "inbox": string(id) + "/inbox"}
	if id.Host() != "swicg.example" {
		d["lw:mls"] = vocab.Doc{"deliveryVersion": 1}
	}
	return vocab.ParseActor(d.JSON())
}

// inboxesOf returns an inbox for each destination. Users of us.example get deliveries without the
// network.
func inboxesOf(all []user.Destination) (inboxes []user.Inbox) {
	for _, d := range all {
		inboxes = append(inboxes, user.Inbox{URL: d.Inbox, Host: strings.Replace(d.Inbox.Host(), "us.example", "", 1), Targets: []vocab.ID{d.Actor}})
	}
	return inboxes
}

func (actors) User(vocab.Username) registry.User { return registry.DefaultUser() }

const (
	aliceID = "https://us.example/users/alice"
	bobID   = "https://peer.example/users/bob"
	carolID = "https://other.example/users/carol"
)

// scene is a conversation that alice hosts, with the devices that are in it.
type scene struct {
	testing.TB
	store    *db.Cluster
	registry *conversation.Registry
	user     vocab.Username
	at       conversation.Place
	clock    *atomic.Int64 // time by which the scene's clock is ahead

	alice, bob *mlstest.Device
	group      *mlstest.Group
	keys       int
}

func newScene(t testing.TB) *scene {
	t.Helper()
	store := dbtest.New(t)
	s := &scene{TB: t, store: store, user: dbtest.User(t, store, "alice"), clock: &atomic.Int64{}}
	s.registry = s.node(store)
	s.alice, s.bob = mlstest.NewDevice(aliceID, time.Now()), mlstest.NewDevice(bobID, time.Now())
	s.group = mlstest.NewGroup(s.alice)
	v, err := s.registry.Create(t.Context(), s.user, s.group.Info(s.alice))
	if err != nil {
		t.Fatal(err)
	}
	s.at = conversation.Place{Host: s.user, ID: v.ID}
	return s
}

// node returns a registry, as another process that serves the instance has it.
func (s *scene) node(store conversation.Store) *conversation.Registry {
	s.Helper()
	r := conversation.NewRegistry(conversation.Deps{Store: store, Actors: actors{}, Finder: actors{}, Rules: actors{}, Inboxes: inboxesOf, Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(), Now: s.now})
	s.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			s.Error(err)
		}
	})
	return r
}

func (s *scene) now() time.Time { return time.Now().Add(time.Duration(s.clock.Load())) }

// later moves the clock ahead by d.
func (s *scene) later(d time.Duration) { s.clock.Add(int64(d)) }

func (s *scene) key() string {
	s.keys++
	return "key " + strconv.Itoa(s.keys)
}

// request returns a commit by a device, and the group after the commit.
func (s *scene) request(by *mlstest.Device, g *mlstest.Group, c mlstest.Change) (conversation.Commit, *mlstest.Group) {
	message, next := g.Commit(by, c)
	r := conversation.Commit{Caller: vocab.ID(by.Identity), Key: s.key(), Message: message, GroupInfo: next.Info(by)}
	if len(c.Add) > 0 {
		r.Welcomes = [][]byte{next.Welcome(c.Add...)}
	}
	return r, next
}

// commit lets a device commit. The host must accept the commit.
func (s *scene) commit(by *mlstest.Device, c mlstest.Change) conversation.Accepted {
	s.Helper()
	r, next := s.request(by, s.group, c)
	a, err := s.registry.Commit(s.Context(), s.at, r)
	if err != nil {
		s.Fatalf("commit: %v", err)
	}
	s.group = next
	return a
}

// withBob adds bob's device to the group.
func (s *scene) withBob() *scene {
	s.Helper()
	s.commit(s.alice, mlstest.Change{Add: []*mlstest.Device{s.bob}})
	return s
}

func (s *scene) send(by *mlstest.Device, content []byte) (conversation.Accepted, error) {
	return s.registry.Send(s.Context(), s.at, conversation.Message{Caller: vocab.ID(by.Identity), Content: content})
}

func (s *scene) log() (all []user.LogEntry) {
	s.Helper()
	err := s.store.Read(s.Context(), s.user, func(ctx context.Context, tx *user.Tx) (err error) {
		all, err = tx.Hosted.ListLog(ctx, s.at.ID, 0, 10_000, 64<<20)
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
	return all
}

// reset replaces the group by a new group. The new group has only alice's device.
func (s *scene) reset() {
	s.Helper()
	group, err := s.registry.AskReset(s.Context(), s.at, aliceID)
	if err != nil {
		s.Fatal(err)
	}
	s.group = mlstest.NewGroupWith(group, s.alice)
	if _, err := s.registry.Reset(s.Context(), s.at, aliceID, s.group.Info(s.alice)); err != nil {
		s.Fatal(err)
	}
}

func (s *scene) view() conversation.View {
	s.Helper()
	v, err := s.registry.View(s.Context(), s.at, aliceID)
	if err != nil {
		s.Fatal(err)
	}
	return v
}

// events returns the numbers of the events that the host has received, by type.
func (s *scene) events() map[string]int {
	s.Helper()
	n := map[string]int{}
	s.eachEvent(func(e user.Event) { n[e.Type]++ })
	return n
}

// eachEvent calls see() with each event that the host has received.
func (s *scene) eachEvent(see func(user.Event)) {
	s.Helper()
	var all []user.Event
	err := s.store.Read(s.Context(), s.user, func(ctx context.Context, tx *user.Tx) (err error) {
		all, err = tx.Events.List(ctx, 0, 1000)
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
	for _, e := range all {
		see(e)
	}
}

// wantRefused fails unless err is a refusal with the kind and the code in its parameters.
func (s *scene) wantRefused(what string, err error, kind fault.Kind, code string) {
	s.Helper()
	if of := fault.Of(err); of == nil || of.Kind != kind || of.Code != code {
		s.Errorf("%s: %v, want %s", what, err, code)
	}
}

// wantConflict fails unless err is a Conflict with the code in its parameters. It returns the
// Conflict.
func (s *scene) wantConflict(what string, err error, code string) conversation.Conflict {
	s.Helper()
	s.wantRefused(what, err, fault.Conflict, code)
	c, ok := errors.AsType[*conversation.Conflict](err)
	if !ok {
		return conversation.Conflict{}
	}
	return *c
}

func hexHash(content []byte) string {
	h := sha256.Sum256(content)
	return hex.EncodeToString(h[:])
}

func actorOf(d *mlstest.Device) vocab.ID { return vocab.ID(d.Identity) }
