package inbox_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/inbox"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// letter returns a private message to alice by dave, a stranger.
func letter(n int) string {
	return fmt.Sprintf(`{"id":"p:/creates/%03[1]d","type":"Create","actor":"p:/dave","to":"us:/alice","object":{"id":"p:/notes/%03[1]d","type":"Note","attributedTo":"p:/dave","to":"us:/alice","content":"psst","tag":{"type":"Mention","href":"us:/alice"}}}`, n)
}

// shownIn returns the last three characters of the id of each activity in one of alice's feeds.
func shownIn(t *testing.T, s *peertest.Scene, feed string) (ids []string) {
	t.Helper()
	err := s.Store.Read(t.Context(), s.Alice, func(ctx context.Context, tx *user.Tx) (err error) {
		var items []user.FeedItem
		switch feed {
		case "main":
			items, err = tx.Feed.List(ctx, nil, 100)
		case "notifications":
			items, err = tx.Feed.ListNotifications(ctx, s.ID("us:/alice"), nil, 100)
		case "requests":
			items, err = tx.Requests.List(ctx, nil, 100)
		}
		for _, i := range items {
			ids = append(ids, string(i.FeedEntry.Activity[len(i.FeedEntry.Activity)-3:]))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(ids)
	return ids
}

func strangers(t *testing.T, s *peertest.Scene, takes registry.Strangers) {
	t.Helper()
	c := registry.DefaultUser()
	c.Messaging.Strangers = takes
	if err := s.Registry.UpdateUser(s.Alice, func(now *registry.User) error { *now = c; return nil }); err != nil {
		t.Fatal(err)
	}
}

// A stranger's private message appears among the requests and in no other feed. Its one event has
// only ids.
func TestAStrangersMessageWaitsAmongTheRequests(t *testing.T) {
	s := newScene(t)
	s.MustSend("p:/dave", mine, letter(1))
	s.MustSend("p:/dave", mine, toAlice(note(2, "in public")))
	if got := shownIn(t, s, "requests"); !slices.Equal(got, []string{"001"}) {
		t.Errorf("the requests are %q, want the letter", got)
	}
	for _, feed := range []string{"main", "notifications"} {
		if got := shownIn(t, s, feed); slices.Contains(got, "001") {
			t.Errorf("%s has %q, want nothing of the request", feed, got)
		}
	}
	told := s.Column(t, s.Alice, `SELECT type || ' ' || payload::text FROM event_outbox WHERE payload ->> 'activityUri' LIKE '%/creates/001'`)
	if len(told) != 1 || !strings.HasPrefix(told[0], "request.received ") || strings.Contains(told[0], "psst") {
		t.Errorf("events: %q, want request.received with ids alone", told)
	}
	s.MustSend("p:/dave", mine, letter(1))
	if got := shownIn(t, s, "requests"); len(got) != 1 {
		t.Errorf("sent again it is there %d times, want once", len(got))
	}
}

// A stranger's private words appear among the requests or nowhere. A public activity that contains
// them does not show them either.
func TestAStrangersWordsComeInNoDisguise(t *testing.T) {
	const private = `"to":"us:/alice","content":"psst","attributedTo":"p:/dave","type":"Note"`
	const hello = `{"id":"p:/a/0","type":"Create","actor":"p:/dave","to":["us:/alice","as:Public"],"object":{"id":"p:/n/1","type":"Note","attributedTo":"p:/dave","to":["us:/alice","as:Public"],"published":"2026-01-01T00:00:00Z","content":"hello"}}`
	const vote = `"to":"us:/alice","inReplyTo":"us:/alice/objects/q","name":"psst","attributedTo":"p:/dave","type":"Note"`
	const called = `"to":"us:/alice","name":"psst","attributedTo":"p:/dave"`
	const stamped = `"quote":"p:/n/9","quoteAuthorization":"p:/n/1",` + private // the post names itself as its quote authorization
	for name, send := range map[string]func(*peertest.Scene){
		"a note in a public Create": func(s *peertest.Scene) {
			s.MustSend("p:/dave", mine, `{"id":"p:/a/1","type":"Create","actor":"p:/dave","to":"us:/alice","cc":"as:Public","object":{"id":"p:/n/1",`+private+`}}`)
		},
		"a boost of the sender's own": func(s *peertest.Scene) {
			s.Serve("p:/n/1", `{"@context":"https://www.w3.org/ns/activitystreams","id":"p:/n/1",`+private+`}`)
			s.MustSend("p:/dave", mine, `{"id":"p:/a/1","type":"Announce","actor":"p:/dave","to":"us:/alice","object":"p:/n/1"}`)
		},
		"a boost of the sender's own, as a vote": func(s *peertest.Scene) {
			s.Serve("p:/n/1", `{"@context":"https://www.w3.org/ns/activitystreams","id":"p:/n/1",`+vote+`}`)
			s.MustSend("p:/dave", mine, `{"id":"p:/a/1","type":"Announce","actor":"p:/dave","to":"us:/alice","object":"p:/n/1"}`)
		},
		"an edit of a public note": func(s *peertest.Scene) {
			s.MustSend("p:/dave", mine, hello)
			s.MustSend("p:/dave", mine, `{"id":"p:/a/1","type":"Update","actor":"p:/dave","to":"us:/alice","object":{"id":"p:/n/1","updated":"2026-01-02T00:00:00Z",`+private+`}}`)
		},
		"an edit of a public note, as a vote": func(s *peertest.Scene) {
			s.MustSend("p:/dave", mine, hello)
			s.MustSend("p:/dave", mine, `{"id":"p:/a/1","type":"Update","actor":"p:/dave","to":"us:/alice","object":{"id":"p:/n/1","updated":"2026-01-02T00:00:00Z",`+vote+`}}`)
		},
		"an edit of an answer to all in a thread": func(s *peertest.Scene) {
			s.Posts("us:/alice/objects/1", "as:Public")
			const answer = `"to":["us:/alice","us:/alice/followers"],"inReplyTo":"us:/alice/objects/1","published":"2026-01-01T00:00:00Z","content":"hi","attributedTo":"p:/dave","type":"Note"`
			s.MustSend("p:/dave", mine, `{"id":"p:/a/0","type":"Create","actor":"p:/dave","to":["us:/alice","us:/alice/followers"],"object":{"id":"p:/n/1",`+answer+`}}`)
			s.MustSend("p:/dave", mine, `{"id":"p:/a/1","type":"Update","actor":"p:/dave","to":"us:/alice","object":{"id":"p:/n/1","inReplyTo":"us:/alice/objects/1","updated":"2026-01-02T00:00:00Z",`+private+`}}`)
		},
		"an edit of a note that only the sender's boost addresses": func(s *peertest.Scene) {
			s.Serve("p:/n/1", `{"@context":"https://www.w3.org/ns/activitystreams","id":"p:/n/1","published":"2026-01-01T00:00:00Z","content":"hi","attributedTo":"p:/dave","type":"Note"}`)
			s.MustSend("p:/dave", mine, `{"id":"p:/a/0","type":"Announce","actor":"p:/dave","to":"as:Public","cc":"us:/alice","object":"p:/n/1"}`)
			s.MustSend("p:/dave", mine, `{"id":"p:/a/1","type":"Update","actor":"p:/dave","to":"us:/alice","object":{"id":"p:/n/1","updated":"2026-01-02T00:00:00Z",`+private+`}}`)
		},
		"an edit of a note of which there is only a public edit": func(s *peertest.Scene) {
			const note = `"id":"p:/n/1","attributedTo":"p:/dave","type":"Note"`
			s.MustSend("p:/dave", mine, `{"id":"p:/a/0","type":"Update","actor":"p:/dave","to":"as:Public","cc":"us:/alice","object":{"content":"hi","updated":"2026-01-02T00:00:00Z",`+note+`}}`)
			s.MustSend("p:/dave", mine, `{"id":"p:/a/1","type":"Update","actor":"p:/dave","to":"us:/alice","object":{"content":"psst","updated":"2026-01-03T00:00:00Z",`+note+`}}`)
		},
		"a note whose server shows a public one as its stamp": func(s *peertest.Scene) {
			s.Serve("p:/n/1", written("p:/dave", "p:/n/1", "hello"))
			s.MustSend("p:/dave", mine, `{"id":"p:/a/1","type":"Create","actor":"p:/dave","to":"us:/alice","object":{"id":"p:/n/1",`+stamped+`}}`)
		},
		"a note whose server shows a vote as its stamp": func(s *peertest.Scene) {
			s.Serve("p:/n/1", `{"id":"p:/n/1",`+vote+`}`)
			s.MustSend("p:/dave", mine, `{"id":"p:/a/1","type":"Create","actor":"p:/dave","to":"us:/alice","object":{"id":"p:/n/1",`+stamped+`}}`)
		},
		"an edit of a public note that its server shows as its stamp": func(s *peertest.Scene) {
			s.Serve("p:/n/1", written("p:/dave", "p:/n/1", "hello"))
			s.MustSend("p:/dave", mine, hello)
			s.MustSend("p:/dave", mine, `{"id":"p:/a/1","type":"Update","actor":"p:/dave","to":"us:/alice","object":{"id":"p:/n/1","updated":"2026-01-02T00:00:00Z",`+stamped+`}}`)
		},
		"an edit that its server shows as a letter in answer to a thread": func(s *peertest.Scene) {
			s.MustSend("p:/dave", mine, hello)
			s.Serve("p:/n/1", strings.Replace(`{"id":"p:/n/1","updated":"2026-01-02T00:00:00Z",`+private+`}`, `"us:/alice"`, `["us:/alice","us:/alice/followers"]`, 1))
			s.MustSend("p:/dave", mine, `{"id":"p:/a/1","type":"Update","actor":"p:/dave","to":["us:/alice","us:/alice/followers"],"object":{"id":"p:/n/1","inReplyToBook":"p:/b","inReplyTo":"p:/n/1",`+private+`}}`)
		},
		"an edit of a note that is also a key package": func(s *peertest.Scene) {
			_ = s.Send("p:/dave", mine, `{"id":"p:/a/0","type":"Create","actor":"p:/dave","to":"us:/alice","object":{"id":"p:/n/1","type":["Note","KeyPackage"],"to":"us:/alice"}}`) // the engine may refuse it
			s.MustSend("p:/dave", mine, `{"id":"p:/a/1","type":"Update","actor":"p:/dave","to":"us:/alice","object":{"id":"p:/n/1","updated":"2026-01-02T00:00:00Z",`+private+`}}`)
		},
		"an edit of a note that is also a key package, by @type": func(s *peertest.Scene) {
			_ = s.Send("p:/dave", mine, `{"id":"p:/a/0","type":"Create","actor":"p:/dave","to":"us:/alice","object":{"id":"p:/n/1","@type":["Note","KeyPackage"],"to":"us:/alice"}}`) // the engine may refuse it
			s.MustSend("p:/dave", mine, `{"id":"p:/a/1","type":"Update","actor":"p:/dave","to":"us:/alice","object":{"id":"p:/n/1","updated":"2026-01-02T00:00:00Z",`+private+`}}`)
		},
		"a key package without a message": func(s *peertest.Scene) {
			s.MustSend("p:/dave", mine, `{"id":"p:/a/1","type":"Create","actor":"p:/dave","to":"us:/alice","object":{"id":"p:/n/1","@type":"KeyPackage",`+called+`}}`)
		},
		"an edit of a public note, as a note that is also encrypted": func(s *peertest.Scene) {
			s.MustSend("p:/dave", mine, hello)
			_ = s.Send("p:/dave", mine, `{"id":"p:/a/1","type":"Update","actor":"p:/dave","to":"us:/alice","object":{"id":"p:/n/1","type":["Note","PrivateMessage"],"updated":"2026-01-02T00:00:00Z",`+called+`}}`) // the engine may refuse it
		},
		"an edit of a public note, as an encrypted message": func(s *peertest.Scene) {
			s.MustSend("p:/dave", mine, hello)
			s.MustSend("p:/dave", mine, `{"id":"p:/a/1","type":"Update","actor":"p:/dave","to":"us:/alice","object":{"id":"p:/n/1","type":"PrivateMessage","updated":"2026-01-02T00:00:00Z",`+called+`}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			send(s)
			shown := s.Column(t, s.Alice, `SELECT coalesce(o.raw ->> 'content', o.raw ->> 'name') FROM activities a JOIN objects o ON o.uri = a.object_uri WHERE NOT EXISTS (SELECT FROM requests q WHERE q.activity_uri = a.uri)`)
			if slices.Contains(shown, "psst") {
				t.Errorf("outside of the requests there is %q", shown)
			}
			if slices.Contains(shownIn(t, s, "main"), "a/1") {
				t.Error("it is in the feed")
			}
		})
		t.Run(name+", while strangers are dropped", func(t *testing.T) {
			s := newScene(t)
			strangers(t, s, registry.DropStrangers)
			send(s)
			if got := s.Column(t, s.Alice, `SELECT uri FROM activities WHERE uri LIKE '%/a/1'`); len(got) != 0 {
				t.Errorf("alice holds %q", got)
			}
		})
	}
}

// A boost does not bring a waiting request into the feed, also if its author's server shows another
// version of it, which is public.
func TestABoostOfARequestShowsNoWords(t *testing.T) {
	for name, booster := range map[string]string{"by its author": "p:/dave", "by somebody that alice follows": "p:/carol"} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.Follows("p:/carol")
			s.MustSend("p:/dave", mine, `{"id":"p:/a/1","type":"Create","actor":"p:/dave","to":"us:/alice","object":{"id":"p:/n/1","type":"Note","attributedTo":"p:/dave","to":"us:/alice","content":"psst"}}`)
			s.Serve("p:/n/1", written("p:/dave", "p:/n/1", "hello"))
			s.MustSend(booster, mine, `{"id":"p:/a/2","type":"Announce","actor":"`+booster+`","to":"as:Public","cc":"us:/alice","object":"p:/n/1"}`)
			if got := shownIn(t, s, "main"); len(got) != 0 {
				t.Errorf("the feed has %q", got)
			}
			if got := shownIn(t, s, "requests"); len(got) != 1 {
				t.Errorf("the requests are %q, want the letter", got)
			}
		})
	}
}

// A private Note for alice alone enters her conversation with the Note's author in the transaction
// that stores the Note. A stranger's Note enters the conversation when alice accepts the request.
func TestPrivateNotesOfTwoAreAConversation(t *testing.T) {
	s := newScene(t)
	inConversation := func() []string {
		t.Helper()
		return s.Column(t, s.Alice, `SELECT substring(e.object_uri FROM '[0-9]+$') || ' of ' || (c.partner_uri = '`+string(s.ID("p:/dave"))+`')
			FROM conversation_entries e JOIN conversations c ON c.id = e.conversation_id ORDER BY e.object_uri`)
	}
	s.MustSend("p:/dave", mine, letter(1))
	s.MustSend("p:/dave", mine, toAlice(note(2, "in public")))
	if got := inConversation(); len(got) != 0 {
		t.Errorf("while the request waits the conversation has %q", got)
	}
	err := s.Store.Write(t.Context(), s.Alice, func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Requests.Accept(ctx, s.ID("p:/dave"), s.Now())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s.MustSend("p:/dave", mine, letter(3))
	s.MustSend("p:/dave", mine, letter(3))
	if got, want := inConversation(), []string{"001 of true", "003 of true"}; !slices.Equal(got, want) {
		t.Errorf("the conversation has %q, want %q", got, want)
	}
}

func TestRequestsAreAcceptedAndDeclined(t *testing.T) {
	s := newScene(t)
	s.MustSend("p:/dave", mine, letter(1))
	change := func(what func(context.Context, *user.Tx) error) {
		t.Helper()
		if err := s.Store.Write(t.Context(), s.Alice, what); err != nil {
			t.Fatal(err)
		}
	}
	change(func(ctx context.Context, tx *user.Tx) error { return tx.Requests.Remove(ctx, s.ID("p:/dave")) })
	if got := s.Column(t, s.Alice, `SELECT uri FROM activities UNION ALL SELECT uri FROM objects UNION ALL SELECT activity_uri FROM requests`); len(got) != 0 {
		t.Errorf("after a decline there is %q, want nothing", got)
	}
	s.MustSend("p:/dave", mine, letter(2))
	change(func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Requests.Accept(ctx, s.ID("p:/dave"), s.Now())
		return err
	})
	s.MustSend("p:/dave", mine, letter(3))
	if got := shownIn(t, s, "main"); !slices.Equal(got, []string{"002", "003"}) {
		t.Errorf("the feed has %q, want what was accepted and what came after", got)
	}
	if got := shownIn(t, s, "requests"); len(got) != 0 {
		t.Errorf("the requests are %q, want none", got)
	}
}

func TestRequestsAreBounded(t *testing.T) {
	s := newScene(t)
	for n := range 21 {
		s.MustSend("p:/dave", mine, letter(n))
	}
	s.MustSend("q:/eve", mine, strings.NewReplacer("p:/", "q:/", "dave", "eve").Replace(letter(50)))
	if got := shownIn(t, s, "requests"); len(got) != 21 || slices.Contains(got, "020") || !slices.Contains(got, "050") {
		t.Errorf("the requests are %q, want 20 of dave and one of eve", got)
	}
	if got := why(t, s, "p:/creates/020"); got != inbox.IgnoredStranger {
		t.Errorf("what is beyond the bound is remembered as %q", got)
	}
}

// The requests of each domain and of each user are bounded, too. A request of another domain is
// accepted while the user's bound permits it.
func TestRequestsOfADomainAndOfAUserAreBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		open int
		// the host of the open requests; if empty, each request comes from another host
		host string
		want []string
	}{
		{"one below the bound of a domain", 199, "p", []string{"001", "002"}},
		{"the bound of a domain", 200, "p", []string{"002"}},
		{"one below the bound of a user", 1999, "", []string{"001"}},
		{"the bound of a user", 2000, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			err := s.Store.Write(t.Context(), s.Alice, func(ctx context.Context, tx *user.Tx) (err error) {
				for n := 0; n < c.open && err == nil; n++ {
					from := vocab.ID(fmt.Sprintf("https://r%d.example/a", n))
					r := user.Request{Activity: from + "/1", Actor: from, Host: policy.RegistrableDomain(from.Host())}
					if c.host != "" {
						r.Host = policy.RegistrableDomain(s.ID(c.host + ":/dave").Host())
					}
					err = tx.Requests.Add(ctx, r, s.Now())
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			s.MustSend("p:/dave", mine, letter(1))
			s.MustSend("q:/eve", mine, strings.NewReplacer("p:/", "q:/", "dave", "eve").Replace(letter(2)))
			if got := shownIn(t, s, "requests"); !slices.Equal(got, c.want) {
				t.Errorf("the requests are %q, want %q", got, c.want)
			}
			for n, activity := range []string{"p:/creates/001", "q:/creates/002"} {
				if taken := slices.Contains(c.want, fmt.Sprintf("%03d", n+1)); !taken && why(t, s, activity) != inbox.IgnoredStranger {
					t.Errorf("%s is not remembered as ignored", activity)
				}
			}
		})
	}
}

func TestTheUserSettlesWhatBecomesOfStrangers(t *testing.T) {
	for takes, want := range map[registry.Strangers]string{registry.DropStrangers: "", registry.AllowStrangers: "main", registry.RequestStrangers: "requests"} {
		t.Run(string(takes), func(t *testing.T) {
			s := newScene(t)
			strangers(t, s, takes)
			s.MustSend("p:/dave", mine, letter(1))
			for _, feed := range []string{"main", "requests"} {
				if got := shownIn(t, s, feed); (len(got) == 1) != (feed == want) {
					t.Errorf("%s has %q, want it in %q alone", feed, got, want)
				}
			}
		})
	}
}

// The engine stores ciphertext for the clients of a conversation. It refuses a plain-text message
// if the message's type requires encryption.
func TestSealedMessages(t *testing.T) {
	s := newScene(t)
	strangers(t, s, registry.AllowStrangers)
	send := func(kind, content string) error {
		return s.Send("p:/dave", mine, strings.NewReplacer(`"Note"`, kind, `"psst"`, content).Replace(letter(1)))
	}
	for _, kind := range []string{`"ChatMessage"`, `"PrivateMessage"`, `"mls:Welcome"`, `["Object","GroupInfo"]`, `"PublicMessage"`, `"KeyPackage"`} {
		for _, content := range []string{`"hello there"`, `"Hello123"`, `"aGVsbG8gdGhlcmU="`, `["x"]`, `""`} {
			if err := send(kind, content); fault.KindOf(err) != fault.Invalid {
				t.Errorf("%s of %s: err = %v, want it refused", kind, content, err)
			}
		}
	}
	if err := send(`"PrivateMessage"`, `"AAEAAgEC/w=="`); err != nil {
		t.Fatal(err)
	}
	for _, feed := range []string{"main", "notifications", "requests"} {
		if got := shownIn(t, s, feed); len(got) != 0 {
			t.Errorf("%s has %q, want nothing", feed, got)
		}
	}
	if got := s.Column(t, s.Alice, `SELECT type FROM event_outbox`); !slices.Equal(got, []string{"mls.undecryptable"}) {
		t.Errorf("events: %q, want mls.undecryptable", got)
	}
	if got := s.Column(t, s.Alice, `SELECT encode(content, 'base64') FROM mls_inbox`); !slices.Equal(got, []string{"AAEAAgEC/w=="}) {
		t.Errorf("stored: %q, want the ciphertext", got)
	}
}

// When a friend ends the friendship, the same transaction closes the encrypted conversation.
func TestTheEndOfAFriendshipClosesTheConversation(t *testing.T) {
	s := newScene(t)
	dave := s.ID("p:/dave")
	err := s.Store.Write(t.Context(), s.Alice, func(ctx context.Context, tx *user.Tx) error {
		friends := user.Relationship{Actor: dave, Type: user.FriendOf, Status: user.Accepted, Activity: s.ID("p:/dave/offers/1"), Direction: user.Inbound}
		if err := tx.Relationships.Set(ctx, friends, s.Now()); err != nil {
			return err
		}
		c, _, err := tx.Pairs.AddNote(ctx, user.PairNote{User: s.ID("us:/alice"), Partner: dave, At: s.Now()})
		if err != nil {
			return err
		}
		c.GroupID = "urn:uuid:1"
		return tx.Pairs.Upgrade(ctx, *c, true, s.Now())
	})
	if err != nil {
		t.Fatal(err)
	}
	s.MustSend("p:/dave", mine, `{"id":"p:/dave/undos/1","type":"Undo","actor":"p:/dave","object":{"id":"p:/dave/offers/1","type":"Offer","actor":"p:/dave"}}`)
	if got := s.Column(t, s.Alice, `SELECT (closed_at IS NOT NULL)::text || ' ' || (SELECT string_agg(kind, ' ' ORDER BY n) FROM conversation_entries) || ' '
			|| (SELECT count(*) FROM event_outbox WHERE type = 'conversation.closed') FROM conversations`); !slices.Equal(got, []string{"true upgraded closed 1"}) {
		t.Errorf("the conversation is %q", got)
	}
}

// A post addressed to everybody on another server is kept for no user here, not even for a
// follower of its author or a user that it names.
func TestALocalPostOfAnotherServerIsKeptForNobody(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	for _, tt := range []struct {
		name, to, cc string
		kept         bool
	}{
		{"public", `"as:Public"`, `"p:/carol/followers"`, true},
		{"unlisted", `"p:/carol/followers"`, `"as:Public"`, true},
		{"for followers", `"p:/carol/followers"`, `[]`, true},
		{"for alice", `"us:/alice"`, `[]`, true},
		{"local and public", `"p:/#Public"`, `"as:Public"`, true},
		{"local", `"p:/#Public"`, `[]`, false},
		{"local, and for alice", `"p:/#Public"`, `"us:/alice"`, false},
		{"local on a server of somebody else", `["q:/#Public","us:/alice"]`, `[]`, true},
	} {
		for _, kind := range []string{"Create", "Update"} {
			t.Run(tt.name+", "+kind, func(t *testing.T) {
				t.Parallel()
				s := stage.Scene(t)
				s.Follows("p:/carol")
				to := `"to":` + tt.to + `,"cc":` + tt.cc
				for _, peer := range []string{"p:/", "q:/"} {
					here := strings.ReplaceAll(string(audience.Here(s.ID(peer+"carol"))), "/", `\/`) // this keeps the scene from replacing "p:/" in it by a peer's address
					to = strings.ReplaceAll(to, peer+"#Public", here)
				}
				s.MustSend("p:/carol", mine, `{"id":"p:/x","type":"`+kind+`","actor":"p:/carol",`+to+`,"object":{"id":"p:/notes/1","type":"Note","attributedTo":"p:/carol",`+to+`,"content":"hi","updated":"2026-01-02T00:00:00Z"}}`)
				if got := len(contents(t, s)) == 1; got != tt.kept {
					t.Errorf("it is kept: %t, want %t", got, tt.kept)
				}
				if got := why(t, s, "p:/x"); (got == "") != tt.kept || !tt.kept && got != inbox.IgnoredFollowers {
					t.Errorf("it is remembered as %q", got)
				}
			})
		}
	}
}
