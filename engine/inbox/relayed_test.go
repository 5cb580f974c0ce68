package inbox_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/inbox"
	"github.com/lightweb/lightweb/engine/relay"
	"github.com/lightweb/lightweb/engine/vocab"
)

// subscribed stores a relay with the given actor, style and state.
func subscribed(t *testing.T, s *peertest.Scene, name, style, state string) {
	r := instance.Relay{Actor: s.Actor(name).ID, Inbox: s.ID(name + "/inbox"), Style: style, State: state, Follow: s.Relays.(*relay.List).NewFollowID()}
	if err := s.Store.Instance.Relays.Save(t.Context(), r, s.Now()); err != nil {
		t.Fatal(err)
	}
	if err := s.Relays.(*relay.List).Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
}

const (
	told     = `{"id":"q:/acts/1","type":"Announce","actor":"q:/relay","to":"q:/relay/followers","object":"p:/notes/1"}`
	post     = `{"id":"p:/notes/1","type":"Note","attributedTo":"p:/carol","to":"as:Public","cc":"p:/carol/followers","content":"hi"}`
	hers     = `{"id":"p:/notes/1/create","type":"Create","actor":"p:/carol","to":"as:Public","object":` + post + `}`
	handedOn = `{"id":"p:/notes/1/create","type":"Create","actor":"p:/carol","to":"as:Public","object":{"id":"p:/notes/1","type":"Note","attributedTo":"p:/carol","to":"as:Public","content":"forged"}}`
)

// asHers holds the changes that a relayed post makes. Its author's own Create makes the same
// changes.
var asHers = []string{"+ object p:/notes/1 Note hi", "+ activity inbound Create p:/notes/1#create p:/notes/1", "+ feed p:/notes/1#create by p:/carol",
	"+ event create.received p:/notes/1#create p:/notes/1 by contact p:/carol"}

func TestWhatRelaysPassOn(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	follows := func(s *peertest.Scene) { s.Follows("p:/carol") }
	tests := []struct {
		name    string
		state   string // the relay's state; if empty, accepted
		before  func(*peertest.Scene)
		shown   string // the object that p:/notes/1 shows; if empty, post
		send    string // the body that is sent; if empty, told
		by      string // the actor that sends it; if empty, q:/relay
		proven  bool   // whether send bears carol's proof
		unasked bool   // the engine does not ask the post's server for it
		want    []string
	}{
		{name: "of somebody followed", before: follows, want: asHers},
		{name: "of somebody followed, as it came", before: follows, send: handedOn, want: asHers},
		{name: "of a stranger", before: func(s *peertest.Scene) { s.Follows("p:/dave") }},
		{name: "of a stranger, as it came", before: func(s *peertest.Scene) { s.Follows("p:/dave") }, send: handedOn, unasked: true},
		{name: "that addresses her, as it came", send: strings.Replace(handedOn, `"as:Public","object"`, `["as:Public","us:/alice"],"object"`, 1),
			shown: strings.Replace(post, `"cc":"`, `"cc":["us:/alice"],"x":"`, 1), want: []string{"+ object p:/notes/1 Note hi", "+ activity inbound Create p:/notes/1#create p:/notes/1",
				"+ feed p:/notes/1#create by p:/carol", "+ event create.received p:/notes/1#create p:/notes/1 by stranger p:/carol"}},
		{name: "that says to address her, and does not", send: strings.Replace(handedOn, `"as:Public","object"`, `["as:Public","us:/alice"],"object"`, 1)},
		{name: "ORG-28 of an actor that she blocks", before: func(s *peertest.Scene) {
			follows(s)
			s.Act("p:/carol", `{"id":"us:/alice/activities/b","type":"Block","actor":"us:/alice","object":"p:/carol"}`)
		}, want: nil},
		{name: "that is for followers", before: follows, shown: strings.Replace(post, `"as:Public"`, `[]`, 1)},
		{name: "by another server's actor", before: follows, shown: strings.Replace(post, "p:/carol\",\"to", "q:/carol\",\"to", 1)},
		{name: "that bears another id", before: follows, shown: strings.Replace(post, "p:/notes/1", "q:/notes/1", 1)},
		{name: "that is a Tombstone", before: follows, shown: `{"id":"p:/notes/1","type":"Tombstone"}`},
		{name: "that is an actor", before: follows, shown: `{"id":"p:/notes/1","type":"Person","attributedTo":"p:/carol","to":"as:Public"}`},
		{name: "that is its Create", before: follows, shown: `{"id":"p:/notes/1","type":"Create","actor":"p:/carol","to":"as:Public","object":{"id":"p:/notes/2","type":"Note","attributedTo":"p:/carol","to":"as:Public","content":"two"}}`,
			want: []string{"+ object p:/notes/2 Note two", "+ activity inbound Create p:/notes/1 p:/notes/2", "+ feed p:/notes/1 by p:/carol", "+ event create.received p:/notes/1 p:/notes/2 by contact p:/carol"}},
		{name: "that is a Like", before: follows, shown: `{"id":"p:/notes/1","type":"Like","actor":"p:/carol","to":"as:Public","object":"p:/notes/2"}`},
		{name: "embedded", before: follows, send: strings.Replace(told, `"p:/notes/1"`, strings.Replace(post, `"hi"`, `"forged"`, 1), 1), want: asHers},
		{name: "of another server's, as it came", before: follows, send: strings.Replace(handedOn, `"object":{"id":"p:/`, `"object":{"id":"q:/`, 1), unasked: true},
		{name: "proven, as it came", before: follows, send: hers, proven: true, unasked: true,
			want: []string{"+ object p:/notes/1 Note hi", "+ activity inbound Create p:/notes/1/create p:/notes/1", "+ feed p:/notes/1/create by p:/carol",
				"+ event create.received p:/notes/1/create p:/notes/1 by contact p:/carol"}},
		{name: "of ours", before: follows, send: strings.Replace(told, `"p:/notes/1"`, `"us:/alice/objects/1"`, 1), unasked: true},
		{name: "of nothing", before: follows, send: strings.Replace(told, `"p:/notes/1"`, `"as:Public"`, 1), unasked: true},
		{name: "by a relay that has not accepted", state: instance.RelayPending, before: follows, unasked: true},
		{name: "by a relay that has rejected", state: instance.RelayRejected, before: follows, unasked: true},
		{name: "by who is no relay", before: follows, send: strings.ReplaceAll(told, "q:/relay", "q:/mallory"), by: "q:/mallory", unasked: true},
		{name: "a Delete", before: func(s *peertest.Scene) {
			follows(s)
			s.MustSend("p:/carol", mine, hers)
			s.Answer("p:/notes/1", 410)
		}, shown: "-", send: `{"id":"p:/acts/d","type":"Delete","actor":"p:/carol","to":"as:Public","object":"p:/notes/1"}`,
			want: []string{"- object p:/notes/1 Note hi", "- feed p:/notes/1/create by p:/carol", "+ object p:/notes/1 Tombstone",
				"+ activity inbound Delete p:/notes/1#delete p:/notes/1", "+ event delete.received p:/notes/1#delete p:/notes/1 by contact p:/carol", "+ tombstones 1"}},
		{name: "a forged Delete", before: func(s *peertest.Scene) { follows(s); s.MustSend("p:/carol", mine, hers) },
			send: `{"id":"p:/acts/d","type":"Delete","actor":"p:/carol","to":"as:Public","object":"p:/notes/1"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := stage.Scene(t)
			s.Actor("p:/carol")
			if tt.shown != "-" {
				s.Serve("p:/notes/1", or(tt.shown, post))
			}
			if tt.before != nil {
				tt.before(s)
			}
			subscribed(t, s, "q:/relay", instance.RelayMastodon, or(tt.state, instance.RelayAccepted))
			body := []byte(s.Long(or(tt.send, told)))
			if tt.proven {
				body = s.Proven("p:/carol", tt.send)
			}
			got := s.Changes(func() {
				if err := s.Pass(or(tt.by, "q:/relay"), shared, body); err != nil {
					t.Error(err)
				}
			})
			got, want := without(got, "actor p:/carol"), append([]string{}, tt.want...)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if asked := s.Asked("p:/notes/1") > 0; asked == tt.unasked {
				t.Errorf("its server was asked: %v, want %v", asked, !tt.unasked)
			}
		})
	}
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func without(lines []string, part string) []string {
	out := []string{}
	for _, l := range lines {
		if !strings.Contains(l, part) {
			out = append(out, l)
		}
	}
	return out
}

// A post arrives through several relays and from its author, in any order. It takes effect once.
func TestAPostThatARelayPassesOnComesOnce(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	ways := map[string]func(*peertest.Scene){
		"announced": func(s *peertest.Scene) { s.MustSend("q:/relay", shared, told) },
		"announced by another": func(s *peertest.Scene) {
			s.MustSend("q:/other", shared, strings.NewReplacer("q:/relay", "q:/other", "q:/acts/1", "q:/acts/2").Replace(told))
		},
		"passed on": func(s *peertest.Scene) { s.MustSend("q:/relay", shared, handedOn) },
		"by itself": func(s *peertest.Scene) { s.MustSend("p:/carol", shared, hers) },
	}
	for first, one := range ways {
		for second, two := range ways {
			t.Run(first+", then "+second, func(t *testing.T) {
				s := stage.Scene(t)
				s.Follows("p:/carol")
				s.Serve("p:/notes/1", post)
				for _, name := range []string{"q:/relay", "q:/other"} {
					subscribed(t, s, name, instance.RelayLitePub, instance.RelayAccepted)
				}
				if got := s.Changes(func() { one(s) }); len(got) != 4 {
					t.Errorf("first: %q, want the post", got)
				}
				if got := s.Changes(func() { two(s) }); len(got) > 0 {
					t.Errorf("then: %q, want nothing", got)
				}
			})
		}
	}
}

// A metric counts a relay's announcements. The engine fetches no post from a server where no user
// follows anybody, and a limited number of posts from other servers.
func TestABusyRelayCostsLittle(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	in := peertest.NewInbound(t, func(d *inbox.Deps) { d.Metrics = reg })
	s := peertest.NewStage(t, in).Scene(t)
	subscribed(t, s, "q:/relay", instance.RelayMastodon, instance.RelayAccepted)
	s.Actor("p:/carol")
	s.Serve("p:/notes/1", post)
	announce := func(n string) {
		s.MustSend("q:/relay", shared, strings.NewReplacer("q:/acts/1", "q:/acts/"+n, "p:/notes/1", "p:/notes/"+n).Replace(told))
	}
	announce("1")
	if n := s.Reached("p:"); n > 0 {
		t.Errorf("the server of strangers was asked %d times, want never", n)
	}
	s.Follows("p:/carol")
	announce("1")
	const more = 250
	for n := range more {
		announce("x" + strings.Repeat("x", n))
	}
	s.Later(time.Minute)
	announce("1")
	counts := map[string]float64{}
	for _, name := range []string{"stranger", "taken", "refused", "limited"} {
		counts[name] = counted(t, reg, "lightweb_relay_activities_total", name)
	}
	if counts["stranger"] != 1 || counts["taken"] != 2 || counts["refused"] < 100 || counts["limited"] < 20 || counts["refused"]+counts["limited"] != more {
		t.Errorf("counted %v", counts)
	}
}

// The post's server has answered, but no memory is left for the relay's activity. The engine
// answers the relay Unavailable, because the post would be lost if the engine dropped the
// activity.
func TestARelayComesAgainWhenTheMemoryIsFull(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	for name, send := range map[string]string{"announced": told, "as it came": handedOn,
		"a Delete": `{"id":"p:/acts/d","type":"Delete","actor":"p:/carol","to":"as:Public","object":"p:/notes/1"}`} {
		t.Run(name, func(t *testing.T) {
			s := stage.Scene(t)
			s.Follows("p:/carol")
			subscribed(t, s, "q:/relay", instance.RelayMastodon, instance.RelayAccepted)
			var release func()
			s.Handle("p:/notes/1", func(w http.ResponseWriter, _ *http.Request) {
				release = s.Inbox.FillMemory(0)
				w.Header().Set("Content-Type", vocab.ActivityJSON)
				_, _ = w.Write([]byte(s.Long(strings.Replace(post, "{", `{"@context":"https://www.w3.org/ns/activitystreams",`, 1)))) // the write succeeds: the client stays connected
			})
			err := s.Send("q:/relay", shared, send)
			release()
			if fault.KindOf(err) != fault.Unavailable {
				t.Errorf("err = %v, want Unavailable", err)
			}
			if n := s.Inbox.Reserved(); n != 0 {
				t.Errorf("%d bytes are held at the end, want none", n)
			}
		})
	}
}

// The engine answers a relay Unavailable if the instance database goes away while the engine
// fetches the post. The relay's repeat then takes effect.
func TestARelayComesAgainWhenTheDatabaseIsAway(t *testing.T) {
	s := newScene(t)
	s.Follows("p:/carol")
	subscribed(t, s, "q:/relay", instance.RelayMastodon, instance.RelayAccepted)
	s.Actor("p:/dave") // this replaces dave in the cache of actors
	const daves = `{"id":"p:/notes/1","type":"Note","attributedTo":"p:/dave","to":"as:Public","cc":"us:/alice","content":"hi"}`
	s.Handle("p:/notes/1", func(w http.ResponseWriter, _ *http.Request) {
		s.DownInstance(t)
		w.Header().Set("Content-Type", vocab.ActivityJSON)
		_, _ = w.Write([]byte(s.Long(strings.Replace(daves, "{", `{"@context":"https://www.w3.org/ns/activitystreams",`, 1)))) // the write succeeds: the client stays connected
	})
	err := s.Send("q:/relay", shared, told)
	s.UpInstance(t)
	if fault.KindOf(err) != fault.Unavailable {
		t.Errorf("err = %v, want Unavailable", err)
	}
	s.Serve("p:/notes/1", daves)
	s.MustSend("q:/relay", shared, told)
	if got := s.Column(t, s.Alice, `SELECT activity_uri FROM feed`); len(got) != 1 {
		t.Errorf("then the feed holds %q, want the post", got)
	}
}

// counted returns how many activities a metric has counted under an outcome, which is the metric's
// first label. If the outcome is empty, counted returns the sum over all outcomes.
func counted(t *testing.T, reg *prometheus.Registry, metric, outcome string) (n float64) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != metric {
			continue
		}
		for _, m := range f.GetMetric() {
			if outcome == "" || m.GetLabel()[0].GetValue() == outcome {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

// Only the relay's own actor can accept or reject the Follow that the engine sent to it.
func TestAnswersOfRelays(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	answer := func(kind, by, follow string) string {
		return `{"id":"` + by + `/answers/1","type":"` + kind + `","actor":"` + by + `","object":` + follow + `}`
	}
	for _, tt := range []struct {
		name, by, kind, follow, before, want string
	}{
		{"an Accept", "q:/relay", "Accept", `"FOLLOW"`, instance.RelayPending, instance.RelayAccepted},
		{"an Accept that embeds the Follow", "q:/relay", "Accept", `{"id":"FOLLOW","type":"Follow","actor":"us:/actor","object":"as:Public"}`, instance.RelayPending, instance.RelayAccepted},
		{"a Reject", "q:/relay", "Reject", `"FOLLOW"`, instance.RelayPending, instance.RelayRejected},
		{"a Reject later", "q:/relay", "Reject", `"FOLLOW"`, instance.RelayAccepted, instance.RelayRejected},
		{"an Accept after a Reject", "q:/relay", "Accept", `"FOLLOW"`, instance.RelayRejected, instance.RelayRejected},
		{"somebody else's Accept", "q:/mallory", "Accept", `"FOLLOW"`, instance.RelayPending, instance.RelayPending},
		{"somebody else's Reject", "q:/mallory", "Reject", `"FOLLOW"`, instance.RelayAccepted, instance.RelayAccepted},
		{"an Accept of something else", "q:/relay", "Accept", `"us:/actor#follows/other"`, instance.RelayPending, instance.RelayPending},
		{"an Accept of the actor", "q:/relay", "Accept", `"us:/actor"`, instance.RelayPending, instance.RelayPending},
		{"an Accept without an id", "q:/relay", "Accept", `{"type":"Follow","actor":"us:/actor","object":"as:Public"}`, instance.RelayPending, instance.RelayPending},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := stage.Scene(t)
			subscribed(t, s, "q:/relay", instance.RelayMastodon, tt.before)
			r, err := s.Store.Instance.Relays.Find(t.Context(), s.ID("q:/relay"))
			if err != nil || r == nil {
				t.Fatal(r, err)
			}
			s.MustSend(tt.by, shared, answer(tt.kind, tt.by, strings.ReplaceAll(tt.follow, "FOLLOW", string(r.Follow))))
			if r, err = s.Store.Instance.Relays.Find(t.Context(), r.Actor); err != nil || r.State != tt.want {
				t.Errorf("the relay is %+v, %v; want it %s", r, err, tt.want)
			}
			if got := s.Relays.IsAccepted(r.Actor); got != (tt.want == instance.RelayAccepted) {
				t.Errorf("accepted at once: %v", got)
			}
		})
	}
}

// A LitePub relay follows the instance actor back. The instance actor accepts a relay's follow,
// and no other actor's.
func TestRelaysFollowBack(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	for _, tt := range []struct {
		name, style, state, by string
		want                   bool
	}{
		{"a LitePub relay", instance.RelayLitePub, instance.RelayAccepted, "q:/relay", true},
		{"before it accepts", instance.RelayLitePub, instance.RelayPending, "q:/relay", true},
		{"after it rejects", instance.RelayLitePub, instance.RelayRejected, "q:/relay", false},
		{"a Mastodon relay", instance.RelayMastodon, instance.RelayAccepted, "q:/relay", false},
		{"somebody else", instance.RelayLitePub, instance.RelayAccepted, "q:/mallory", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := stage.Scene(t)
			subscribed(t, s, "q:/relay", tt.style, tt.state)
			before := s.Reached("q:")
			s.MustSend(tt.by, shared, `{"id":"`+tt.by+`/follows/1","type":"Follow","actor":"`+tt.by+`","object":"us:/actor"}`)
			var got []string
			for _, p := range s.PostedTo("q:/relay/inbox") {
				a, err := vocab.ParseActivity(p)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, a.Type+" of "+string(a.Object.ID)+" by "+string(a.Actor))
			}
			var want []string
			if tt.want {
				want = []string{"Accept of " + string(s.ID("q:/relay/follows/1")) + " by " + string(s.ID("us:/actor"))}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("of %d requests: %s", s.Reached("q:")-before, diff)
			}
		})
	}
}
