package inbox_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// telling is a request of carol's that contains a digest of her followers here.
type telling struct {
	collection, url string   // if empty, those of carol
	listed          []string // the followers in the digest and in the list
	digestOf        []string // the followers in the digest; if nil, listed
	list            string   // the list's document; if empty, it is made from listed
	dialect         signature.Dialect
	before, after   func(*http.Request) // change the request before and after it is signed; may be nil
}

// unserved means that the test itself serves the list at its address.
const unserved = "-"

// changes sends the request. It returns the changes in alice's database, except those of the
// request's activity, and how often the list was fetched.
func (x telling) changes(s *peertest.Scene) (changed []string, asked int) {
	if x.collection == "" {
		x.collection = "p:/carol/followers"
	}
	if x.url == "" {
		x.url = "p:/carol/followers_synchronization"
	}
	if x.dialect == 0 {
		x.dialect = signature.RFC9421
	}
	said := vocab.Synchronization{Collection: s.ID(x.collection), URL: s.ID(x.url)}
	if x.digestOf == nil {
		x.digestOf = x.listed
	}
	for _, name := range x.digestOf {
		said.Digest.Add(string(s.ID(name)))
	}
	if x.list == "" {
		x.list = `{"id":"` + x.url + `","type":"OrderedCollection","orderedItems":["` + strings.Join(x.listed, `","`) + `"]}`
	}
	if x.list != unserved {
		s.Serve(x.url, x.list)
	}
	before := s.Asked(x.url)
	body := `{"id":"p:/arrivals/` + uuid.NewString() + `","type":"Arrive","actor":"p:/carol"}`
	changed = s.Changes(func() {
		r := s.Request("p:/carol", mine, body)
		r.Header.Set("Collection-Synchronization", said.String())
		if x.before != nil {
			x.before(r)
		}
		raw := []byte(s.Long(body))
		if err := signature.Sign(r, raw, s.Actor("p:/carol").Keys.RSA, x.dialect, s.Now()); err != nil {
			panic(err)
		}
		if x.after != nil {
			x.after(r)
		}
		if err := s.Receive(r, mine, body); err != nil {
			panic(err)
		}
		s.Inbox.Compared()
	})
	return slices.DeleteFunc(changed, func(line string) bool { return strings.Contains(line, "p:/arrivals/") }), s.Asked(x.url) - before
}

var unfollowed = []string{"- relationship following p:/carol accepted us:/alice/activities/f",
	"+ event relationship.changed us:/alice/activities/f p:/carol by stranger p:/carol"}

func TestFollowersAreSynchronized(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	exec := func(s *peertest.Scene, query string) {
		t.Helper()
		if _, err := s.DB(t, s.Alice).ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name  string
		drift string
		x     telling
		want  []string
		asked int
	}{
		{"both sides agree", "", telling{listed: []string{"us:/alice"}}, nil, 0},
		{"who is not listed follows no more", "", telling{listed: []string{"us:/users/other"}}, unfollowed, 1},
		{"by draft-cavage", "", telling{listed: []string{"us:/users/other"}, dialect: signature.Cavage}, unfollowed, 1},
		{"who waits for an answer is left alone, listed", `UPDATE relationships SET status = 'pending'`, telling{listed: []string{"us:/alice"}}, nil, 1},
		{"who waits for an answer is left alone, not listed", `UPDATE relationships SET status = 'pending'`, telling{listed: []string{"us:/users/other"}}, nil, 1},

		{"another actor's followers", "", telling{collection: "p:/mallory/followers", listed: []string{"us:/users/other"}}, nil, 0},
		{"another collection of hers", "", telling{collection: "p:/carol/following", listed: []string{"us:/users/other"}}, nil, 0},
		{"a list on another server", "", telling{url: "q:/carol/followers_synchronization", listed: []string{"us:/users/other"}}, nil, 0},
		{"the signature does not cover it", "", telling{listed: []string{"us:/users/other"}, before: aside, after: back}, nil, 0},
		{"the signature does not cover it, in draft-cavage", "", telling{listed: []string{"us:/users/other"}, dialect: signature.Cavage, before: aside, after: back}, nil, 0},
		{"it comes twice", "", telling{listed: []string{"us:/users/other"}, before: func(r *http.Request) {
			r.Header.Add("Collection-Synchronization", r.Header.Get("Collection-Synchronization"))
		}}, nil, 0},
		{"it is malformed", "", telling{listed: []string{"us:/users/other"}, before: func(r *http.Request) { r.Header.Set("Collection-Synchronization", `digest="00"`) }}, nil, 0},

		{"an empty list", "", telling{listed: []string{}, list: `{"id":"p:/x","type":"OrderedCollection","orderedItems":[]}`}, nil, 1},
		{"a part of the list", "", telling{listed: []string{"us:/users/other"}, digestOf: []string{"us:/users/other", "us:/users/others"}}, nil, 1},
		{"a list of another time", "", telling{listed: []string{"us:/users/other"}, digestOf: []string{"us:/users/before"}}, nil, 1},
		{"a list in pages", "", telling{digestOf: []string{"us:/users/other"}, list: `{"id":"p:/x","type":"OrderedCollection","first":"p:/x?page=1","orderedItems":["us:/users/other"]}`}, nil, 1},
		{"no list", "", telling{digestOf: []string{"us:/users/other"}, list: `{"id":"p:/x","type":"Note","orderedItems":["us:/users/other"]}`}, nil, 1},
		{"a list of numbers", "", telling{digestOf: []string{"us:/users/other"}, list: `{"id":"p:/x","type":"OrderedCollection","orderedItems":["us:/users/other",1]}`}, nil, 1},
		{"no JSON", "", telling{digestOf: []string{"us:/users/other"}, list: `{`}, nil, 1},
		{"too many", "", telling{listed: many(vocab.MaxSynchronized + 1)}, nil, 1},
		{"as many as may be, and none of them is here", "", telling{listed: append(many(vocab.MaxSynchronized-1), "us:/alice")}, nil, 1},
		{"too large", "", telling{digestOf: []string{"us:/users/other"}, list: `{"id":"p:/x","type":"OrderedCollection","orderedItems":["us:/users/other"],"x":"` + strings.Repeat("x", 1<<20) + `"}`}, nil, 1},
		{"users of other servers", "", telling{listed: []string{"q:/dave", "p:/eve"}}, nil, 1},
		{"users of other servers besides", "", telling{listed: []string{"us:/users/other", "q:/dave"}, digestOf: []string{"us:/users/other"}}, unfollowed, 1},
		{"what is no user", "", telling{listed: []string{"us:/alice/followers", "us:/actor"}}, unfollowed, 1},
	} {
		t.Run(tt.name, func(t *testing.T) { // not parallel, so that no case waits for another case's comparison
			s := stage.Scene(t)
			s.Follows("p:/carol")
			exec(s, `DELETE FROM event_outbox`)
			if tt.drift != "" {
				exec(s, tt.drift)
			}
			got, asked := tt.x.changes(s)
			if !slices.Equal(got, tt.want) || asked != tt.asked {
				t.Errorf("changes %q, asked %d times; want %q, %d", got, asked, tt.want, tt.asked)
			}
		})
	}
	t.Run("the list is not shown", func(t *testing.T) {
		s := stage.Scene(t)
		s.Follows("p:/carol")
		s.Answer("p:/carol/hidden", http.StatusForbidden)
		x := telling{url: "p:/carol/hidden", listed: []string{"us:/users/other"}, list: unserved}
		if got, asked := x.changes(s); len(got) != 0 || asked == 0 {
			t.Errorf("changes %q, asked %d times", got, asked)
		}
	})
	t.Run("the list leads to another server", func(t *testing.T) {
		s := stage.Scene(t)
		s.Follows("p:/carol")
		s.Serve("q:/list", `{"id":"q:/list","type":"OrderedCollection","orderedItems":["us:/users/other"]}`)
		s.Redirect("p:/carol/moved", "q:/list")
		x := telling{url: "p:/carol/moved", listed: []string{"us:/users/other"}, list: unserved}
		if got, asked := x.changes(s); len(got) != 0 || asked == 0 {
			t.Errorf("changes %q, asked %d times", got, asked)
		}
	})
	t.Run("nobody here follows", func(t *testing.T) {
		s := stage.Scene(t)
		if got, asked := (telling{listed: []string{"us:/alice"}}).changes(s); len(got) != 0 || asked != 0 {
			t.Errorf("changes %q, asked %d times", got, asked)
		}
	})
}

// aside removes the digest's header field before the request is signed, and back restores the
// field.
func aside(r *http.Request) {
	r.Header["X-Aside"] = r.Header["Collection-Synchronization"]
	r.Header.Del("Collection-Synchronization")
}

func back(r *http.Request) { r.Header["Collection-Synchronization"] = r.Header["X-Aside"] }

func many(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("us:/users/nobody", i)
	}
	return names
}

// The sender's list contains a follow that alice does not have. alice sends one Undo of the
// follow. The Undo names the Follow that alice once sent, if there is one. The engine fetches the
// sender's list at most once an hour.
func TestFollowsThatAreNoneAreTakenBackOnce(t *testing.T) {
	s := newScene(t)
	s.Follows("p:/carol")
	bob := s.With("bob")
	bob.Follows("p:/carol")
	exec := func(query string, args ...any) {
		t.Helper()
		if _, err := s.DB(t, s.Alice).ExecContext(t.Context(), query, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`DELETE FROM relationships`)
	x := telling{listed: []string{"us:/alice", string(bob.ID("us:/alice")), "us:/users/nobody"}}
	next := func(wait time.Duration, asked int, follow string) {
		t.Helper()
		s.Later(wait)
		got, times := x.changes(s)
		if times != asked {
			t.Errorf("asked %d times, want %d", times, asked)
		}
		var lines []string
		for _, line := range got {
			if before, doc, ok := strings.Cut(line, " {"); ok {
				_, doc, _ = strings.Cut(doc, `"object":`)
				line = before + " " + doc
			}
			lines = append(lines, named.ReplaceAllString(line, "#"))
		}
		var want []string
		if follow != "" {
			want = []string{"+ activity outbound Undo # " + follow, "+ event undo.sent # " + follow + " by self us:/alice",
				`+ delivery p:/carol/inbox {"actor":"us:/alice","id":"` + follow + `","object":"p:/carol","type":"Follow"},"to":["p:/carol"],"type":"Undo"}`}
		}
		if !slices.Equal(lines, want) {
			t.Errorf("changes\n%q, want\n%q", lines, want)
		}
	}
	next(0, 1, "#")
	if !s.Woken(s.Alice) {
		t.Error("nobody was told that there is something to deliver")
	}
	next(0, 0, "")
	next(59*time.Minute, 0, "")
	next(time.Minute, 1, "")
	exec(`INSERT INTO activities (id, uri, direction, type, actor_uri, object_uri, published, raw) VALUES (gen_random_uuid(), $1, 'outbound', 'Follow', $2, $3, now(), '{}')`,
		s.Long("us:/alice/activities/f"), s.Long("us:/alice"), s.Long("p:/carol"))
	exec(`INSERT INTO activities (id, uri, direction, type, actor_uri, object_uri, published, raw) VALUES (gen_random_uuid(), $1, 'outbound', 'Undo', $2, $3, $4, '{}')`,
		s.Long("us:/alice/activities/u"), s.Long("us:/alice"), s.Long("us:/alice/activities/f"), s.Now())
	next(time.Hour, 1, "") // alice's own Undo is being delivered
	next(11*time.Hour, 1, "us:/alice/activities/f")
	next(24*time.Hour, 1, "")
	exec(`INSERT INTO relationships (id, actor_uri, type, status, activity_uri, created_at, updated_at) VALUES (gen_random_uuid(), $1, 'following', 'rejected', $2, now(), now())`,
		s.Long("p:/carol"), s.Long("us:/alice/activities/g"))
	next(time.Hour, 1, "us:/alice/activities/g")
	if got := bob.Column(t, bob.Alice, `SELECT status FROM relationships WHERE type = 'following'`); !slices.Equal(got, []string{"accepted"}) {
		t.Errorf("bob follows: %q", got)
	}
}

// If a follow changed after the engine fetched the sender's list, the follow does not end.
func TestOnlyTheFollowThatWasThereEnds(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	for status, want := range map[string][]string{user.Accepted: unfollowed, user.Pending: nil, user.Rejected: nil, "another Follow": nil} {
		t.Run(status, func(t *testing.T) {
			s := stage.Scene(t)
			s.Follows("p:/carol")
			if _, err := s.DB(t, s.Alice).ExecContext(t.Context(), `DELETE FROM event_outbox`); err != nil {
				t.Fatal(err)
			}
			follow := s.ID("us:/alice/activities/f")
			if status == "another Follow" {
				follow += "2"
			} else if _, err := s.DB(t, s.Alice).ExecContext(t.Context(), `UPDATE relationships SET status = $1`, status); err != nil {
				t.Fatal(err)
			}
			carol, err := s.Actors.Resolve(t.Context(), s.Actor("p:/carol").ID)
			if err != nil {
				t.Fatal(err)
			}
			got := s.Changes(func() {
				if err := s.Store.Write(t.Context(), s.Alice, func(ctx context.Context, tx *user.Tx) error {
					return handler.Unlisted(ctx, tx, handler.Listing{Local: s.Local, User: s.Alice, By: carol, Now: s.Now()}, follow)
				}); err != nil {
					t.Fatal(err)
				}
			})
			if !slices.Equal(got, want) {
				t.Errorf("changes %q, want %q", got, want)
			}
		})
	}
}

// named matches ids of alice's activities whose UUID is derived from a name (version 5).
var named = regexp.MustCompile(`us:/alice/activities/[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)

// A comparison of followers waits for a server that does not answer. It delays no request, and
// ends when the inbox closes.
func TestComparingFollowersEndsWithTheInbox(t *testing.T) {
	s := newScene(t)
	s.Follows("p:/carol")
	asked := make(chan string, 9)
	s.Handle("p:/carol/followers_synchronization", func(_ http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("Signature-Input")
		<-r.Context().Done()
	})
	tell := func() {
		body := `{"id":"p:/arrivals/` + uuid.NewString() + `","type":"Arrive","actor":"p:/carol"}`
		r := s.Request("p:/carol", mine, body)
		r.Header.Set("Collection-Synchronization", vocab.Synchronization{Collection: s.ID("p:/carol/followers"), URL: s.ID("p:/carol/followers_synchronization")}.String())
		if err := signature.Sign(r, []byte(s.Long(body)), s.Actor("p:/carol").Keys.RSA, signature.RFC9421, s.Now()); err != nil {
			t.Fatal(err)
		}
		if err := s.Receive(r, mine, body); err != nil {
			t.Fatal(err)
		}
	}
	tell()
	if by := <-asked; !strings.Contains(by, `keyid="`+peertest.Origin+`/actor#`) {
		t.Errorf("the list was asked for with %q, want the instance's signature", by)
	}
	tell() // the first comparison is still running
	if n := s.Inbox.Offers(); n != 0 {
		t.Errorf("%d more comparisons wait, want none for a sender who is being compared", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // less time than a fetch may take
	defer cancel()
	if err := s.Inbox.Close(ctx); err != nil {
		t.Error(err)
	}
	if got := s.Column(t, s.Alice, `SELECT status FROM relationships WHERE type = 'following'`); !slices.Equal(got, []string{"accepted"}) {
		t.Errorf("alice follows: %q", got)
	}
}
