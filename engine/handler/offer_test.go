package handler_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/fault"
)

const friendURI = "https://lightwebbrowser.org/ns/friendOf"

// offerBy returns an Offer of friendship. The Relationship is embedded in it.
func offerBy(id, from, to string) string {
	return `{"id":"` + id + `","type":"Offer","actor":"` + from + `","object":{"type":"Relationship","subject":"` + from + `","relationship":"` + friendURI + `","object":"` + to + `"}}`
}

var (
	carolOffers = offerBy("p:/offers/1", "p:/carol", "us:/alice")
	aliceOffers = offerBy("us:/alice/activities/o", "us:/alice", "p:/carol")
)

func offered(s *peertest.Scene)        { s.Act("p:/carol", aliceOffers) }
func offeredByCarol(s *peertest.Scene) { s.MustSend("p:/carol", "us:/alice/inbox", carolOffers) }

func befriended(s *peertest.Scene) {
	offered(s)
	s.MustSend("p:/carol", "us:/alice/inbox", `{"id":"p:/accepts/1","type":"Accept","actor":"p:/carol","published":"2026-01-02T00:00:00Z","object":"us:/alice/activities/o"}`)
}

func befriendedByCarol(s *peertest.Scene) {
	offeredByCarol(s)
	s.Act("p:/carol", `{"id":"us:/alice/activities/a","type":"Accept","actor":"us:/alice","object":`+carolOffers+`}`)
}

func TestOffersToBeFriends(t *testing.T) {
	with := func(change ...string) string { return strings.NewReplacer(change...).Replace(carolOffers) }
	waits := []string{
		"+ relationship friend friendOf p:/carol pending p:/offers/1 inbound",
		"+ activity inbound Offer p:/offers/1",
		"+ actor p:/carol",
		"+ event offer.received p:/offers/1 by stranger p:/carol",
		"+ event friendrequest.received p:/offers/1 by stranger p:/carol",
		"+ event relationship.changed p:/offers/1 by stranger p:/carol"}
	stored := []string{"+ activity inbound Offer p:/offers/1", "+ event offer.received p:/offers/1 by stranger p:/carol"}
	play(t, []row{
		{name: "wait for the user", body: carolOffers, want: waits, forged: strings.ReplaceAll(carolOffers, `"actor":"p:/carol"`, `"actor":"p:/dave"`)},
		{name: "through the shared inbox", inbox: "us:/inbox", body: carolOffers, want: waits},
		{name: "by the short name", body: with(friendURI, "lw:friendOf"), want: waits},
		{name: "of another type are shown, and nothing else", body: with(friendURI, "https://lightwebbrowser.org/ns/enemyOf"), want: stored},
		{name: "of a follow are shown, and nothing else", body: with(friendURI, "following"), want: stored},
		{name: "of something else are shown, and nothing else", body: `{"id":"p:/offers/1","type":"Offer","actor":"p:/carol","object":{"type":"Thing"}}`, want: stored},
		{name: "to somebody else are nothing to alice", inbox: "us:/inbox", body: offerBy("p:/offers/1", "p:/carol", "q:/mallory")},
		{name: "again under a new id take the place of the first", given: offeredByCarol, body: with("p:/offers/1", "p:/offers/2"), want: []string{
			"- relationship friend friendOf p:/carol pending p:/offers/1 inbound",
			"+ relationship friend friendOf p:/carol pending p:/offers/2 inbound",
			"+ activity inbound Offer p:/offers/2",
			"+ event offer.received p:/offers/2 by stranger p:/carol",
			"+ event friendrequest.received p:/offers/2 by stranger p:/carol"}},
		{name: "of who is blocked are nothing", given: func(s *peertest.Scene) {
			s.Act("p:/carol", `{"id":"us:/alice/activities/b","type":"Block","actor":"us:/alice","object":"p:/carol"}`)
		}, body: carolOffers},
	})
}

// An Offer is accepted only if its actor offers in its own name and to another actor.
func TestOffersThatAreRefused(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	s.Actor("p:/carol")
	relationship := func(subject, object string) string {
		return `{"id":"p:/offers/1","type":"Offer","actor":"p:/carol","object":{"type":"Relationship","subject":` + subject + `,"relationship":"lw:friendOf","object":` + object + `}}`
	}
	for name, body := range map[string]string{
		"in the name of somebody else": relationship(`"p:/dave"`, `"us:/alice"`),
		"in the name of alice":         relationship(`"us:/alice"`, `"p:/carol"`),
		"in the name of two":           relationship(`["p:/carol","p:/dave"]`, `"us:/alice"`),
		"in nobody's name":             relationship(`null`, `"us:/alice"`),
		"to itself":                    relationship(`"p:/carol"`, `"p:/carol"`),
		"to nobody":                    relationship(`"p:/carol"`, `null`),
	} {
		expect(t, s, name, nil, fault.Invalid, func() error { return s.Send("p:/carol", "us:/alice/inbox", body) })
	}
}

// changesBy returns the changes that an activity by carol makes. For a delivery to carol it
// returns only the type of the activity.
func changesBy(s *peertest.Scene, body string) (made []string) {
	for _, line := range s.Changes(func() { s.MustSend("p:/carol", "us:/alice/inbox", body) }) {
		if sent, owed := strings.CutPrefix(line, "+ delivery p:/carol/inbox "); owed {
			line = "+ sent " + sent[strings.LastIndex(sent, `"type":`):]
		}
		made = append(made, line)
	}
	return made
}

// Two Offers cross each other. The Offer with the lower id counts. The ids of carol's server are
// lower than those of alice's server.
func TestOffersThatCross(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	lowest := func(s *peertest.Scene) {
		offered(s)
		s.Column(t, s.Alice, `UPDATE relationships SET activity_uri = 'http://0.example/o' RETURNING id`)
	}
	taken := func(before string) []string {
		return []string{
			before,
			"+ relationship friend friendOf p:/carol accepted p:/offers/1 inbound",
			"+ activity inbound Offer p:/offers/1",
			"+ activity outbound Accept us:/alice/activities/* p:/offers/1",
			"+ event accept.sent us:/alice/activities/* p:/offers/1 by self us:/alice",
			"+ event offer.received p:/offers/1 by contact p:/carol",
			"+ event friendrequest.received p:/offers/1 by contact p:/carol",
			"+ event relationship.changed p:/offers/1 by contact p:/carol",
			`+ sent "type":"Accept"}`}
	}
	dated := func(published string) string {
		return strings.Replace(carolOffers, `"type":"Offer"`, `"type":"Offer","published":"`+published+`"`, 1)
	}
	unchanged := func(lines []string) []string { return slices.Delete(slices.Clone(lines), 7, 8) } // without the line about relationship.changed
	own := "- relationship friend friendOf p:/carol accepted us:/alice/activities/o outbound"
	for _, c := range []struct {
		name  string
		given func(*peertest.Scene)
		body  string
		want  []string
	}{
		{"carol's counts", offered, carolOffers, taken("- relationship friend friendOf p:/carol pending us:/alice/activities/o outbound")},
		{"alice's counts", lowest, carolOffers, nil},
		{"carol's came late", befriended, dated("2026-01-01T00:00:00Z"), nil},
		{"carol has lost the friendship", befriended, dated("2026-01-03T00:00:00Z"), unchanged(taken(own))},
		{"carol has lost her own Offer", befriendedByCarol, strings.ReplaceAll(carolOffers, "p:/offers/1", "p:/offers/2"), []string{
			"- relationship friend friendOf p:/carol accepted p:/offers/1 inbound",
			"+ relationship friend friendOf p:/carol accepted p:/offers/2 inbound",
			"+ activity inbound Offer p:/offers/2",
			"+ activity outbound Accept us:/alice/activities/* p:/offers/2",
			"+ event accept.sent us:/alice/activities/* p:/offers/2 by self us:/alice",
			"+ event offer.received p:/offers/2 by contact p:/carol",
			"+ event friendrequest.received p:/offers/2 by contact p:/carol",
			`+ sent "type":"Accept"}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := stage.Scene(t)
			s.Actor("p:/carol")
			c.given(s)
			if made := changesBy(s, c.body); !slices.Equal(made, c.want) {
				t.Errorf("changes:\n%s\nwant:\n%s", strings.Join(made, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

func TestAnswersToOffers(t *testing.T) {
	answer := func(kind, object string) string {
		return `{"id":"p:/answers/1","type":"` + kind + `","actor":"p:/carol","object":` + object + `}`
	}
	asked, friends := "relationship friend friendOf p:/carol pending us:/alice/activities/o outbound", "relationship friend friendOf p:/carol accepted us:/alice/activities/o outbound"
	told := func(kind string) []string {
		trust := map[string]string{"Accept": "contact", "Reject": "stranger"}[kind]
		return []string{
			"+ activity inbound " + kind + " p:/answers/1 us:/alice/activities/o",
			"+ event " + strings.ToLower(kind) + ".received p:/answers/1 us:/alice/activities/o by " + trust + " p:/carol",
			"+ event relationship.changed p:/answers/1 us:/alice/activities/o by " + trust + " p:/carol"}
	}
	daves := strings.NewReplacer("p:/answers/1", "p:/answers/2", `"actor":"p:/carol"`, `"actor":"p:/dave"`)
	byID := `"us:/alice/activities/o"`
	play(t, []row{
		{name: "Accept by id", given: offered, body: answer("Accept", byID), forged: daves.Replace(answer("Accept", byID)),
			want: slices.Concat([]string{"- " + asked, "+ " + friends}, told("Accept"))},
		{name: "Accept with the Offer embedded", given: offered, body: answer("Accept", aliceOffers), forged: daves.Replace(answer("Accept", aliceOffers)),
			want: slices.Concat([]string{"- " + asked, "+ " + friends}, told("Accept"))},
		{name: "Accept that claims to be of a closer friendship", given: offered, body: answer("Accept", strings.ReplaceAll(aliceOffers, "friendOf", "closeFriendOf")),
			want: slices.Concat([]string{"- " + asked, "+ " + friends}, told("Accept"))},
		{name: "Accept of an Offer that was never made", body: answer("Accept", aliceOffers)},
		{name: "Accept of another Offer", given: offered, body: answer("Accept", `"us:/alice/activities/p"`)},
		{name: "Accept of an Offer without its id", given: offered, body: answer("Accept", strings.ReplaceAll(aliceOffers, `"id":"us:/alice/activities/o",`, ""))},
		{name: "Accept of carol's own Offer", given: offeredByCarol, body: answer("Accept", `"p:/offers/1"`)},
		{name: "Accept again", given: befriended, body: answer("Accept", byID)},
		{name: "Reject", given: offered, body: answer("Reject", byID), forged: daves.Replace(answer("Reject", byID)), want: slices.Concat([]string{"- " + asked}, told("Reject"))},
		{name: "Reject of a friend", given: befriended, body: answer("Reject", aliceOffers), want: slices.Concat([]string{"- " + friends}, told("Reject"))},
		{name: "Accept after the Reject", given: func(s *peertest.Scene) {
			offered(s)
			s.MustSend("p:/carol", "us:/alice/inbox", `{"id":"p:/rejects/1","type":"Reject","actor":"p:/carol","object":"us:/alice/activities/o"}`)
		}, body: answer("Accept", byID)},
	})
}

func TestFriendshipsEnd(t *testing.T) {
	undo := func(object string) string {
		return `{"id":"p:/undos/1","type":"Undo","actor":"p:/carol","object":` + object + `}`
	}
	gone := func(line string) []string {
		return []string{
			"- " + line,
			"- activity inbound Offer p:/offers/1",
			"+ activity inbound Undo p:/undos/1 p:/offers/1",
			"+ event undo.received p:/undos/1 p:/offers/1 by stranger p:/carol",
			"+ event relationship.changed p:/undos/1 p:/offers/1 by stranger p:/carol"}
	}
	play(t, []row{
		{name: "by the Undo of the Offer, by id", given: befriendedByCarol, body: undo(`"p:/offers/1"`), forged: `{"id":"p:/undos/2","type":"Undo","actor":"p:/dave","object":"p:/offers/1"}`,
			want: gone("relationship friend friendOf p:/carol accepted p:/offers/1 inbound")},
		{name: "by the Undo with the Offer embedded", given: befriendedByCarol, body: undo(carolOffers), want: gone("relationship friend friendOf p:/carol accepted p:/offers/1 inbound")},
		{name: "before they began", given: offeredByCarol, body: undo(`"p:/offers/1"`), want: gone("relationship friend friendOf p:/carol pending p:/offers/1 inbound")},
		{name: "not by the late Undo of an earlier Offer", given: func(s *peertest.Scene) {
			befriendedByCarol(s)
			s.MustSend("p:/carol", "us:/alice/inbox", strings.ReplaceAll(carolOffers, "p:/offers/1", "p:/offers/2"))
		}, body: undo(`"p:/offers/1"`), want: []string{
			"- activity inbound Offer p:/offers/1",
			"+ activity inbound Undo p:/undos/1 p:/offers/1",
			"+ event undo.received p:/undos/1 p:/offers/1 by contact p:/carol"}},
		{name: "by the Undo of the Accept", given: befriended, body: undo(`{"id":"p:/accepts/1","type":"Accept","actor":"p:/carol","object":"us:/alice/activities/o"}`), want: []string{
			"- relationship friend friendOf p:/carol accepted us:/alice/activities/o outbound",
			"- activity inbound Accept p:/accepts/1 us:/alice/activities/o",
			"+ activity inbound Undo p:/undos/1 p:/accepts/1",
			"+ event undo.received p:/undos/1 p:/accepts/1 by stranger p:/carol",
			"+ event relationship.changed p:/undos/1 p:/accepts/1 by stranger p:/carol"}},
		{name: "not by the Undo of alice's Offer", given: befriended, body: undo(`{"id":"p:/offers/9","type":"Offer","actor":"p:/carol","object":{"type":"Relationship","subject":"p:/carol","relationship":"lw:friendOf","object":"us:/alice"}}`)},
		{name: "by a Block", given: func(s *peertest.Scene) {
			befriendedByCarol(s)
			s.Act("p:/carol", strings.ReplaceAll(aliceOffers, "friendOf", "closeFriendOf"))
		}, body: `{"id":"p:/blocks/1","type":"Block","actor":"p:/carol","object":"us:/alice"}`, want: []string{
			"- relationship friend closeFriendOf p:/carol pending us:/alice/activities/o outbound",
			"- relationship friend friendOf p:/carol accepted p:/offers/1 inbound",
			"+ activity inbound Block p:/blocks/1 us:/alice",
			"+ event block.received p:/blocks/1 us:/alice by stranger p:/carol",
			"+ event relationship.changed p:/blocks/1 us:/alice by stranger p:/carol",
			"+ block inbound p:/carol p:/blocks/1"}},
	})
}

// Only a limited number of Offers from one domain may wait for a user, and a limited number of
// Offers from all domains.
func TestOffersAreBounded(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	s.Actor("p:/carol")
	s.Column(t, s.Alice, `INSERT INTO relationships (id, actor_uri, type, relation, status, activity_uri, direction, host)
		SELECT gen_random_uuid(), 'https://x.example/' || n, 'friend', 'friendOf', 'pending', 'https://x.example/' || n, 'inbound', $1 FROM generate_series(1, 199) n RETURNING id`, s.ID("p:/carol").Host())
	offeredByCarol(s)
	expect(t, s, "one more", nil, accepted, func() error {
		return s.Send("p:/carol", "us:/alice/inbox", strings.NewReplacer("friendOf", "closeFriendOf", "p:/offers/1", "p:/offers/2").Replace(carolOffers))
	})
	s.Column(t, s.Alice, `UPDATE relationships SET host = 'x' || actor_uri RETURNING id`)
	s.Column(t, s.Alice, `INSERT INTO relationships (id, actor_uri, type, relation, status, activity_uri, direction, host)
		SELECT gen_random_uuid(), 'https://y.example/' || n, 'friend', 'friendOf', 'pending', 'https://y.example/' || n, 'inbound', 'y' || n FROM generate_series(1, 1800) n RETURNING id`)
	expect(t, s, "one more than all", nil, accepted, func() error {
		return s.Send("p:/carol", "us:/alice/inbox", strings.NewReplacer("friendOf", "closeFriendOf", "p:/offers/1", "p:/offers/3").Replace(carolOffers))
	})
}
