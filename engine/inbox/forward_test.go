package inbox_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// ghost is carol's reply to alice. It is addressed to alice's followers and has unusual spacing.
const ghost = `{ "id":"p:/replies/1/create", "type":"Create","actor":"p:/carol","to":["as:Public"],"cc":["us:/alice","us:/alice/followers"],
	"odd": {"type":"Odd", "value":"z\u0031"},
	"object":{"id":"p:/replies/1","type":"Note","attributedTo":"p:/carol","content":"hi", "inReplyTo":"us:/alice/objects/1"} }`

// author lets alice write a note and have four followers. eve and finn share an inbox. gus, on the
// same server, has an inbox of his own. dave is on carol's server.
func author(s *peertest.Scene) {
	s.Posts("us:/alice/objects/1", "as:Public")
	for _, name := range []string{"q:/eve", "q:/finn", "q:/gus", "p:/dave"} {
		if name != "q:/gus" {
			s.Actor(name).Doc["endpoints"] = vocab.Doc{"sharedInbox": s.Long(name[:2] + "/inbox")}
			s.Actor(name).Show()
		}
		s.Followed(name)
	}
}

func with(before ...string) func(*peertest.Scene) {
	return func(s *peertest.Scene) {
		author(s)
		for _, body := range before {
			s.MustSend("p:/carol", shared, body)
		}
	}
}

// FE-08: the forwarder's digest of its followers contains every follower on the recipient's
// server, even a follower that does not get the activity.
func TestForwardingSaysWhoFollows(t *testing.T) {
	s := newScene(t)
	author(s)
	s.MustSend("p:/carol", shared, ghost)
	want := vocab.DigestOf(s.ID("q:/eve"), s.ID("q:/finn"), s.ID("q:/gus"))
	told := s.Column(t, s.Alice, `SELECT encode(followers_digest, 'hex') FROM deliveries d JOIN delivery_jobs j ON j.id = job_id WHERE j.activity_uri = $1`, s.Long("p:/replies/1/create"))
	if len(told) != 2 {
		t.Errorf("passed on to %d inboxes, want 2", len(told))
	}
	for _, got := range told {
		if got != hex.EncodeToString(want[:]) {
			t.Errorf("told %s, want %x", got, want)
		}
	}
}

func TestForwarding(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	swap := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(ghost) }
	about := func(fields string) string {
		return `{"id":"p:/acts/1","actor":"p:/carol","to":"us:/alice/followers",` + fields + `}`
	}
	const secondHand = `{"id":"p:/replies/2/create","type":"Create","actor":"p:/carol","to":["as:Public","us:/alice/followers"],"object":{"id":"p:/replies/2","type":"Note","inReplyTo":"p:/replies/1"}}`
	both := []string{"q:/gus/inbox", "q:/inbox"}
	for _, tt := range []struct {
		name  string
		given func(*peertest.Scene)
		inbox string
		body  string
		want  []string // the destinations
	}{
		{"IN-05 a reply, cc the followers", author, mine, ghost, both},
		{"through the shared inbox", author, shared, ghost, both},
		{"to the followers", author, shared, swap(`"to":["as:Public"]`, `"to":["as:Public","us:/alice/followers"]`, `"us:/alice","us:/alice/followers"`, `"us:/alice"`), both},
		{"audience the followers", author, shared, swap(`"cc"`, `"audience"`), both},
		{"who is named has it already", author, shared, swap(`"us:/alice",`, `"us:/alice","q:/gus",`), both[1:]},
		{"PRV-12 that does not name the followers", author, mine, swap(`,"us:/alice/followers"`, ""), nil},
		{"that names the followers of its own actor", author, mine, swap("us:/alice/followers", "p:/carol/followers"), nil},
		{"PRV-07 that names a group", author, mine, swap("us:/alice/followers", "us:/alice/groups/1"), nil},
		{"that names another collection", author, mine, swap("us:/alice/followers", "us:/alice/following"), nil},
		{"that names the followers in a hidden field", author, mine, swap(`,"us:/alice/followers"]`, `],"bcc":"us:/alice/followers"`), nil},
		{"that names somebody in a hidden field", author, mine, swap(`"odd"`, `"bto":"q:/gus","odd"`), nil},
		{"that hides somebody in the object", author, mine, swap(`"content"`, `"bcc":"q:/gus","content"`), nil},
		{"that is about nothing of alice's", author, mine, swap("us:/alice/objects/1", "q:/notes/1"), nil},
		{"in reply to what does not exist", author, mine, swap("us:/alice/objects/1", "us:/alice/objects/2"), nil},
		{"ORG-26 in reply to what its author cannot see", func(s *peertest.Scene) {
			author(s)
			s.Posts("us:/alice/objects/2", "us:/alice/followers")
		}, mine, swap("us:/alice/objects/1", "us:/alice/objects/2"), nil},
		{"in reply to what its author was sent", func(s *peertest.Scene) {
			author(s)
			s.Posts("us:/alice/objects/2", "p:/carol")
		}, mine, swap("us:/alice/objects/1", "us:/alice/objects/2"), nil},
		{"a follower's, in reply to what its author was sent", func(s *peertest.Scene) {
			author(s)
			s.Posts("us:/alice/objects/2", "p:/carol")
			s.Followed("p:/carol")
		}, mine, swap("us:/alice/objects/1", "us:/alice/objects/2"), both},
		{"in reply to what its author was sent by a group", func(s *peertest.Scene) {
			author(s)
			s.Posts("us:/alice/objects/2", "us:/alice")
			s.Followed("p:/carol")
			s.Column(t, s.Alice, `INSERT INTO unnamed_recipients VALUES ($1, 'g', ARRAY[$2]) RETURNING object_uri`, s.ID("us:/alice/objects/2"), s.ID("p:/carol"))
		}, mine, swap("us:/alice/objects/1", "us:/alice/objects/2"), nil},
		{"SEE-05 to alice and her followers, and not to everybody", author, mine, swap(`"to":["as:Public"],`, ""), both},
		{"SEE-05 to her followers alone", author, shared, swap(`"to":["as:Public"],`, "", `"us:/alice",`, ""), both},
		{"to alice and her followers, and about nothing of hers", author, mine, swap(`"to":["as:Public"],`, "", "us:/alice/objects/1", "q:/notes/1"), nil},
		{"a Like of hers", author, mine, about(`"type":"Like","object":"us:/alice/objects/1"`), both},
		{"a Like of hers, undone", with(about(`"type":"Like","object":"us:/alice/objects/1"`)), mine, `{"id":"p:/acts/2","type":"Undo","actor":"p:/carol","to":"us:/alice/followers","object":"p:/acts/1"}`, both},
		{"a Like of something else", author, mine, about(`"type":"Like","object":"q:/notes/1"`), nil},
		{"with a target of hers", author, mine, about(`"cc":"us:/alice","type":"Offer","object":"q:/notes/1","target":"us:/alice/objects/1"`), both},
		{"SEE-02 a stranger's, with a tag of hers", author, mine, swap(`"odd"`, `"tag":{"type":"Mention","href":"us:/alice"},"odd"`, "us:/alice/objects/1", "q:/notes/1"), nil},
		{"a stranger's message request with a link to a post of hers", author, mine, `{"id":"p:/acts/1","type":"Create","actor":"p:/carol","to":["us:/alice","us:/alice/followers"],"object":{"id":"p:/n/1","type":"Note","attributedTo":"p:/carol","to":["us:/alice","us:/alice/followers"],"tag":{"type":"Link","href":"us:/alice/objects/1"}}}`, nil},
		{"a follower's, with a tag of hers", func(s *peertest.Scene) { author(s); s.Followed("p:/carol") }, mine, about(`"cc":"us:/alice","type":"Listen","object":"q:/songs/1","tag":[{"type":"Hashtag","href":"p:/tags/go"},{"type":"Mention","href":"us:/alice"}]`), both},
		{"in reply to a reply to her", with(ghost), mine, secondHand, both},
		{"a Delete of a reply to her", with(ghost), shared, `{"id":"p:/acts/1","type":"Delete","actor":"p:/carol","to":"us:/alice/followers","object":{"id":"p:/replies/1","type":"Tombstone"}}`, both},
		{"an Update of a reply to her", with(ghost), shared, swap("/create", "/update", `"Create"`, `"Update"`), both},
		{"four links away", author, mine, about(`"cc":"us:/alice","type":"Listen","object":{"type":"Note","object":{"type":"Note","object":{"type":"Note","object":"us:/alice/objects/1"}}}`), both},
		{"five links away", author, mine, about(`"cc":"us:/alice","type":"Listen","object":{"type":"Note","object":{"type":"Note","object":{"type":"Note","object":{"type":"Note","object":"us:/alice/objects/1"}}}}`), nil},
		{"after more links than are looked at", author, mine, about(`"cc":"us:/alice","type":"Listen","tag":[` + strings.Repeat(`"q:/tags/1",`, 16) + `"us:/alice/objects/1"]`), nil},
		{"a vote", func(s *peertest.Scene) {
			author(s)
			s.Act("", `{"id":"us:/alice/activities/q","type":"Create","actor":"us:/alice","to":"as:Public","object":{"id":"us:/alice/objects/q","type":"Question","attributedTo":"us:/alice","to":"as:Public","oneOf":[{"name":"red"}]}}`)
		}, mine, swap(`"content":"hi"`, `"name":"red"`, "objects/1", "objects/q"), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := stage.Scene(t)
			tt.given(s)
			first := s.Column(t, s.Alice, `SELECT coalesce(max(id), 0) FROM deliveries`)[0]
			for range 2 { // the second arrival is not forwarded
				s.MustSend("p:/carol", tt.inbox, tt.body)
				s.MustSend("p:/carol", shared, tt.body)
			}
			sent := s.Column(t, s.Alice, `SELECT d.inbox || ' ' || encode(sha256(j.body), 'hex') FROM deliveries d JOIN delivery_jobs j ON j.id = d.job_id WHERE d.id > $1::bigint`, first)
			want := []string{}
			for _, inbox := range tt.want {
				want = append(want, fmt.Sprintf("%s %x", s.ID(inbox), sha256.Sum256([]byte(s.Long(tt.body))))) // IN-06: the body is the same, byte for byte
			}
			slices.Sort(sent)
			if !slices.Equal(sent, want) && len(sent)+len(want) > 0 {
				t.Errorf("owed: %q, want %q", sent, want)
			}
			if events := s.Column(t, s.Alice, `SELECT type FROM event_outbox WHERE type LIKE '%.sent' AND type <> 'accept.sent'`); len(events) > 0 {
				t.Errorf("events %q: nobody here sent anything", events)
			}
			if len(want) > 0 && !s.Woken(s.Alice) {
				t.Error("nobody was told that there is something to deliver")
			}
		})
	}
}

// The number of forwarded activities is bounded for each sender.
func TestForwardingHasAnEndForEachSender(t *testing.T) {
	s := newScene(t)
	s.Posts("us:/alice/objects/1", "as:Public")
	s.Followed("q:/gus")
	owed := func() int { return len(s.Column(t, s.Alice, `SELECT id FROM delivery_jobs WHERE type <> 'Accept'`)) }
	send := func(from string, n int) {
		name := fmt.Sprintf("%s/replies/%d", from, n)
		s.MustSend(from, mine, strings.NewReplacer("p:/replies/1", name, "p:/carol", from).Replace(ghost))
	}
	for n := range 50 {
		send("p:/carol", n)
	}
	first := owed()
	if first < 30 || first >= 45 {
		t.Errorf("%d of 50 replies are passed on, want the 30 that may be at once", first)
	}
	if kept := s.Column(t, s.Alice, `SELECT uri FROM activities WHERE type = 'Create' AND direction = 'inbound'`); len(kept) != 50 {
		t.Errorf("alice has %d replies, want all 50", len(kept))
	}
	s.MustSend("p:/carol", mine, `{"id":"p:/acts/1","type":"Delete","actor":"p:/carol","to":"us:/alice/followers","object":{"id":"p:/carol/replies/0","type":"Tombstone"}}`)
	send("p:/dave", 1)
	s.Later(2 * time.Minute)
	send("p:/carol", 50)
	if got := owed(); got != first+3 {
		t.Errorf("%d more are passed on, want the Delete, that of somebody else, and the one of later", got-first)
	}
}

// An Undo is forwarded once, and only if the activity that it undoes was forwarded. A sender can
// take back a forwarded activity even after its bound is used up.
func TestWhatTakesBackIsForwardedOnceForWhatWasForwarded(t *testing.T) {
	s := newScene(t)
	s.Posts("us:/alice/objects/1", "as:Public")
	s.Followed("q:/gus")
	owed := func(kind string) []string {
		return s.Column(t, s.Alice, `SELECT object_uri FROM delivery_jobs WHERE type = $1`, kind)
	}
	for n := range 60 {
		for _, body := range []string{`{"id":"p:/likes/%[1]d","type":"Like","actor":"p:/carol","to":"us:/alice/followers","object":"us:/alice/objects/1"}`,
			`{"id":"p:/undos/%[1]d","type":"Undo","actor":"p:/carol","to":"us:/alice/followers","object":"p:/likes/%[1]d"}`} {
			s.MustSend("p:/carol", mine, fmt.Sprintf(body, n))
		}
	}
	likes, undone := owed("Like"), owed("Undo")
	for _, id := range likes {
		if !slices.Contains(undone, id) {
			t.Errorf("%s is not taken back from those who got it", id)
		}
	}
	if len(undone) >= len(likes)+10 {
		t.Errorf("%d Undos and %d Likes are passed on, want one for each", len(undone), len(likes))
	}
	for n := range 60 { // each Like is a new one, but each Undo is of the first Like
		for _, body := range []string{`{"id":"p:/likes/again/%[1]d","type":"Like","actor":"p:/carol","to":"us:/alice/followers","object":"us:/alice/objects/1"}`,
			`{"id":"p:/undos/again/%[1]d","type":"Undo","actor":"p:/carol","to":"us:/alice/followers","object":{"id":"p:/likes/0","type":"Like","object":"us:/alice/objects/1"}}`} {
			s.MustSend("p:/carol", mine, fmt.Sprintf(body, n))
		}
	}
	if got := owed("Undo"); len(got) >= len(undone)+10 {
		t.Errorf("%d Undos of one Like are passed on", len(got)-len(undone))
	}
}

// A Delete of a forwarded activity goes to the followers who got the activity, even if they no
// longer follow. It does not go to newer followers.
func TestWhatTakesBackGoesWhereItWasForwarded(t *testing.T) {
	s := newScene(t)
	author(s)
	s.MustSend("p:/carol", shared, ghost)
	s.MustSend("p:/carol", shared, strings.NewReplacer("/create", "/update", `"Create"`, `"Update"`).Replace(ghost))
	s.MustSend("q:/gus", mine, `{"id":"q:/undos/f","type":"Undo","actor":"q:/gus","to":"us:/alice","object":"q:/gus/follows/f"}`)
	s.Followed("q:/hal")
	s.MustSend("p:/carol", shared, `{"id":"p:/deletes/1","type":"Delete","actor":"p:/carol","to":["us:/alice/followers","q:/eve"],"object":"p:/replies/1"}`)
	got := s.Column(t, s.Alice, `SELECT d.inbox || ' ' || array_to_string(d.targets, ' ') FROM deliveries d JOIN delivery_jobs j ON j.id = d.job_id WHERE j.type = 'Delete' ORDER BY 1`)
	want := []string{s.Long("q:/gus/inbox q:/gus"), s.Long("q:/inbox q:/finn")}
	if !slices.Equal(got, want) {
		t.Errorf("taken back from %q, want %q", got, want)
	}
}

// A sender chooses the object of its activity. The deliveries of a forwarded activity are ordered
// by the object only if the object is of the sender's server; else by the activity. So they hold up
// neither the user's own deliveries about the object nor those of another server's activities.
func TestForwardedActivitiesAreOrderedByNothingOfOthers(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	act := func(fields string) string {
		return `{"id":"p:/acts/1","actor":"p:/carol","to":"us:/alice/followers",` + fields + `}`
	}
	const about = `,"inReplyTo":"us:/alice/objects/1"`
	for _, tt := range []struct{ name, body, want string }{
		{"a note of alice's", act(`"type":"View","object":"us:/alice/objects/1"`), "p:/acts/1"},
		{"a note of alice's, embedded", act(`"type":"View","object":{"type":"Note","id":"us:/alice/objects/1"}`), "p:/acts/1"},
		{"a note of alice's under another spelling", act(`"type":"View","object":"us:/alice/objects/1?x"` + about), "p:/acts/1"},
		{"alice", act(`"type":"View","object":"us:/alice"` + about), "p:/acts/1"},
		{"a conversation of alice's", act(`"type":"View","object":"us:/alice/conversations/1"` + about), "p:/acts/1"},
		{"something of another server", act(`"type":"View","object":"q:/notes/1"` + about), "p:/acts/1"},
		{"a Like", act(`"type":"Like","object":"us:/alice/objects/1"`), "p:/acts/1"},
		{"no id", act(`"type":"View","object":{"type":"Note"}` + about), "p:/acts/1"},
		{"carol's own answer", ghost, "p:/replies/1"},
		{"something of carol's server", act(`"type":"View","object":"p:/notes/1"` + about), "p:/notes/1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := stage.Scene(t)
			author(s)
			s.MustSend("p:/carol", mine, tt.body)
			got := s.Column(t, s.Alice, `SELECT object_uri FROM delivery_jobs j WHERE EXISTS (SELECT FROM deliveries d WHERE d.job_id = j.id AND d.forwarded)`)
			if !slices.Equal(got, []string{s.Long(tt.want)}) {
				t.Errorf("ordered by %q, want %s", got, s.Long(tt.want))
			}
		})
	}
}

// A follower on this server gets forwarded activities as a follower elsewhere does. They appear in
// the thread of the post that they answer, and in no feed (SEE-02).
func TestForwardingToALocalFollower(t *testing.T) {
	s := newScene(t)
	bob := s.With("bob")
	s.Posts("us:/alice/objects/1", "as:Public")
	post := `{"id":"us:/alice/objects/1/create","type":"Create","actor":"us:/alice","to":"as:Public","object":{"id":"us:/alice/objects/1","type":"Note","attributedTo":"us:/alice","to":"as:Public"}}`
	if err := s.Inbox.Deliver(t.Context(), s.Alice, bob.Alice, []byte(s.Long(post))); err != nil {
		t.Fatal(err)
	}
	follow := `{"id":"us:/alice/activities/1","type":"Follow","actor":"us:/alice","object":"` + string(s.Local.ID(s.Alice)) + `"}`
	if err := s.Inbox.Deliver(t.Context(), bob.Alice, s.Alice, []byte(bob.Long(follow))); err != nil {
		t.Fatal(err)
	}
	s.MustSend("p:/carol", mine, ghost)
	owed := s.Column(t, s.Alice, `SELECT convert_from(j.body, 'UTF8') FROM deliveries d JOIN delivery_jobs j ON j.id = d.job_id WHERE j.type = 'Create' AND d.inbox = $1 AND d.host = ''`, string(bob.ID(mine)))
	if len(owed) != 1 || owed[0] != s.Long(ghost) {
		t.Fatalf("owed to bob: %q", owed)
	}
	for range 2 {
		if err := s.Inbox.Deliver(t.Context(), s.Alice, bob.Alice, []byte(owed[0])); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.Column(t, bob.Alice, `SELECT activity_uri FROM feed`); len(got) != 1 || got[0] != string(s.ID("us:/alice/objects/1/create")) {
		t.Errorf("bob's feed = %q, want alice's post alone", got)
	}
	if got := s.Column(t, bob.Alice, `SELECT uri FROM objects WHERE raw ->> 'inReplyTo' = $1`, string(s.ID("us:/alice/objects/1"))); len(got) != 1 {
		t.Errorf("bob holds the answers %q, want the one that alice forwarded", got)
	}
}
