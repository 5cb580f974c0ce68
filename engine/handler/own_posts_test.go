package handler_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
)

// announcedEdit is an Announce by the community. It announces an Update of alice's post.
const announcedEdit = `{"id":"p:/announces/u1","type":"Announce","actor":"` + community + `","to":"as:Public","cc":"` + community + `/followers",
	"object":{"id":"us:/alice/activities/u1","type":"Update","actor":"us:/alice","to":"as:Public","object":"us:/alice/objects/1"}}`

// Alice follows a community, so it also announces the Update of alice's own post to her. The post
// in alice's database stays as alice wrote it.
func TestAGroupDoesNotChangeTheUsersOwnPosts(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	moderates(s)
	s.Act("", `{"id":"us:/alice/objects/1/create","type":"Create","actor":"us:/alice","to":"as:Public","cc":"`+community+`","object":{"id":"us:/alice/objects/1","type":"Note","attributedTo":"us:/alice",
		"to":"as:Public","cc":"`+community+`","content":"<p>two  spaces</p>","source":{"content":"two  spaces","mediaType":"text/plain"}}}`)
	held := func() []string {
		return s.Column(t, s.Alice, `SELECT concat_ws(' ', raw, readable, updated_at) FROM objects WHERE uri = $1`, s.Long("us:/alice/objects/1"))
	}
	before := held()
	expect(t, s, "an Update of alice's own post", nil, accepted, func() error { return s.Send(community, "us:/inbox", announcedEdit) })
	if got := held(); !slices.Equal(got, before) {
		t.Errorf("alice holds %q, want %q", got, before)
	}
	boost := `{"id":"p:/announces/c1","type":"Announce","actor":"` + community + `","to":"as:Public","cc":"` + community + `/followers",
		"object":{"id":"us:/alice/objects/1/create","type":"Create","actor":"us:/alice","to":"as:Public","object":"us:/alice/objects/1"}}`
	expect(t, s, "the Create of alice's own post", []string{
		"+ activity inbound Announce p:/announces/c1 us:/alice/objects/1",
		"+ reaction " + community + " Announce us:/alice/objects/1 p:/announces/c1",
		"+ feed p:/announces/c1 by " + community,
		"+ event announce.received p:/announces/c1 us:/alice/objects/1 by contact " + community,
	}, accepted, func() error { return s.Send(community, "us:/inbox", boost) })
}

// When alice's quote is approved, all holders of the quote get an Update. Alice quotes a post of a
// group. The group must not be able to take the approval away by an Announce and then to approve
// the quote again and again.
func TestAGroupApprovesAQuoteOnce(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	moderates(s)
	s.Followed("p:/dave")
	s.Act("", `{"id":"us:/alice/objects/1/create","type":"Create","actor":"us:/alice","to":"as:Public","object":{"id":"us:/alice/objects/1","type":"Note","attributedTo":"us:/alice",
		"to":"as:Public","audience":"`+community+`","content":"see","quote":"p:/post/5"}}`)
	request := `{"id":"us:/alice/activities/r","type":"QuoteRequest","actor":"us:/alice","to":"` + community + `","object":"p:/post/5","instrument":"us:/alice/objects/1"}`
	err := s.Store.Write(t.Context(), s.Alice, func(ctx context.Context, tx *user.Tx) error {
		return tx.Activities.Add(ctx, user.Activity{ID: uuid.New(), URI: s.ID("us:/alice/activities/r"), Direction: user.Outbound, Type: "QuoteRequest", Actor: s.ID("us:/alice"),
			Object: s.ID("us:/alice/objects/1"), Published: s.Now(), Raw: []byte(s.Long(request))})
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Serve("p:/stamps/1", `{"id":"p:/stamps/1","type":"QuoteAuthorization","attributedTo":"`+community+`","interactingObject":"us:/alice/objects/1","interactionTarget":"p:/post/5"}`)
	approve := `{"id":"p:/accepts/1","type":"Accept","actor":"` + community + `","object":"us:/alice/activities/r","result":"p:/stamps/1"}`
	s.MustSend(community, "us:/alice/inbox", approve)
	s.MustSend(community, "us:/inbox", announcedEdit)
	s.MustSend(community, "us:/alice/inbox", strings.Replace(approve, "accepts/1", "accepts/2", 1))
	if got := s.Column(t, s.Alice, `SELECT coalesce(raw ->> 'audience', '') FROM activities WHERE direction = 'outbound' AND type = 'Update'`); !slices.Equal(got, []string{s.Long(community)}) {
		t.Errorf("alice sent Updates with the audiences %q, want one with that of the post", got)
	}
	if got := s.Column(t, s.Alice, `SELECT coalesce(raw ->> 'quoteAuthorization', '') FROM objects WHERE uri = $1`, s.Long("us:/alice/objects/1")); !slices.Equal(got, []string{s.Long("p:/stamps/1")}) {
		t.Errorf("the quote claims %q, want the stamp", got)
	}
}

// The stamp of a local user's quote was verified when it arrived. A boost of the quote causes no
// request to another server.
func TestABoostOfALocalQuoteAsksNobody(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	s.Follows("q:/eve")
	s.Act("", `{"id":"us:/alice/objects/1/create","type":"Create","actor":"us:/alice","to":"as:Public","object":{"id":"us:/alice/objects/1","type":"Note","attributedTo":"us:/alice",
		"to":"as:Public","content":"see","quote":"p:/post/5","quoteAuthorization":"p:/stamps/1"}}`)
	if n := len(s.Column(t, s.Alice, `UPDATE objects SET raw = raw || jsonb_build_object('quoteAuthorization', $1::text) RETURNING uri`, s.Long("p:/stamps/1"))); n != 1 {
		t.Fatalf("%d posts are approved, want 1", n)
	}
	asked := s.Reached("p:")
	s.MustSend("q:/eve", "us:/inbox", `{"id":"q:/boosts/1","type":"Announce","actor":"q:/eve","to":"as:Public","object":"us:/alice/objects/1"}`)
	if n := s.Reached("p:") - asked; n != 0 {
		t.Errorf("the boost made %d requests to the quoted author's server, want none", n)
	}
}

// Alice does not follow bob. So only the community brings bob's post and its edit to alice.
func TestAGroupBringsTheEditsOfOtherUsers(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	bob := s.With("bob")
	bobs := strings.NewReplacer("us:/alice", string(bob.ID("us:/alice")))
	note := func(content, more string) string {
		return `{"id":"us:/alice/objects/1","type":"Note","attributedTo":"us:/alice","to":"as:Public","published":"2026-01-01T00:00:00Z","content":"` + content + `"` + more + `}`
	}
	moderates(s)
	bob.Act("", `{"id":"us:/alice/objects/1/create","type":"Create","actor":"us:/alice","to":"as:Public","object":`+note("first", "")+`}`)
	s.MustSend(community, "us:/inbox", bobs.Replace(strings.NewReplacer("announces/u1", "announces/c1", "activities/u1", "activities/c1", `"Update"`, `"Create"`).Replace(announcedEdit)))
	bob.Act("", `{"id":"us:/alice/activities/u1","type":"Update","actor":"us:/alice","to":"as:Public","object":`+note("second", `,"updated":"2026-01-02T00:00:00Z"`)+`}`)
	s.MustSend(community, "us:/inbox", bobs.Replace(announcedEdit))
	if got := s.Column(t, s.Alice, `SELECT raw ->> 'content' FROM objects`); !slices.Equal(got, []string{"second"}) {
		t.Errorf("alice holds %q, want the edit", got)
	}
}
