package handler_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/fault"
)

// asks stores a poll by alice. Its options are red and blue.
func asks(kind, to, more string) func(*peertest.Scene) {
	return func(s *peertest.Scene) {
		s.Act("", `{"id":"us:/alice/activities/q","type":"Create","actor":"us:/alice","to":"`+to+`","object":{"id":"us:/alice/objects/q","type":"Question",
			"attributedTo":"us:/alice","to":"`+to+`","content":"colour?","`+kind+`":[{"type":"Note","name":"red"},
			{"type":"Note","name":"blue","replies":{"type":"Collection","totalItems":0}}]`+more+`}}`)
	}
}

// ballot returns a vote by carol for an option. The parameter n makes the ids of the vote unique.
func ballot(n int, name string) string {
	return fmt.Sprintf(`{"id":"p:/votes/%d/create","type":"Create","actor":"p:/carol","to":"us:/alice","object":
		{"id":"p:/votes/%d","type":"Note","name":"%s","attributedTo":"p:/carol","to":"us:/alice","inReplyTo":"us:/alice/objects/q"}}`, n, n, name)
}

func voted(n int, name string) func(*peertest.Scene) {
	return func(s *peertest.Scene) { s.MustSend("p:/carol", "us:/alice/inbox", ballot(n, name)) }
}

func TestVote(t *testing.T) {
	ended := time.Now().Add(-time.Minute).UTC().Format(time.RFC3339)
	ends := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	none := "- counts us:/alice/objects/q voters votes [0]"
	one := []string{none, "+ vote 1 of p:/carol us:/alice/objects/q", "+ counts us:/alice/objects/q voters 1 votes [1]"}
	play(t, []row{
		{name: "IN-17 of a stranger, in a public poll", given: asks("oneOf", "as:Public", `,"endTime":"`+ends+`","closed":false`), body: ballot(1, "blue"),
			forged: strings.ReplaceAll(ballot(2, "blue"), `"actor":"p:/carol"`, `"actor":"p:/dave"`), want: one},
		{name: "AS-15 through the shared inbox", given: asks("oneOf", "as:Public", ""), inbox: "us:/inbox", body: ballot(1, "blue"), want: one},
		{name: "by the id of the vote", given: both(asks("oneOf", "as:Public", ""), serves("p:/votes/1", `{"id":"p:/votes/1","type":"Note","name":"blue","attributedTo":"p:/carol","to":"us:/alice","inReplyTo":"us:/alice/objects/q"}`)),
			body: `{"id":"p:/votes/1/create","type":"Create","actor":"p:/carol","to":"us:/alice","object":"p:/votes/1"}`, want: one},
		{name: "for an option that had no counts", given: asks("oneOf", "as:Public", ""), body: ballot(1, "red"),
			want: []string{none, "+ vote 0 of p:/carol us:/alice/objects/q", "+ counts us:/alice/objects/q voters 1 votes [1, 0]"}},
		{name: "ORG-25 a second one, for the same option", given: both(asks("oneOf", "as:Public", ""), voted(0, "blue")), body: ballot(1, "blue")},
		{name: "ORG-25 a second one, for another option", given: both(asks("oneOf", "as:Public", ""), voted(0, "blue")), body: ballot(1, "red")},
		{name: "a second one, where many may be chosen", given: both(asks("anyOf", "as:Public", ""), voted(0, "blue")), body: ballot(1, "red"), want: []string{
			"- counts us:/alice/objects/q voters 1 votes [1]",
			"+ vote 0 of p:/carol us:/alice/objects/q",
			"+ counts us:/alice/objects/q voters 1 votes [1, 1]"}},
		{name: "ORG-25 the same one again, where many may be chosen", given: both(asks("anyOf", "as:Public", ""), voted(0, "blue")), body: ballot(1, "blue")},
		{name: "ORG-25 for no option", given: asks("oneOf", "as:Public", ""), body: ballot(1, "green")},
		{name: "ORG-25 after the end", given: asks("oneOf", "as:Public", `,"endTime":"`+ended+`"`), body: ballot(1, "blue")},
		{name: "in a poll that was closed", given: asks("oneOf", "as:Public", `,"closed":"`+ended+`"`), body: ballot(1, "blue")},
		{name: "in a poll that is closed", given: asks("oneOf", "as:Public", `,"closed":true`), body: ballot(1, "blue")},
		{name: "in a poll for followers, by one", given: both(asks("oneOf", "us:/alice/followers", ""), func(s *peertest.Scene) { s.Followed("p:/carol") }), body: ballot(1, "blue"), want: one},
		{name: "ORG-26 in a poll for followers, by somebody else", given: asks("oneOf", "us:/alice/followers", ""), body: ballot(1, "blue")},
		{name: "in what is no poll", given: func(s *peertest.Scene) { s.Posts("us:/alice/objects/q", "as:Public") }, body: ballot(1, "blue")},
		{name: "in a poll that does not exist", body: ballot(1, "blue")},
		{name: "in another one's poll", given: follows, body: strings.Replace(ballot(1, "blue"), "us:/alice/objects/q", "q:/polls/1", 1)},
		{name: "with a name and words is a reply", given: both(follows, asks("oneOf", "as:Public", "")), body: strings.Replace(ballot(1, "blue"), `"name"`, `"content":"hm","name"`, 1), want: []string{
			"+ object p:/votes/1 Note hm",
			"+ activity inbound Create p:/votes/1/create p:/votes/1",
			"+ feed p:/votes/1/create by p:/carol",
			"+ event create.received p:/votes/1/create p:/votes/1 by contact p:/carol",
			"+ event dm.received p:/votes/1/create p:/votes/1 by contact p:/carol"}},
	})
}

// The name of a voter is stored with the vote only, and not in any activity, object or event.
func TestNothingKeepsTheNameOfAVoterButTheVote(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	asks("oneOf", "as:Public", "")(s)
	voted(1, "blue")(s)
	if got := s.Column(t, s.Alice, `SELECT raw::text FROM activities UNION ALL SELECT raw::text FROM objects UNION ALL SELECT payload::text FROM event_outbox`); strings.Contains(strings.Join(got, ""), s.Long("p:/")) {
		t.Errorf("stored: %q", got)
	}
}

// The Delete of an actor removes the actor's votes. Alice gets no event: carol's Delete concerns
// only users who hold something else of carol's.
func TestADeletedActorsVotesCountNoMore(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	both(asks("anyOf", "as:Public", ""), voted(1, "blue"), voted(2, "red"))(s)
	s.MustSend("p:/dave", "us:/alice/inbox", strings.ReplaceAll(strings.ReplaceAll(ballot(3, "red"), "p:/carol", "p:/dave"), "votes", "davesvotes"))
	expect(t, s, "the Delete", []string{
		"- vote 0 of p:/carol us:/alice/objects/q",
		"- vote 1 of p:/carol us:/alice/objects/q",
		"- counts us:/alice/objects/q voters 2 votes [2, 1]",
		"+ counts us:/alice/objects/q voters 1 votes [1, 0]"}, accepted, func() error {
		return s.Send("p:/carol", "us:/inbox", `{"id":"p:/deletes/1","type":"Delete","actor":"p:/carol","object":"p:/carol"}`)
	})
}

// carolsPoll returns a poll by carol in Mastodon's form.
func carolsPoll(content, more, red, blue, voters string) string {
	option := func(name, n string) string {
		return `{"type":"Note","name":"` + name + `","replies":{"type":"Collection","totalItems":` + n + `}}`
	}
	return `{"id":"p:/notes/1","type":"Question","attributedTo":"p:/carol","content":"` + content + `",` + toAll + `,"published":"2026-01-01T10:00:00Z",
		"endTime":"2036-01-01T10:00:00Z","oneOf":[` + option("red", red) + `,` + option("blue", blue) + `],"votersCount":` + voters + more + `}`
}

func TestPoll(t *testing.T) {
	update := func(object string) string {
		return `{"id":"p:/updates/1","type":"Update","actor":"p:/carol","object":` + object + `}`
	}
	asked := both(follows, sends(createOf(carolsPoll("hi", "", "1", "2", "3"), toAll)))
	refreshed := func(counts string) []string {
		return []string{
			"- counts p:/notes/1 voters 3 votes [1, 2]",
			"+ activity inbound Update p:/updates/1 p:/notes/1",
			"+ event update.received p:/updates/1 p:/notes/1 by contact p:/carol",
			"+ counts p:/notes/1 voters " + counts}
	}
	edited := []string{"- object p:/notes/1 Question hi", "- counts p:/notes/1 voters 3 votes [1, 2]", "+ object p:/notes/1 Question new",
		"+ activity inbound Update p:/updates/1 p:/notes/1",
		"+ event update.received p:/updates/1 p:/notes/1 by contact p:/carol",
		"+ counts p:/notes/1 voters 9 votes [4, 5]"}
	const at = `,"updated":"2026-01-01T11:00:00Z"`
	play(t, []row{
		{name: "IN-17 is shown like any post", given: follows, inbox: "us:/inbox", body: createOf(carolsPoll("hi", "", "1", "2", "3"), toAll), want: []string{
			"+ object p:/notes/1 Question hi", received, inFeed,
			"+ event create.received p:/creates/1 p:/notes/1 by contact p:/carol",
			"+ counts p:/notes/1 voters 3 votes [1, 2]"}},
		{name: "is counted anew, and nothing else", given: asked, inbox: "us:/inbox", body: update(carolsPoll("new", "", "4", "5", "9")), want: refreshed("9 votes [4, 5]"),
			forged: strings.ReplaceAll(update(carolsPoll("new", "", "4", "5", "9")), "p:/carol", "p:/dave")},
		{name: "is counted anew, by id", given: both(asked, serves("p:/notes/1", carolsPoll("new", "", "4", "5", "9"))), inbox: "us:/inbox", body: update(`"p:/notes/1"`), want: refreshed("9 votes [4, 5]")},
		{name: "counted as before is no news", given: asked, inbox: "us:/inbox", body: update(carolsPoll("new", "", "1", "2", "3"))},
		{name: "AS-19 counts that are none are passed over", given: asked, inbox: "us:/inbox", body: update(carolsPoll("new", "", "-4", "1e300", `"9"`))},
		{name: "AS-19 each count is taken for itself", given: asked, inbox: "us:/inbox", body: update(carolsPoll("new", "", "4", "1.5", "9007199254740992")), want: refreshed("3 votes [4, 2]")},
		{name: "of other options gives no counts", given: asked, inbox: "us:/inbox", body: update(strings.NewReplacer(`"red"`, `"green"`, `"blue"`, `"pink"`).Replace(carolsPoll("new", "", "4", "5", "3")))},
		{name: "that is not here is not counted", given: follows, inbox: "us:/inbox", body: update(carolsPoll("new", "", "4", "5", "9"))},
		{name: "that was edited is replaced", given: asked, inbox: "us:/inbox", body: update(carolsPoll("new", at, "4", "5", "9")), want: edited},
		{name: "that was edited before what is here", given: both(asked, sends(`{"id":"p:/updates/0","type":"Update","actor":"p:/carol","object":`+carolsPoll("newest", `,"updated":"2026-01-01T12:00:00Z"`, "1", "2", "3")+`}`)),
			inbox: "us:/inbox", body: update(carolsPoll("new", at, "4", "5", "9"))},
	})
}

// Counts may come with an earlier end. A poll never opens again.
func TestAPollEndsEarly(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	const end = "2036-01-01T10:00:00Z"
	ending := func(more string) string {
		return strings.Replace(carolsPoll("new", "", "1", "2", "3"), `"endTime":"`+end+`"`, more, 1)
	}
	for name, c := range map[string]struct{ object, want string }{
		"closed at a time":            {carolsPoll("new", `,"closed":"2026-02-01T10:00:00Z"`, "1", "2", "3"), end + " 2026-02-01T10:00:00Z"},
		"closed":                      {carolsPoll("new", `,"closed":true`, "1", "2", "3"), end + " true"},
		"closed in a form of its own": {carolsPoll("new", `,"closed":{"type":"Object","content":"psst"}`, "1", "2", "3"), end + " true"},
		"not closed":                  {carolsPoll("new", `,"closed":false`, "1", "2", "3"), end},
		"ends earlier":                {ending(`"endTime":"2030-01-01T10:00:00Z"`), "2030-01-01T10:00:00Z"},
		"ends later":                  {ending(`"endTime":"2037-01-01T10:00:00Z"`), end},
		"ends at no time":             {ending(`"endTime":"soon"`), end},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stage.Scene(t)
			both(follows, sends(createOf(carolsPoll("hi", "", "1", "2", "3"), toAll)))(s)
			s.MustSend("p:/carol", "us:/inbox", `{"id":"p:/updates/1","type":"Update","actor":"p:/carol","object":`+c.object+`}`)
			if got := s.Column(t, s.Alice, `SELECT concat_ws(' ', raw ->> 'endTime', raw ->> 'closed') FROM objects`); len(got) != 1 || got[0] != c.want {
				t.Errorf("the poll ends %q, want %q", got, c.want)
			}
		})
	}
}

func TestOptionsAreBounded(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	follows(s)
	poll := func(n int, kind string) string {
		return `{"id":"p:/notes/1","type":"Question","` + kind + `":[` + strings.TrimPrefix(strings.Repeat(`,{"type":"Note","name":"red"}`, n), ",") + `]}`
	}
	for _, kind := range []string{"oneOf", "anyOf"} {
		for _, object := range []string{poll(51, kind), `{"id":"p:/notes/1","type":"Question","` + kind + `":7}`} {
			for _, activity := range []string{"Create", "Update"} {
				var err error
				expect(t, s, "PAR-04 "+activity, nil, fault.Invalid, func() error {
					err = s.Send("p:/carol", "us:/inbox", strings.Replace(createOf(object, toAll), "Create", activity, 1))
					return err
				})
				if e := fault.Of(err); e == nil || e.Pointer != "/object/"+kind {
					t.Errorf("err = %v, want one that points to the options", err)
				}
			}
		}
	}
	s.Serve("p:/notes/1", strings.Replace(poll(51, "oneOf"), `"oneOf"`, `"attributedTo":"p:/carol",`+toAll+`,"oneOf"`, 1))
	expect(t, s, "PAR-04 by id", nil, accepted, func() error { return s.Send("p:/carol", "us:/inbox", createOf(`"p:/notes/1"`, toAll)) })
	s.MustSend("p:/carol", "us:/inbox", strings.Replace(createOf(poll(50, "anyOf"), toAll), "creates/1", "creates/2", 1))
	if got := s.Column(t, s.Alice, `SELECT count(*) FROM feed`); got[0] != "1" {
		t.Errorf("%s in the feed, want the poll of 50 options", got[0])
	}
}
