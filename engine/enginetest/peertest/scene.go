package peertest

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/proof"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Scene is a user, alice, and the events that concern alice. Short names stand for ids:
// "us:/alice" is alice's actor, "us:/@alice" is alice's page, "p:/carol" and "q:/mallory" are
// actors on two peers. Scenes do not depend on each other, so many can run in parallel on one
// engine.
type Scene struct {
	*Inbound
	t      testing.TB
	Alice  vocab.Username
	peers  map[string]*Peer
	base   string // the beginning of this scene's paths on the peers
	actors map[string]*Actor
	long   *strings.Replacer
	short  *strings.Replacer

	Dialect   signature.Dialect // the dialect of the requests that are sent
	MediaType string            // the media type of the requests that are sent
}

// Stage is an engine with two peers, on which scenes run.
type Stage struct {
	in   *Inbound
	p, q *Peer

	mu     sync.Mutex
	scenes int
	free   []vocab.Username // users of finished scenes; they are reused because making a database takes long
	users  int
}

// NewStage sets up an engine and two peers.
func NewStage(t testing.TB, in *Inbound) *Stage {
	return &Stage{in: in, p: New(t, "127.0.0.2"), q: New(t, "127.0.0.3")}
}

// Scene starts a scene.
func (st *Stage) Scene(t testing.TB) *Scene {
	t.Helper()
	n, alice := st.cast(t)
	s := &Scene{Inbound: st.in, t: t, Alice: alice, peers: map[string]*Peer{"p:": st.p, "q:": st.q},
		base: fmt.Sprintf("/%d", n), actors: map[string]*Actor{},
		Dialect: signature.RFC9421, MediaType: vocab.ActivityJSON}
	s.name()
	return s
}

// With creates another user, and returns the scene for that user. In the returned scene
// "us:/alice" is the new user.
func (s *Scene) With(name string) *Scene {
	s.t.Helper()
	other := *s
	other.Alice = s.User(s.t, name)
	other.name()
	return &other
}

// name defines the ids that the short names stand for in this scene.
func (s *Scene) name() {
	me, p, q := string(s.Local.ID(s.Alice)), s.peers["p:"].Origin+s.base+"/", s.peers["q:"].Origin+s.base+"/"
	s.long = strings.NewReplacer("us:/alice", me, "us:/@alice", s.Local.Page(s.Alice), "us:/", Origin+"/", "p:/", p, "q:/", q)
	s.short = strings.NewReplacer(me, "us:/alice", Origin+"/", "us:/", p, "p:/", q, "q:/", vocab.ID(p).Host(), "p:", vocab.ID(q).Host(), "q:")
}

// cast returns the number of the next scene, and the user who is alice in that scene. The user's
// database is empty.
func (st *Stage) cast(t testing.TB) (scene int, alice vocab.Username) {
	t.Helper()
	st.mu.Lock()
	defer st.mu.Unlock()
	st.scenes++
	if last := len(st.free) - 1; last >= 0 {
		alice, st.free = st.free[last], st.free[:last]
	} else {
		st.users++
		alice = st.in.User(t, fmt.Sprintf("alice%d", st.users))
	}
	t.Cleanup(func() { st.release(t, alice) })
	return st.scenes, alice
}

// tables are all tables of a user's database that a scene may fill.
var tables = []string{"actors", "objects", "activities", "seen", "tombstones", "relationships", "ended_activities", "feed", "reactions", "groups", "delivery_jobs",
	"deliveries", "event_outbox", "audit", "idempotency_keys", "poison", "blocks", "moves", "pins", "votes", "unnamed_recipients", "requests", "correspondents", "attempts", "event_window", "feed_marks", "search_index", "search_progress",
	"mls_inbox", "mls_welcomes", "conversations", "mls_key_packages"}

func (st *Stage) release(t testing.TB, alice vocab.Username) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := st.in.DB(t, alice).ExecContext(ctx, "DELETE FROM "+strings.Join(tables, "; DELETE FROM ")); err != nil {
		t.Error(err)
	}
	if err := st.in.Registry.UpdateUser(alice, func(now *registry.User) error { *now = registry.DefaultUser(); return nil }); err != nil {
		t.Error(err)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.free = append(st.free, alice)
}

// Long returns text with its short names replaced by ids.
func (s *Scene) Long(text string) string { return s.long.Replace(text) }

// ID returns the id that a short name stands for.
func (s *Scene) ID(name string) vocab.ID { return vocab.ID(s.Long(name)) }

func (s *Scene) place(name string) (*Peer, string) {
	peer := s.peers[name[:2]]
	if peer == nil {
		s.t.Fatalf("%s is on no peer", name)
	}
	return peer, s.base + name[2:]
}

// Actor returns the actor with a short name. The first call makes the actor and serves its
// document.
func (s *Scene) Actor(name string) *Actor {
	if a := s.actors[name]; a != nil {
		return a
	}
	peer, path := s.place(name)
	a := peer.Actor(path)
	s.actors[name] = a
	return a
}

// Serve makes a peer serve a document under a name.
func (s *Scene) Serve(name, doc string) {
	peer, path := s.place(name)
	peer.Serve(path, []byte(s.Long(doc)))
}

// Answer makes a peer answer requests for a name with a status.
func (s *Scene) Answer(name string, status int) {
	peer, path := s.place(name)
	peer.Answer(path, status)
}

// Handle makes h answer requests for a name.
func (s *Scene) Handle(name string, h http.HandlerFunc) {
	peer, path := s.place(name)
	peer.Handle(path, h)
}

// Redirect makes a peer redirect requests for a name to another name.
func (s *Scene) Redirect(name, to string) {
	peer, path := s.place(name)
	peer.Handle(path, http.RedirectHandler(s.Long(to), http.StatusFound).ServeHTTP)
}

// Reached counts the requests that a peer, "p:" or "q:", got so far in all scenes of the stage.
func (s *Scene) Reached(peer string) int {
	return len(s.peers[peer].Asked()) + len(s.peers[peer].Posted())
}

// Asked counts how often a name was requested from its peer.
func (s *Scene) Asked(name string) int {
	peer, path := s.place(name)
	n := 0
	for _, p := range peer.Asked() {
		if p == path {
			n++
		}
	}
	return n
}

// PostedTo returns the bodies that were posted to an inbox of a peer so far.
func (s *Scene) PostedTo(inbox string) (bodies [][]byte) {
	peer, path := s.place(inbox)
	for _, p := range peer.Posted() {
		if p.URL.Path == path {
			bodies = append(bodies, p.Content)
		}
	}
	return bodies
}

// Request returns a request by an actor to "us:/alice/inbox" or "us:/inbox", the shared one.
func (s *Scene) Request(from, inbox, body string) *http.Request {
	s.t.Helper()
	return s.Actor(from).Post(s.t, s.Long(inbox), s.MediaType, []byte(s.Long(body)), s.Dialect, s.Now())
}

// Send posts an activity to an inbox, signed by an actor, and returns the engine's error.
func (s *Scene) Send(from, inbox, body string) error {
	s.t.Helper()
	return s.Receive(s.Request(from, inbox, body), inbox, body)
}

// Pass does the same as Send, for a body in which short names are not replaced.
func (s *Scene) Pass(from, inbox string, raw []byte) error {
	s.t.Helper()
	return s.receive(s.Actor(from).Post(s.t, s.Long(inbox), s.MediaType, raw, s.Dialect, s.Now()), inbox, raw)
}

// Proven returns an activity with an actor's proof.
func (s *Scene) Proven(by, body string) []byte {
	s.t.Helper()
	return s.ProvenAt(by, body, s.Now())
}

// ProvenAt does the same as Proven. The proof says that it was created at the time at.
func (s *Scene) ProvenAt(by, body string, at time.Time) []byte {
	s.t.Helper()
	d, err := vocab.ParseDoc([]byte(s.Long(body)))
	if err != nil {
		s.t.Fatal(err)
	}
	key := s.Actor(by).Keys.Ed25519
	if d, err = proof.Sign(d, vocab.ID(key.ID), key.Private, at); err != nil {
		s.t.Fatal(err)
	}
	return d.JSON()
}

// client is the address from which other servers send requests.
var client = netip.MustParsePrefix("192.0.2.1/32")

// Receive gives a request to the inbox, as the server does. If the inbox accepts the request,
// Receive waits until the activity is applied for every recipient. It does not wait for users
// marked by Unable.
func (s *Scene) Receive(r *http.Request, inbox, body string) error {
	return s.receive(r, inbox, []byte(s.Long(body)))
}

func (s *Scene) receive(r *http.Request, inbox string, raw []byte) error {
	u, _ := s.Local.InboxOwner(s.ID(inbox))
	err := s.Inbox.Receive(policy.PaidByAddress(s.t.Context(), client), r, raw, u)
	if err == nil {
		s.settle(r, raw)
	}
	return err
}

// settle waits until no writer handles the activity any more, and only users marked by Unable have
// it in the journal. Under load, the journal may also have it for a while because a user's
// database is slow.
func (s *Scene) settle(r *http.Request, body []byte) {
	s.t.Helper()
	a, err := handler.ParseRequest(body, r.Header)
	if err != nil {
		s.t.Fatal(err)
	}
	key := instance.KeyOf(s.Handlers.VersionID(a), a.Actor)
	tick, limit := time.NewTicker(time.Millisecond), time.NewTimer(20*time.Second)
	defer tick.Stop()
	defer limit.Stop()
	for held := true; held; {
		if err := s.SQL(s.t).QueryRowContext(s.t.Context(), `SELECT EXISTS (SELECT FROM intake i WHERE uri_digest = $1 AND actor_digest = $2
				AND (recipients <> '{}' OR EXISTS (SELECT FROM intake_waiting w WHERE w.seq = i.seq AND username <> ALL($3))))`,
			key.URI[:], key.Actor[:], s.whoIsUnable()).Scan(&held); err != nil {
			s.t.Fatal(err)
		}
		select {
		case <-tick.C:
		case <-limit.C:
			s.t.Fatalf("not applied in time: %s", body)
		}
	}
}

// MustSend does the same as Send, and fails the test if the activity is refused.
func (s *Scene) MustSend(from, inbox, body string) {
	s.t.Helper()
	if err := s.Send(from, inbox, body); err != nil {
		s.t.Fatalf("send %s: %v", body, err)
	}
}

// Act commits an activity of alice's together with its effects, as alice's outbox does. If target
// is not empty, it is the short name of the actor that the activity is about. Act then first
// stores this actor as an acquaintance of alice.
func (s *Scene) Act(target, body string) {
	s.t.Helper()
	if err := s.Try(target, body); err != nil {
		s.t.Fatalf("act %s: %v", body, err)
	}
}

// Try does the same as Act, for an activity that may be refused.
func (s *Scene) Try(target, body string) error {
	s.t.Helper()
	raw := []byte(s.Long(body))
	a, err := vocab.ParseActivity(raw)
	if err != nil {
		s.t.Fatal(err)
	}
	me, err := s.Local.Actor(s.Alice)
	if err != nil {
		s.t.Fatal(err)
	}
	x := handler.Sent{User: s.Alice, Actor: me, Activity: a, Now: s.Now()}
	if target != "" {
		x.Target = s.resolve(target)
		if err := s.Store.Instance.Acquaintances.Add(s.t.Context(), x.Target.ID, []vocab.Username{s.Alice}, a.Type == "Follow"); err != nil {
			s.t.Fatal(err)
		}
	}
	return s.Store.Write(s.t.Context(), s.Alice, func(ctx context.Context, tx *user.Tx) error {
		if a.Type == "Update" || a.Type == "Delete" {
			if x.Object, err = tx.Objects.Find(ctx, a.Object.ID); err != nil {
				return err
			}
		}
		return s.Handlers.Sent(ctx, tx, &x)
	})
}

func (s *Scene) resolve(name string) *vocab.Actor {
	s.t.Helper()
	if strings.HasPrefix(name, "us:") {
		a, err := s.Local.Actor(s.Alice)
		if err != nil {
			s.t.Fatal(err)
		}
		return a
	}
	a, err := s.Actors.Resolve(s.t.Context(), s.Actor(name).ID)
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

// Follows makes alice follow an actor. The actor accepts the follow.
func (s *Scene) Follows(name string) {
	s.t.Helper()
	s.Act(name, `{"id":"us:/alice/activities/f","type":"Follow","actor":"us:/alice","object":"`+name+`"}`)
	s.MustSend(name, "us:/alice/inbox", `{"id":"`+name+`/accepts/f","type":"Accept","actor":"`+name+`","object":"us:/alice/activities/f"}`)
}

// Followed makes an actor follow alice.
func (s *Scene) Followed(name string) {
	s.t.Helper()
	s.MustSend(name, "us:/alice/inbox", `{"id":"`+name+`/follows/f","type":"Follow","actor":"`+name+`","object":"us:/alice"}`)
}

// Posts makes alice write a note. The parameter id is the note's id, and to is its recipient.
func (s *Scene) Posts(id, to string) {
	s.t.Helper()
	s.Act("", `{"id":"`+id+`/create","type":"Create","actor":"us:/alice","to":"`+to+`","object":{"id":"`+id+`","type":"Note","attributedTo":"us:/alice","to":"`+to+`","content":"mine"}}`)
}

// rows is a query that returns one line for each row in alice's database. Events come in their
// order.
const rows = `
	SELECT 1 AS part, 0 AS seq, concat_ws(' ', 'relationship', type, nullif(relation, ''), actor_uri, status, activity_uri, nullif(direction, '')) AS line FROM relationships
	UNION ALL SELECT 2, 0, concat_ws(' ', 'object', uri, raw ->> 'type', raw ->> 'content') FROM objects
	UNION ALL SELECT 3, 0, concat_ws(' ', 'activity', direction, type, uri, object_uri) FROM activities
	UNION ALL SELECT 4, 0, concat_ws(' ', 'reaction', actor_uri, type, object_uri, activity_uri, nullif(emoji, '')) FROM reactions
	UNION ALL SELECT 5, 0, concat_ws(' ', 'feed', activity_uri, 'by', actor_uri) FROM feed
	UNION ALL SELECT 6, 0, concat_ws(' ', 'actor', uri, raw ->> 'name') FROM actors
	UNION ALL SELECT 7, seq, concat_ws(' ', 'event', type, payload ->> 'activityUri', payload ->> 'objectUri', 'by', payload ->> 'trust', payload ->> 'actorUri') FROM event_outbox
	UNION ALL SELECT 8, 0, concat_ws(' ', 'delivery', inbox, convert_from(body, 'UTF8')) FROM deliveries JOIN delivery_jobs j ON j.id = job_id
	UNION ALL SELECT 9, 0, concat_ws(' ', 'poison', uri, reason) FROM poison
	UNION ALL SELECT 9, 0, concat_ws(' ', 'block', direction, actor_uri, activity_uri) FROM blocks
	UNION ALL SELECT 9, 0, concat_ws(' ', 'member', m.actor_uri, 'of', g.name) FROM group_members m JOIN groups g ON g.id = m.group_id
	UNION ALL SELECT 10, 0, concat_ws(' ', 'pin', object_uri, 'of', actor_uri, activity_uri) FROM pins
	UNION ALL SELECT 11, 0, concat_ws(' ', 'vote', option, 'of', actor_uri, question_uri) FROM votes
	UNION ALL SELECT 12, 0, concat_ws(' ', 'counts', uri, 'voters', raw ->> 'votersCount', 'votes', jsonb_path_query_array(raw, '$.*[*].replies.totalItems')) FROM objects WHERE raw ->> 'type' = 'Question'
	UNION ALL SELECT 13, 0, 'tombstones ' || count(*) FROM tombstones HAVING count(*) > 0`

var (
	uuids  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)
	proofs = regexp.MustCompile(`,"proof":\{"@context":\[[^]]*\],[^}]*\}`)
)

// Rows returns alice's rows as lines with short names. A star stands for each UUID that the engine
// made. Proofs are left out.
func (s *Scene) Rows() []string {
	s.t.Helper()
	all := s.Column(s.t, s.Alice, `SELECT line FROM (`+rows+`) AS r ORDER BY part, seq, line COLLATE "C"`)
	for i, line := range all {
		all[i] = proofs.ReplaceAllString(uuids.ReplaceAllString(s.short.Replace(line), "*"), "")
	}
	return all
}

// Changes runs do(). It returns the rows that do() added, each with a plus, and the rows that do()
// removed, each with a minus.
func (s *Scene) Changes(do func()) []string {
	s.t.Helper()
	before := s.Rows()
	do()
	var made []string
	for _, line := range s.Rows() {
		if i := slices.Index(before, line); i >= 0 {
			before = slices.Delete(before, i, i+1)
		} else {
			made = append(made, "+ "+line)
		}
	}
	for i, line := range before {
		before[i] = "- " + line
	}
	return append(before, made...)
}
