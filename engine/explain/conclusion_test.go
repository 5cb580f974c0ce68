package explain

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestATraceSaysWhatTheFactsMean(t *testing.T) {
	const id vocab.ID = "https://peer.example/notes/1"
	alice, err := vocab.ParseUsername("alice")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	brought := user.TracedActivity{URI: id + "/create", Type: "Create", Direction: user.Inbound, StoredAt: at}
	inFeed := brought
	inFeed.InFeed = true
	liked := user.TracedActivity{URI: "https://here.example/users/alice/activities/1", Type: "Like", Direction: user.Outbound, StoredAt: at}
	post := &user.TracedObject{Author: "https://peer.example/users/bob", StoredAt: at}
	job := func(c user.JobCounts) []user.TracedJob {
		return []user.TracedJob{{DeliveryJob: user.DeliveryJob{JobCounts: c}}}
	}
	for _, tt := range []struct {
		name    string
		facts   userFacts
		outcome string
		says    string
	}{
		{"in the feed", userFacts{traced: traced{user.Trace{Activities: []user.TracedActivity{liked, inFeed}, Object: post, SeenAt: &at}}}, TraceFeed, "It came on 2026-03-01T12:00:00Z as Create and is in the feed."},
		{"of no feed", userFacts{traced: traced{user.Trace{Activities: []user.TracedActivity{brought}, Object: post}}}, TraceStored, "is not in the feed"},
		{"an activity of no feed", userFacts{traced: traced{user.Trace{Activities: []user.TracedActivity{{URI: id, Type: "Like", StoredAt: at}}}}}, TraceStored, "as Like, which is stored and in no feed"},
		{"fetched to like it", userFacts{traced: traced{user.Trace{Activities: []user.TracedActivity{liked}, Object: post}}}, TraceObject, "was fetched"},
		{"deleted", userFacts{traced: traced{user.Trace{Activities: []user.TracedActivity{brought}, Object: post, DeletedAt: &at}}}, TraceDeleted, "Its author deleted it"},
		{"poisonous", userFacts{traced: traced{user.Trace{Poison: &user.TracedPoison{At: at, Reason: "invalid byte"}, SeenAt: &at}}}, TracePoison, "invalid byte. 'lightweb inbox retry alice --activity https://peer.example/notes/1' tries it again"},
		{"on its way", userFacts{waits: &at}, TraceWaiting, "waits to be applied, which a running engine does by itself: see 'lightweb inbox list alice'"},
		{"on its way to a database that is ill", userFacts{waits: &at, err: fault.New(fault.Unavailable, "it is dirty").WithHint("lightweb db migrate alice")}, TraceWaiting,
			"waits until the user's database can be used: it is dirty; lightweb db migrate alice."},
		{"of somebody that the user may block", userFacts{traced: traced{user.Trace{Blocks: []vocab.ID{post.Author}, Follows: []vocab.ID{"https://peer.example/users/carol"}}}}, TraceNever,
			"leaves no trace if it is of https://peer.example/users/bob, blocked by the user"},
		{"taken and gone", userFacts{traced: traced{user.Trace{SeenAt: &at}}}, TraceNotKept, "pruned"},
		{"kept for nobody", userFacts{blocked: true, ignored: &Ignored{At: at, Reason: "stranger", Says: describeIgnored(at, "stranger")}}, TraceIgnored,
			"It was answered 202 on 2026-03-01T12:00:00Z and kept for nobody: it is a private message of a stranger"},
		{"blocked", userFacts{blocked: true, traced: traced{user.Trace{Follows: []vocab.ID{post.Author}}}}, TraceBlocked, "domain unblock"},
		{"lost on the way", userFacts{traced: traced{user.Trace{Follows: []vocab.ID{post.Author}}}}, TraceNever, "lightweb actor fetch https://peer.example/users/bob --refresh"},
		{"nobody's business", userFacts{}, TraceNever, "follows nobody on that server"},
		{"unreadable", userFacts{err: errors.New("the database cannot be reached")}, TraceUnreadable, "the database cannot be reached"},
		{"another user's, and not sent", userFacts{local: true, traced: traced{user.Trace{Follows: []vocab.ID{post.Author}}}}, TraceNever, "the one whose id it is under"},
		{"one's own, and nobody's", userFacts{owner: true}, TraceNever, "no such activity"},
		{"one's own, delivered", userFacts{owner: true, traced: traced{user.Trace{Object: post, Jobs: job(user.JobCounts{Total: 2, Delivered: 2})}}}, TraceSent, "2 of 2 inboxes took it"},
		{"one's own, owed", userFacts{owner: true, traced: traced{user.Trace{Object: post, Jobs: job(user.JobCounts{Total: 2, Delivered: 1, Pending: 1})}}}, TraceSent, "tried again by a running engine"},
		{"one's own, given up", userFacts{owner: true, traced: traced{user.Trace{Object: post, Jobs: job(user.JobCounts{Total: 2, Failed: 1, Skipped: 1})}}}, TraceSent, "2 were given up"},
		{"one's own, owed to nobody", userFacts{owner: true, traced: traced{user.Trace{Object: post}}}, TraceSent, "owed to nobody"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.facts.id, tt.facts.u = id, alice
			if got := tt.facts.describe(); got.Outcome != tt.outcome || !strings.Contains(got.Says, tt.says) {
				t.Errorf("it says %s: %s, want %s and %q", got.Outcome, got.Says, tt.outcome, tt.says)
			}
		})
	}
}
