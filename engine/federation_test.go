package engine_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// Two engines send each other every kind of activity. The test checks the effects from outside: in
// the answers of the API, in the databases of both sides, and in the events.
func TestFederation(t *testing.T) {
	t.Parallel()
	a, b := enginetest.StartTwo(t)
	t.Run("between two engines, both restarted on the way", func(t *testing.T) {
		s := newScene(a.CreateUser(t, "alice"), b.CreateUser(t, "bob"))
		s.play(t, story[:len(story)/2])
		a.Kill()
		b.Stop(t)
		a.Start(t)
		b.Start(t)
		s.play(t, story[len(story)/2:])
	})
	t.Run("the other way round", func(t *testing.T) {
		newScene(b.CreateUser(t, "carol"), a.CreateUser(t, "dave")).play(t, story)
	})
	t.Run("on one engine", func(t *testing.T) {
		newScene(a.CreateUser(t, "erin"), a.CreateUser(t, "frank")).play(t, story)
	})
	t.Run("with approval", func(t *testing.T) {
		author := b.CreateUser(t, "grace")
		author.Configure(t, `{"follow_policy":"approval_required"}`)
		newScene(a.CreateUser(t, "heidi"), author).play(t, approval)
	})
	t.Run("a private post of a stranger waits, and an answer does not", func(t *testing.T) { strangersPrivatePostWaits(t, a, b) })
	t.Run("a post to a group", func(t *testing.T) { postToAGroup(t, a, b) })
	t.Run("notifications of what is taken back", func(t *testing.T) { takenBackLeavesTheNotifications(t, a, b) })
	t.Run("people", func(t *testing.T) { peopleAreFoundAndMentioned(t, a, b) })
	t.Run("a thread", func(t *testing.T) { threadIsWholeOnBothSides(t, a, b) })
	t.Run("quotes", func(t *testing.T) { quotesAreApproved(t, a.CreateUser(t, "quinn"), b.CreateUser(t, "quill")) })
	t.Run("quotes on one engine", func(t *testing.T) { quotesAreApproved(t, a.CreateUser(t, "quiana"), a.CreateUser(t, "quincy")) })
	t.Run("articles, videos and things", func(t *testing.T) { postsOfEveryTypeArrive(t, a, b) })
	t.Run("the example bot", func(t *testing.T) { theExampleBotAnswers(t, a, b) })
	t.Run("mutes", func(t *testing.T) { mutesHold(t, a, b) })
	t.Run("the client API", func(t *testing.T) { clientAPIIsAsDescribed(t, a, b) })
	t.Run("a local post", func(t *testing.T) { localPostStaysHere(t, a, b) })
	t.Run("what actions send", func(t *testing.T) { actionsArriveAsWritten(t, a, b) })
	t.Run("streams", func(t *testing.T) { streamsAreShownElsewhere(t, a, b) })
	t.Run("friends", func(t *testing.T) { friendsAreMadeAndLost(t, a, b) })
	t.Run("a deletion", func(t *testing.T) { deletionReachesEverybody(t, a, b) })
	t.Run("rotated keys", func(t *testing.T) { rotatedKeysAreTaken(t, a, b) })
	t.Run("import", func(t *testing.T) { mastodonsFilesAreImported(t, a, b) })
	t.Run("a move", func(t *testing.T) { followersGoWithWhoMoves(t, a, b) })
	t.Run("profiles", func(t *testing.T) { profilesAreTold(t, a, b) })
	t.Run("pictures", func(t *testing.T) { picturesAreTold(t, a, b) })
	t.Run("a block", func(t *testing.T) { blockBetweenEngines(t, a, b) })
	t.Run("a block that is delivered", func(t *testing.T) { blockThatIsDelivered(t, a, b) })
	t.Run("a report", func(t *testing.T) { reportByAPeer(t, a) })
	t.Run("a conversation", func(t *testing.T) { conversationOnTwoServers(t, a, b) })
	t.Run("a receiver that is away", func(t *testing.T) { receiverThatIsAway(t, a, b) })
	t.Run("a dirty database", func(t *testing.T) { dirtyDatabase(t, a, b) })
	t.Run("a database server that dies", func(t *testing.T) { databaseServerThatDies(t, a, b) })
}

// who is one of the two people of a scene.
type who int

const (
	follower who = iota
	author
)

// step is one action and everything that it must cause. In params and queries, {follower} and
// {author} stand for their ids and {author.handle} for a handle. {NAME} stands for the activity of
// the step that makes NAME, and {NAME.object} for the object of that activity.
type step struct {
	name   string
	by     who
	action string
	params map[string]any
	makes  string

	sent     []string // the acting person's events, in any order, with those that the other person's answer causes
	received []string // the other person's events
	shows    string   // the feed in which the other person finds the activity
	holds    []holds
	gone     string // the object that is a Tombstone after the step
}

// holds is a query in one person's database with the expected results, joined by commas.
type holds struct {
	whose       who
	query, want string
}

const (
	following   = `SELECT status FROM relationships WHERE type = 'following' AND actor_uri = '{author}'`
	followed    = `SELECT status FROM relationships WHERE type = 'follower' AND actor_uri = '{follower}'`
	postsInFeed = `SELECT count(*) FROM feed WHERE activity_uri = '{post}'`
	contents    = `SELECT raw ->> 'content' FROM objects WHERE uri = '{post.object}'`
	likes       = `SELECT type FROM reactions WHERE kind = 'review' AND object_uri = '{post.object}' AND actor_uri = '{follower}'`
	boosts      = `SELECT type FROM reactions WHERE kind = 'announce' AND object_uri = '{post.object}' AND actor_uri = '{follower}'`
)

// story has a step for each handler. The test checks each step at the sender and at the recipient.
var story = []step{
	{name: "Follow is accepted at once", by: follower, action: "Follow", params: map[string]any{"actorUri": "{author.handle}"}, makes: "follow",
		sent: []string{"follow.sent", "relationship.changed", "accept.received", "relationship.changed"}, received: []string{"follow.received", "relationship.changed", "accept.sent"},
		shows: "notifications",
		holds: []holds{{follower, following, "accepted"}, {author, followed, "accepted"}}},
	{name: "Create to everybody", by: author, action: "CreateNote", params: map[string]any{"content": "for everybody", "visibility": "public"}, makes: "post",
		sent: []string{"create.sent"}, received: []string{"create.received"}, shows: "main",
		holds: []holds{{follower, contents, "<p>for everybody</p>"}, {author, contents, "<p>for everybody</p>"}, {author, postsInFeed, "1"}}},
	{name: "Create to followers", by: author, action: "CreateNote", params: map[string]any{"content": "for followers", "visibility": "followers"},
		sent: []string{"create.sent"}, received: []string{"create.received"}, shows: "main"},
	{name: "Create to one actor", by: author, action: "CreateNote",
		params: map[string]any{"content": "for you", "visibility": "direct", "to": []string{"{follower}"}}, makes: "direct",
		sent: []string{"create.sent"}, received: []string{"create.received", "dm.received", "mention.received"}, shows: "main"},
	{name: "Create in reply", by: follower, action: "Reply", params: map[string]any{"objectId": "{post.object}", "content": "an answer"}, makes: "reply",
		sent: []string{"create.sent"}, received: []string{"create.received", "mention.received"}, shows: "notifications",
		holds: []holds{{author, `SELECT raw ->> 'inReplyTo' FROM objects WHERE uri = '{reply.object}'`, "{post.object}"}}},
	{name: "Like", by: follower, action: "Like", params: map[string]any{"objectId": "{post.object}"}, makes: "like",
		sent: []string{"like.sent"}, received: []string{"like.received"}, shows: "notifications",
		holds: []holds{{follower, likes, "Like"}, {author, likes, "Like"}}},
	{name: "Announce to the author", by: follower, action: "Boost", params: map[string]any{"objectId": "{post.object}"}, makes: "boost",
		sent: []string{"announce.sent"}, received: []string{"announce.received"}, shows: "notifications",
		holds: []holds{{follower, boosts, "Announce"}, {author, boosts, "Announce"}}},
	{name: "Announce to followers", by: author, action: "Boost", params: map[string]any{"objectId": "{reply.object}"},
		sent: []string{"announce.sent"}, received: []string{"announce.received"}, shows: "main"},
	{name: "Update of an object", by: author, action: "UpdateObject", params: map[string]any{"objectId": "{post.object}", "content": "for everybody, corrected"},
		sent: []string{"update.sent"}, received: []string{"update.received"},
		holds: []holds{{follower, contents, "<p>for everybody, corrected</p>"}, {author, contents, "<p>for everybody, corrected</p>"}}},
	{name: "Undo of Like", by: follower, action: "Unlike", params: map[string]any{"objectId": "{post.object}"},
		sent: []string{"undo.sent"}, received: []string{"undo.received"},
		holds: []holds{{follower, likes, ""}, {author, likes, ""}}},
	{name: "Undo of Announce", by: follower, action: "Unboost", params: map[string]any{"objectId": "{post.object}"},
		sent: []string{"undo.sent"}, received: []string{"undo.received"},
		holds: []holds{{follower, boosts, ""}, {author, boosts, ""}, {author, `SELECT count(*) FROM activities WHERE uri = '{boost}'`, "0"}}},
	{name: "Delete of an object", by: author, action: "DeleteObject", params: map[string]any{"objectId": "{post.object}"},
		sent: []string{"delete.sent"}, received: []string{"delete.received"}, gone: "{post.object}",
		holds: []holds{{follower, postsInFeed, "0"}, {author, postsInFeed, "0"},
			{follower, `SELECT raw ->> 'type' FROM objects WHERE uri = '{post.object}'`, "Tombstone"},
			{follower, `SELECT count(*) FROM activities WHERE raw::text LIKE '%for everybody%'`, "0"},
			{author, `SELECT count(*) FROM activities WHERE raw::text LIKE '%for everybody%'`, "0"}}},
	{name: "Undo of Follow", by: follower, action: "Unfollow", params: map[string]any{"actorUri": "{author}"},
		sent: []string{"undo.sent", "relationship.changed"}, received: []string{"undo.received", "relationship.changed"},
		holds: []holds{{follower, following, ""}, {author, followed, ""}}},
}

// approval is a story of follows. The author approves followers by hand.
var approval = []step{
	{name: "Follow waits", by: follower, action: "Follow", params: map[string]any{"actorUri": "{author.handle}"}, makes: "follow",
		sent: []string{"follow.sent", "relationship.changed"}, received: []string{"follow.received", "relationship.changed"}, shows: "notifications",
		holds: []holds{{follower, following, "pending"}, {author, followed, "pending"}}},
	{name: "Accept", by: author, action: "AcceptFollow", params: map[string]any{"activityId": "{follow}"},
		sent: []string{"accept.sent", "relationship.changed"}, received: []string{"accept.received", "relationship.changed"}, shows: "notifications",
		holds: []holds{{follower, following, "accepted"}, {author, followed, "accepted"}}},
	{name: "Reject ends what was accepted", by: author, action: "RejectFollow", params: map[string]any{"actorUri": "{follower}"},
		sent: []string{"reject.sent", "relationship.changed"}, received: []string{"reject.received", "relationship.changed"},
		holds: []holds{{follower, following, "rejected"}, {author, followed, ""}}},
	{name: "Follow is asked for again", by: follower, action: "Follow", params: map[string]any{"actorUri": "{author}"}, makes: "again",
		sent: []string{"follow.sent", "relationship.changed"}, received: []string{"follow.received", "relationship.changed"},
		holds: []holds{{follower, following, "pending"}, {author, followed, "pending"}}},
	{name: "Reject", by: author, action: "RejectFollow", params: map[string]any{"activityId": "{again}"},
		sent: []string{"reject.sent", "relationship.changed"}, received: []string{"reject.received", "relationship.changed"},
		holds: []holds{{follower, following, "rejected"}, {author, followed, ""}}},
}

// scene holds two people, with the events and ids of the steps so far.
type scene struct {
	people [2]*enginetest.User
	seen   [2]int64          // the last event that the test has expected
	names  map[string]string // the values of {NAME} and the other names in braces
}

func newScene(f, a *enginetest.User) *scene {
	return &scene{people: [2]*enginetest.User{f, a}, names: map[string]string{"follower": f.ID, "author": a.ID, "author.handle": a.Handle}}
}

func (s *scene) fill(text string) string {
	pairs := make([]string, 0, 2*len(s.names))
	for name, value := range s.names {
		pairs = append(pairs, "{"+name+"}", value)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

func (s *scene) fillAll(params map[string]any) map[string]any {
	filled := map[string]any{}
	for k, v := range params {
		switch v := v.(type) {
		case string:
			filled[k] = s.fill(v)
		case []string:
			list := slices.Clone(v)
			for n := range list {
				list[n] = s.fill(list[n])
			}
			filled[k] = list
		}
	}
	return filled
}

// play plays the steps in order. Each step builds on the state that the earlier steps left.
func (s *scene) play(t *testing.T, steps []step) {
	t.Helper()
	for _, st := range steps {
		if !t.Run(st.name, func(t *testing.T) { s.perform(t, st) }) {
			t.FailNow()
		}
	}
}

func (s *scene) perform(t *testing.T, st step) {
	actor, other := s.people[st.by], s.people[1-st.by]
	id := actor.Do(t, st.action, s.fillAll(st.params)).ActivityID
	if st.makes != "" {
		s.names[st.makes], s.names[st.makes+".object"] = id, enginetest.ObjectOf(t, actor, id)
	}
	s.expect(t, st.by, st.sent)
	s.expect(t, 1-st.by, st.received)
	for _, h := range st.holds {
		query := s.fill(h.query)
		got := strings.Join(s.people[h.whose].Column(t, query), ",")
		if want := s.fill(h.want); got != want {
			t.Errorf("%s of %s finds %q, want %q", query, s.people[h.whose].Name, got, want)
		}
	}
	if st.shows != "" {
		other.Await(t, st.shows, st.action, func(i enginetest.Item) bool { return i.ActivityURI == id && i.ActorURI == actor.ID })
	}
	delivered(t, actor, id, actor.Home == other.Home)
	if st.gone != "" {
		object := s.fill(st.gone)
		a := enginetest.Fetch(t, object)
		var tombstone struct{ ID, Type string }
		a.Decode(t, &tombstone)
		if a.Status != http.StatusGone || tombstone.Type != "Tombstone" || tombstone.ID != object {
			t.Errorf("%s was answered %d %s, want 410 and its Tombstone", object, a.Status, a.Body)
		}
	}
}

// expect waits for the given events, in any order, after those that were expected before. It fails
// the test if there are other events, too.
func (s *scene) expect(t *testing.T, whose who, want []string) {
	t.Helper()
	u := s.people[whose]
	var got []string
	var last int64
	enginetest.Eventually(t, u.Name+" is told "+strings.Join(want, ", "), func() bool {
		got, last = nil, s.seen[whose]
		for _, e := range u.Events(t, s.seen[whose]) {
			got, last = append(got, e.Type), e.Seq
		}
		return len(got) >= len(want)
	})
	s.seen[whose] = last
	slices.Sort(got)
	if want = slices.Sorted(slices.Values(want)); !slices.Equal(got, want) {
		t.Fatalf("%s was told %q, want %q", u.Name, got, want)
	}
}

// delivered waits until all deliveries of an activity are done. It checks that there was at least
// one delivery. The deliveries must be local if here is true, and by HTTP otherwise.
func delivered(t *testing.T, u *enginetest.User, activity string, here bool) {
	t.Helper()
	var got string
	enginetest.Eventually(t, "deliveries of "+activity+" are settled", func() bool {
		got = strings.Join(u.Column(t, `SELECT DISTINCT d.status || (CASE d.host WHEN '' THEN ' here' ELSE ' there' END)
			FROM deliveries d JOIN delivery_jobs j ON j.id = d.job_id WHERE j.activity_uri = $1`, activity), ",")
		return !strings.Contains(got, "pending")
	})
	want := "delivered there"
	if here {
		want = "delivered here"
	}
	if got != want {
		t.Errorf("deliveries of %s are %q, want %q", activity, got, want)
	}
}
