package engine_test

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/dnstest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

var update = flag.Bool("update", false, "write what the tests make into docs/security.md and testdata")

// attack is one thing that a hostile server or client does, with the engine's response.
type attack struct {
	id      string
	sends   string // the requests or actions of the attacker
	happens string // the answers and actions of the engine
	play    func(*siege)
	asks    int    // requests to other servers that the engine may send
	changes bool   // whether it may change databases; play checks the changes
	later   string // the part of the engine that it needs, if it does not exist yet
	never   string // the reason why this test cannot play it
}

// section is a table of attacks, with the ids that the table must hold.
type section struct {
	name    string
	ids     []string
	attacks []attack
}

// sections holds the tables of all attacks.
var sections = []section{
	{"Signatures and identity", numbered("SIG", 1, 38, "34b"), signatureAttacks},
	{"Origin, ownership, authorisation", numbered("ORG", 1, 30, "05b"), originAttacks},
	{"Fetching", numbered("NET", 0, 24, "11b"), fetchAttacks},
	{"Privacy and addressing", numbered("PRV", 1, 20), privacyAttacks},
	{"Names", numbered("NAM", 1, 7), nameAttacks},
	{"Moderation", numbered("MOD", 1, 7, "02b"), moderationAttacks},
	{"Tenancy and storage", numbered("TEN", 1, 17), tenancyAttacks},
	{"Client API", numbered("CLI", 1, 12, "02b"), clientAttacks},
	{"Delivery", numbered("DLV", 1, 14), deliveryAttacks},
	{"Parser and resources", numbered("PAR", 1, 20, "09b"), parserAttacks},
	{"One identity", numbered("IDN", 1, 4), identityAttacks},
	{"Audience", numbered("SEE", 1, 7), audienceAttacks},
	{"Cost", numbered("PAY", 1, 8, "08b"), costAttacks},
	{"Freshness", numbered("FRS", 1, 7), freshnessAttacks},
}

// numbered returns the ids of a section in order: prefix-01 and so on. The parameter between holds
// additional ids such as 34b.
func numbered(prefix string, first, last int, between ...string) (ids []string) {
	for n := first; n <= last; n++ {
		between = append(between, fmt.Sprintf("%02d", n))
	}
	slices.Sort(between)
	for _, n := range between {
		ids = append(ids, prefix+"-"+n)
	}
	return ids
}

func TestEveryAttackStandsInItsTable(t *testing.T) {
	for _, s := range sections {
		var ids []string
		for _, a := range s.attacks {
			ids = append(ids, a.id)
			ways := 0
			for _, way := range []bool{a.play != nil, a.later != "", a.never != ""} {
				if way {
					ways++
				}
			}
			if ways != 1 || a.sends == "" || (a.play != nil) != (a.happens != "") {
				t.Errorf("%s says neither or both what happens and why it is not played", a.id)
			}
		}
		if !slices.Equal(ids, s.ids) {
			t.Errorf("%s holds\n%v\nwant\n%v", s.name, ids, s.ids)
		}
	}
}

// docs/security.md shows the tables of attacks that the tests play.
func TestTheSecurityPageShowsTheAttacks(t *testing.T) {
	expectTable(t, "../docs/security.md", "attacks", "SecurityPage", tables())
}

func tables() string {
	var b strings.Builder
	for _, s := range sections {
		fmt.Fprintf(&b, "\n### %s\n\n| id | what is sent | what happens |\n|---|---|---|\n", s.name)
		for _, a := range s.attacks {
			what := a.happens
			switch {
			case a.later != "":
				what = "*comes with " + a.later + "*"
			case a.never != "":
				what = "*does not apply:* " + a.never
			}
			escaped := strings.NewReplacer("|", "\\|", "<", "&lt;")
			fmt.Fprintf(&b, "| %s | %s | %s |\n", a.id, escaped.Replace(a.sends), escaped.Replace(what))
		}
	}
	return b.String() + "\n"
}

// siege is an engine with the users alice and bob, and two other servers. p is mallory's server
// and hostile. q is carol's server and honest. alice and carol follow each other. bob has no
// followers and follows nobody. carol and bob are in a group of alice's.
type siege struct {
	*testing.T
	home           *enginetest.Instance
	alice, bob     *enginetest.User
	p, q           *peertest.Peer
	mallory, carol *peertest.Actor
	row            attack
	note           string // a public note of alice's
	secret         string // a post of alice's that only carol may read
	circle         string // a group of alice's with carol and bob as members

	slowOnes  []*peertest.Peer
	client    *http.Client    // sends requests; if nil, besieger does
	authority *authority      // signs certificates that the engine trusts; may be nil
	names     *dnstest.Server // the engine's name server; may be nil
}

// newSiege starts an engine with settings and returns a siege of that engine.
func newSiege(t *testing.T, settings ...string) *siege {
	return besiege(t, enginetest.Start(t, settings...))
}

func besiege(t *testing.T, home *enginetest.Instance) *siege {
	s := &siege{T: t, home: home, p: peertest.New(t, "127.0.0.2"), q: peertest.New(t, "127.0.0.3")}
	s.alice, s.bob = s.home.CreateUser(t, "alice"), s.home.CreateUser(t, "bob")
	s.mallory, s.carol = s.p.Actor("/users/mallory"), s.q.Actor("/users/carol")
	_, s.note = s.alice.Post(t, map[string]any{"content": "for everybody", "visibility": "public"})
	s.accepted(s.post(s.mallory, s.alice.ID+"/inbox", vocab.Doc{"id": s.id(s.mallory, "hello"), "type": "Like", "actor": string(s.mallory.ID), "object": s.note}))
	follow := vocab.Doc{"id": s.id(s.carol, "follow"), "type": "Follow", "actor": string(s.carol.ID), "object": s.alice.ID}
	s.accepted(s.post(s.carol, s.alice.ID+"/inbox", follow))
	sent := s.alice.Do(t, "Follow", map[string]any{"actorUri": string(s.carol.ID)}).ActivityID
	s.accepted(s.post(s.carol, s.alice.ID+"/inbox", vocab.Doc{"id": s.id(s.carol, "accept"), "type": "Accept", "actor": string(s.carol.ID), "object": sent}))
	_, s.secret = s.alice.Post(t, map[string]any{"content": "for carol alone", "visibility": "direct", "to": []any{string(s.carol.ID)}})
	s.circle = enginetest.ObjectOf(t, s.alice, s.alice.Do(t, "CreateGroup", map[string]any{"name": "inner-circle"}).ActivityID)
	for _, member := range []string{string(s.carol.ID), s.bob.ID} {
		s.alice.Do(t, "AddToGroup", map[string]any{"name": "inner-circle", "actorUri": member})
	}
	s.settle()
	return s
}

// play plays a table of attacks in order. After each attack it checks that no database has
// changed, unless the attack may change them. It also checks that the engine has not sent too many
// requests.
func (s *siege) play(attacks []attack) {
	for _, a := range attacks {
		if a.play == nil {
			continue
		}
		s.Run(a.id+" "+a.sends, func(t *testing.T) {
			one := *s
			one.T, one.row = t, a
			before, asked := one.state(), one.asked()
			a.play(&one)
			one.settle()
			if after := one.state(); !a.changes && after != before {
				t.Errorf("it left traces:\n%s", difference(before, after))
			}
			if n := one.asked() - asked; n > a.asks {
				t.Errorf("it made the engine ask others %d times, want %d at most", n, a.asks)
			}
			if got := enginetest.Fetch(t, s.alice.ID); got.Status != http.StatusOK {
				t.Fatalf("afterwards the engine answers %d for a user", got.Status)
			}
		})
	}
}

// id returns an id on the actor's server that no other attack uses.
func (s *siege) id(a *peertest.Actor, name string) string {
	return fmt.Sprintf("%s/%s-%s", a.ID, cmp.Or(strings.ToLower(s.row.id), "scene"), name)
}

// like returns an actor's Like of alice's note. The Like takes effect if the engine accepts it.
func (s *siege) like(a *peertest.Actor, name string) vocab.Doc {
	return vocab.Doc{"id": s.id(a, name), "type": "Like", "actor": string(a.ID), "object": s.note}
}

// create returns a Create of an actor's public note that mentions alice.
func (s *siege) create(a *peertest.Actor, name string) vocab.Doc {
	return vocab.Doc{"id": s.id(a, name), "type": "Create", "actor": string(a.ID), "to": []any{s.alice.ID, string(vocab.Public)}, "object": vocab.Doc{
		"id": s.id(a, name+"-note"), "type": "Note", "attributedTo": string(a.ID), "content": "believe me", "to": []any{s.alice.ID, string(vocab.Public)},
		"tag": []any{vocab.Doc{"type": "Mention", "href": s.alice.ID}}}}
}

// post sends an activity to an inbox, signed by the actor.
func (s *siege) post(a *peertest.Actor, inbox string, activity vocab.Doc) enginetest.Answer {
	s.Helper()
	return s.send(peertest.Forgery{URL: inbox, Body: string(activity.JSON()), Key: a.Keys.RSA, Dialect: signature.RFC9421}.Request(s))
}

// forge sends mallory's Like to alice with the changes that f describes.
func (s *siege) forge(f peertest.Forgery) enginetest.Answer {
	s.Helper()
	f.URL = cmp.Or(f.URL, s.alice.ID+"/inbox")
	if f.Body == "" {
		f.Body = string(s.like(s.mallory, fmt.Sprint(time.Now().UnixNano())).JSON())
	}
	if f.Key.Private == nil {
		f.Key = s.mallory.Keys.RSA
	}
	return s.send(f.Request(s))
}

// besieger is the attackers' HTTP client. It follows no redirects and decompresses nothing.
var besieger = &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableCompression: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// from returns a copy of the siege. The copy sends its requests from another address of this
// machine.
func (s *siege) from(address string) *siege {
	dial := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	other := *s
	other.client = &http.Client{Timeout: time.Minute, CheckRedirect: besieger.CheckRedirect, Transport: &http.Transport{DisableCompression: true, DialContext: dial.DialContext}}
	s.Cleanup(other.client.CloseIdleConnections)
	return &other
}

// send sends a request. If the engine hangs up without an answer, the status is 0.
func (s *siege) send(r *http.Request) enginetest.Answer {
	s.Helper()
	resp, err := cmp.Or(s.client, besieger).Do(r)
	if err != nil {
		s.Logf("%s %s: %v", r.Method, r.URL, err)
		return enginetest.Answer{}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		s.Logf("%s %s: %v", r.Method, r.URL, err)
	}
	return enginetest.Answer{Status: resp.StatusCode, Header: resp.Header, Body: body}
}

// innards matches details that no answer to a stranger may contain: paths, source files, SQL
// statements and keys.
var innards = regexp.MustCompile(`(?i)\.go:\d|goroutine|/var/|/tmp/|/root|SQLSTATE|\bselect\b.*\bfrom\b|pgx|BEGIN (RSA |EC )?P|panic`)

// answered checks that an answer has one of these statuses. If the answer is a refusal, it must be
// a problem document that shows no details of the engine.
func (s *siege) answered(a enginetest.Answer, statuses ...int) {
	s.Helper()
	if !slices.Contains(statuses, a.Status) {
		s.Errorf("answered %d %s, want %v", a.Status, a.Body, statuses)
	}
	if a.Status < http.StatusBadRequest {
		return
	}
	if got := a.Header.Get("Content-Type"); got != "application/problem+json" {
		s.Errorf("the refusal is of type %q", got)
	}
	if found := innards.Find(a.Body); found != nil {
		s.Errorf("the refusal shows %q: %s", found, a.Body)
	}
}

func (s *siege) accepted(a enginetest.Answer)     { s.Helper(); s.answered(a, http.StatusAccepted) }
func (s *siege) unauthorized(a enginetest.Answer) { s.Helper(); s.answered(a, http.StatusUnauthorized) }

// asked counts the requests that the peers received. It does not count requests for the documents
// of mallory and carol, because the engine may fetch their keys again once a minute.
func (s *siege) asked() int {
	known := func(path string) bool { return path == "/users/mallory" || path == "/users/carol" }
	asked := slices.DeleteFunc(append(s.p.Asked(), s.q.Asked()...), known)
	return len(asked) + len(s.p.Posted()) + len(s.q.Posted())
}

// settle waits until the engine has processed every activity that it accepted.
func (s *siege) settle() {
	s.Helper()
	enginetest.Eventually(s, "the engine has nothing left to do", func() bool {
		return s.count("lightweb", `SELECT count(*) FROM intake`) == 0 &&
			s.count("lightweb", `SELECT count(*) FROM users WHERE events_due IS NOT NULL`) == 0 &&
			s.count("lightweb_alice", `SELECT count(*) FROM deliveries WHERE status = 'pending'`) == 0 &&
			s.count("lightweb_bob", `SELECT count(*) FROM deliveries WHERE status = 'pending'`) == 0
	})
}

func (s *siege) count(database, query string, args ...any) (n int) {
	s.Helper()
	if err := s.home.SQL(s, database).QueryRowContext(s.Context(), query, args...).Scan(&n); err != nil {
		s.Fatalf("%s: %v", query, err)
	}
	return n
}

// held returns a digest of every table that an attack may not change. It leaves out the engine's
// records about other servers, the requests of a user's own clients, and the positions of the
// event groups, which the engine writes once a minute. It also leaves out two columns: next_due,
// the time of the next look at deliveries, and told_profile, which the engine writes some seconds
// after its start.
const held = `SELECT table_name || ' ' || (xpath('/row/d/text()', query_to_xml(format(
		'SELECT count(*) || '' rows '' || coalesce(md5(string_agg(x::text, '','' ORDER BY x::text)), '''') AS d FROM (SELECT to_jsonb(t) - ''next_due'' - ''told_profile'' AS x FROM %I t) x', table_name), false, true, '')))[1]::text
	FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'
		AND table_name NOT IN ('audit', 'attempts', 'event_groups') AND NOT ($1 AND table_name IN ('actors', 'actor_keys', 'hosts', 'ignored')) ORDER BY 1`

// state returns the digests of all databases.
func (s *siege) state() string {
	s.Helper()
	var b strings.Builder
	for _, database := range []string{"lightweb", "lightweb_alice", "lightweb_bob"} {
		for _, table := range s.tables(database) {
			fmt.Fprintf(&b, "%s: %s\n", database, table)
		}
	}
	return b.String()
}

func (s *siege) tables(database string) (all []string) {
	s.Helper()
	found, err := s.home.SQL(s, database).QueryContext(s.Context(), held, database == "lightweb")
	if err != nil {
		s.Fatal(err)
	}
	defer found.Close()
	for found.Next() {
		var line string
		if err := found.Scan(&line); err != nil {
			s.Fatal(err)
		}
		all = append(all, line)
	}
	if err := found.Err(); err != nil {
		s.Fatal(err)
	}
	return all
}

// difference returns the lines of b that are not in a.
func difference(a, b string) string {
	known := strings.Split(a, "\n")
	return strings.Join(slices.DeleteFunc(strings.Split(b, "\n"), func(line string) bool { return slices.Contains(known, line) }), "\n")
}
