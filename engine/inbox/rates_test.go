package inbox_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/inbox"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/signature"
)

// four allows each host four activities.
func four(d *inbox.Deps) {
	d.Hosts = policy.NewLimiter(policy.Rate{PerSecond: 0.001, Burst: 4}, d.Now, 10)
}

func heard(n int) string {
	return strings.Replace(listen, "p:/listens/1", fmt.Sprintf("p:/listens/%d", n), 1)
}

// When a peer repeats a request in the other signature dialect, the repeat does not count towards
// the rate limit. Fedify repeats every refused request at once in the other dialect.
func TestASecondKnockIsNotCounted(t *testing.T) {
	s := newScene(t, four)
	send := func(d signature.Dialect, body string) error {
		s.Dialect = d
		return s.Send("p:/carol", mine, body)
	}
	limited := func() bool { // uses up nothing, because its signature is invalid
		return fault.KindOf(altered(s, func(h http.Header) { h.Set("Digest", "SHA-256=AAAA"); h.Set("Content-Digest", "sha-256=:AAAA:") })) == fault.RateLimited
	}
	for n := range 3 {
		for _, d := range []signature.Dialect{signature.RFC9421, signature.Cavage} {
			if err := send(d, heard(n)); err != nil {
				t.Fatalf("%d by %s: %v", n, d, err)
			}
		}
	}
	if limited() {
		t.Fatal("a second knock was counted")
	}
	if err := send(signature.RFC9421, heard(0)); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"a third knock": send(signature.RFC9421, heard(1)), "and a fourth": send(signature.Cavage, heard(1)),
		"what was refused, knocked again": send(signature.RFC9421, heard(9)), "the other way": send(signature.Cavage, heard(9))} {
		if fault.KindOf(err) != fault.RateLimited {
			t.Errorf("%s: %v, want RateLimited", name, err)
		}
	}
}

func TestAKnockLongAfterIsANewRequest(t *testing.T) {
	s := newScene(t, four)
	for n := range 5 {
		s.Dialect = []signature.Dialect{signature.RFC9421, signature.Cavage}[n%2]
		err := s.Send("p:/carol", mine, listen)
		if limited := fault.KindOf(err) == fault.RateLimited; limited != (n == 4) {
			t.Errorf("time %d: %v", n+1, err)
		}
		s.Later(11 * time.Second)
	}
}

// A request of a host that has used up its limit costs neither a fetch nor a verification. A
// forged request does not count towards the host's limit.
func TestWhoSentTooMuchIsRefusedBeforeAnythingIsFetched(t *testing.T) {
	s := newScene(t, four)
	for n := range 10 { // requests forged in carol's name
		r := s.Request("p:/carol", mine, heard(n))
		r.Header.Set("Signature", strings.Replace(r.Header.Get("Signature"), ":", ":AAAA", 1))
		if err := s.Receive(r, mine, heard(n)); fault.KindOf(err) != fault.Unauthenticated {
			t.Fatalf("forged: %v, want Unauthenticated", err)
		}
	}
	for n := range 4 {
		s.MustSend("p:/carol", mine, heard(n))
	}
	err := s.Send("p:/dave", mine, strings.Replace(heard(5), "p:/carol", "p:/dave", 1))
	if fault.KindOf(err) != fault.RateLimited || fault.Of(err).RetryAfter < time.Second {
		t.Errorf("err = %v, want RateLimited with a time to wait", err)
	}
	if n := s.Asked("p:/dave"); n > 0 {
		t.Errorf("asked for the actor %d times, want never", n)
	}
}

// PAR-17: the engine stores a limited number of bytes a day for the strangers of one domain,
// however many names the domain has.
func TestStrangersHaveSoMuchStoredADay(t *testing.T) {
	s := newScene(t)
	const day = 20 << 10
	s.Inbox.StoreDaily(day)
	long := `,"note":"` + strings.Repeat("x", 3<<10) + `"}`
	send := func(n int) error {
		by := []string{"p:/carol", "p:/dave"}[n%2]
		return s.Send(by, mine, strings.NewReplacer("p:/carol", by, "}", long).Replace(heard(n)))
	}
	n := 0
	for n < 20 && send(n) == nil {
		n++
	}
	if n < 3 || n > 5 {
		t.Fatalf("%d activities of 5 KiB were stored, want what is in %d bytes", n, day)
	}
	err := send(n)
	if fault.KindOf(err) != fault.RateLimited || fault.Of(err).RetryAfter < time.Minute {
		t.Errorf("err = %v, want RateLimited with a time to wait", err)
	}
	elsewhere := strings.NewReplacer("p:/listens", "q:/listens", "p:/carol", "q:/mallory").Replace(listen)
	for name, body := range map[string]string{
		"takes back": `{"id":"p:/undos/1","type":"Undo","actor":"p:/carol","object":{"id":"p:/listens/0","type":"Listen","actor":"p:/carol","object":"p:/songs/1"}}`,
		"for nobody": `{"id":"p:/listens/n","type":"Listen","actor":"p:/carol","to":"as:Public"}`,
	} {
		inbox := map[bool]string{true: shared, false: mine}[name == "for nobody"]
		if err := s.Send("p:/carol", inbox, body); err != nil {
			t.Errorf("what %s: %v", name, err)
		}
	}
	if err := s.Send("q:/mallory", mine, elsewhere); err != nil {
		t.Errorf("another domain pays for it: %v", err)
	}
	s.Follows("p:/dave")
	if err := send(21); err != nil {
		t.Errorf("an actor that alice follows: %v", err)
	}
	s.Later(24 * time.Hour)
	if err := send(22); err != nil {
		t.Errorf("a day later: %v", err)
	}
}

// A stranger sends a small boost, and the engine fetches the boosted object. The object counts as
// stored for the stranger.
func TestWhatIsFetchedForAStrangerCountsAsStored(t *testing.T) {
	s := newScene(t)
	s.Inbox.StoreDaily(20 << 10)
	s.Serve("p:/notes/1", `{"id":"p:/notes/1","type":"Note","attributedTo":"p:/carol","to":"as:Public","content":"`+strings.Repeat("x", 30<<10)+`"}`)
	boost := func(n int) string {
		return fmt.Sprintf(`{"id":"p:/boosts/%d","type":"Announce","actor":"p:/dave","to":["as:Public","us:/alice"],"object":"p:/notes/1"}`, n)
	}
	s.MustSend("p:/dave", mine, boost(1))
	if err := s.Send("p:/dave", mine, boost(2)); fault.KindOf(err) != fault.RateLimited {
		t.Errorf("err = %v, want RateLimited", err)
	}
}

// PAR-17: when the budget is used up, a Block, an Undo and a Delete still take effect, but no row
// of them is stored.
func TestBeyondTheBudgetWhatIsTakenAwayGoesAndLeavesNoRow(t *testing.T) {
	s := newScene(t)
	s.Inbox.StoreDaily(1)
	s.MustSend("p:/carol", mine, listen)
	rows := func() []string {
		return s.Column(t, s.Alice, `SELECT uri FROM activities UNION ALL SELECT encode(digest, 'hex') FROM seen`)
	}
	before := len(rows())
	block := `{"id":"p:/blocks/1","type":"Block","actor":"p:/carol","object":"us:/alice","note":"` + strings.Repeat("x", 9<<10) + `"}`
	for _, body := range []string{block, strings.Replace(block, "blocks/1", "blocks/2", 1)} {
		s.MustSend("p:/carol", mine, body)
	}
	if got := s.Column(t, s.Alice, `SELECT activity_uri FROM blocks`); len(got) != 1 || got[0] != s.Long("p:/blocks/2") {
		t.Errorf("the blocks are %q, want the newest", got)
	}
	for n := range 3 {
		s.MustSend("p:/carol", mine, fmt.Sprintf(`{"id":"p:/undos/%[1]d","type":"Undo","actor":"p:/carol","object":"p:/blocks/%[1]d"}`, n))
	}
	if got := s.Column(t, s.Alice, `SELECT activity_uri FROM blocks`); len(got) > 0 {
		t.Errorf("the blocks are %q, want none after the Undo", got)
	}
	s.MustSend("p:/carol", mine, `{"id":"p:/undos/l","type":"Undo","actor":"p:/carol","object":"`+"p:/listens/1"+`"}`)
	if after := rows(); len(after) >= before {
		t.Errorf("%d rows became %d, want fewer: %q", before, len(after), after)
	}
}

// IDN-03: an actor known to the user can take back things that never arrived. Their ids are stored
// only within the budget.
func TestIDsThatNeverCameAreStoredWithinTheBudget(t *testing.T) {
	for name, know := range map[string]func(s *peertest.Scene){
		"somebody alice follows": func(s *peertest.Scene) {
			s.Follows("p:/carol")
			s.Inbox.StoreDailyForFollower(8 << 10)
		},
		"a follower": func(s *peertest.Scene) {
			s.Followed("p:/carol")
			s.Inbox.StoreDaily(8 << 10)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			know(s)
			for n := range 40 {
				kind := []string{"Delete", "Undo"}[n%2]
				s.MustSend("p:/carol", mine, fmt.Sprintf(`{"id":"p:/%[2]s/%[1]d","type":"%[2]s","actor":"p:/carol","object":"p:/made-up/%[1]d"}`, n, kind))
			}
			got := s.Column(t, s.Alice, `SELECT encode(digest, 'hex') FROM seen UNION ALL SELECT encode(digest, 'hex') FROM tombstones`)
			if len(got) < 2 || len(got) > 8 {
				t.Errorf("%d ids of 40 are stored, want what is in 8 KiB", len(got))
			}
		})
	}
}

// SIG-37: an unsigned request gets the same answer whether the user exists or not. The engine does
// not look the user up.
func TestWhoDoesNotSignLearnsOfNobody(t *testing.T) {
	s := newScene(t)
	var answers []string
	for _, inbox := range []string{mine, "us:/users/nobody/inbox", shared} {
		r := s.Request("p:/carol", inbox, listen)
		r.Header.Del("Signature")
		err := s.Receive(r, inbox, listen)
		if fault.KindOf(err) != fault.Unauthenticated {
			t.Errorf("%s: %v, want Unauthenticated", inbox, err)
		}
		answers = append(answers, fmt.Sprint(err))
	}
	if answers[0] != answers[1] || answers[1] != answers[2] {
		t.Errorf("%q, want one answer", answers)
	}
}

// When the budget of a domain is used up, the engine stores the domain's posts for its followers
// only.
func TestBeyondTheBudgetOnlyThoseWhoFollowAreSentMore(t *testing.T) {
	alice := newScene(t)
	bob := alice.With("bob")
	alice.Inbox.StoreDaily(1)
	alice.Follows("p:/carol")
	to := func(n int) string {
		return fmt.Sprintf(`{"id":"p:/creates/%03[1]d","type":"Create","actor":"p:/carol","to":["as:Public","us:/alice","BOB"],"object":{"id":"p:/notes/%03[1]d","type":"Note","attributedTo":"p:/carol","to":"as:Public","content":"hi"}}`, n)
	}
	for n := range 2 {
		alice.MustSend("p:/carol", shared, strings.ReplaceAll(to(n), "BOB", bob.Long("us:/alice")))
		settled(t, alice, bob)
	}
	if a, b := alice.Column(t, alice.Alice, `SELECT uri FROM objects`), bob.Column(t, bob.Alice, `SELECT uri FROM objects`); len(a) != 2 || len(b) != 1 {
		t.Errorf("alice, who follows, has %d and bob %d, want 2 and 1", len(a), len(b))
	}
}

// A domain cannot fill the database of a user who follows it. Above the daily bound the engine
// tells the peer to come again. Other users get their activities.
func TestAFollowedDomainHasSoMuchStoredADayForEachFollower(t *testing.T) {
	alice := newScene(t)
	bob := alice.With("bob")
	const day = 20 << 10
	alice.Inbox.StoreDailyForFollower(day)
	alice.Follows("p:/carol")
	alice.Follows("q:/mallory")
	long := strings.Repeat("x", 6<<10)
	note := func(by string, n int) string {
		return strings.NewReplacer("p:/carol", by, "BOB", bob.Long("us:/alice")).Replace(fmt.Sprintf(`{"id":"p:/carol/creates/%[1]d","type":"Create","actor":"p:/carol","to":["as:Public","p:/carol/followers"],
			"object":{"id":"p:/carol/notes/%[1]d","type":"Note","attributedTo":"p:/carol","to":"as:Public","content":"%[2]s"}}`, n, long))
	}
	n := 0
	for n < 20 && alice.Send("p:/carol", shared, note("p:/carol", n)) == nil {
		settled(t, alice, bob)
		n++
	}
	if n < 2 || n > 4 {
		t.Fatalf("%d posts of 8 KiB were stored, want what is in %d bytes", n, day)
	}
	if err := alice.Send("p:/carol", shared, note("p:/carol", n)); fault.KindOf(err) != fault.RateLimited || fault.Of(err).RetryAfter < time.Minute {
		t.Errorf("err = %v, want RateLimited with a time to wait", err)
	}
	if err := alice.Send("q:/mallory", shared, note("q:/mallory", 1)); err != nil {
		t.Errorf("another domain that alice follows pays for it: %v", err)
	}
	bob.Follows("p:/carol")
	for range 2 {
		if err := alice.Send("p:/carol", shared, note("p:/carol", n)); fault.KindOf(err) != fault.RateLimited {
			t.Errorf("for bob, too: %v, want RateLimited: alice does not have it", err)
		}
		settled(t, alice, bob)
	}
	if got := bob.Column(t, bob.Alice, `SELECT uri FROM objects`); len(got) != 1 {
		t.Errorf("bob has %q, want the last post once", got)
	}
	alice.Later(24 * time.Hour)
	alice.MustSend("p:/carol", shared, note("p:/carol", n))
	settled(t, alice, bob)
	if a, b := alice.Column(t, alice.Alice, `SELECT uri FROM objects`), bob.Column(t, bob.Alice, `SELECT uri FROM objects`); len(a) != n+2 || len(b) != 1 {
		t.Errorf("a day later alice has %d posts and bob %d, want %d and 1", len(a), len(b), n+2)
	}
}

// Some servers send every Follow, and every Undo, under one id. Each that takes effect costs as
// much as one under an id of its own.
func TestAFollowThatComesAgainCostsAsMuchAsANewOne(t *testing.T) {
	const padded = `{"id":"p:/follows/N","type":"Follow","actor":"p:/carol","object":"us:/alice","note":"LONG"}`
	const undo = `{"id":"p:/follows/N/undo","type":"Undo","actor":"p:/carol","object":{"id":"p:/follows/N","type":"Follow","actor":"p:/carol","object":"us:/alice"}}`
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	counts := func(isSame bool, stored, told int) (follows int, events, rows []string) {
		t.Helper()
		s := stage.Scene(t)
		s.Inbox.StoreDaily(stored)
		s.Inbox.TellDaily(told)
		for n := range 20 {
			if isSame {
				n = 0
			}
			with := strings.NewReplacer("N", strconv.Itoa(n), "LONG", strings.Repeat("x", 3<<10))
			s.Later(2 * time.Second)
			if err := s.Send("p:/carol", mine, with.Replace(padded)); err == nil {
				follows++
			} else if fault.KindOf(err) != fault.RateLimited {
				t.Fatal(err)
			}
			s.Later(2 * time.Second)
			s.MustSend("p:/carol", mine, with.Replace(undo))
		}
		return follows, s.Column(t, s.Alice, `SELECT type FROM event_outbox WHERE type = 'follow.received'`),
			s.Column(t, s.Alice, `SELECT uri FROM activities WHERE direction = 'inbound' UNION ALL SELECT activity_uri FROM feed`)
	}
	for _, limit := range []struct{ stored, told int }{{20 << 10, 1000}, {1 << 20, 8}} {
		wantFollows, wantEvents, _ := counts(false, limit.stored, limit.told)
		follows, events, rows := counts(true, limit.stored, limit.told)
		if follows != wantFollows || len(events) != len(wantEvents) {
			t.Errorf("under one id there were %d Follows and %d events, under ids of their own %d and %d", follows, len(events), wantFollows, len(wantEvents))
		}
		if follows == 20 && len(events) == 20 {
			t.Errorf("%+v limited nothing", limit)
		}
		if len(rows) > 2 {
			t.Errorf("the rows at the end are %q, want at most those of the last Follow and its Undo", rows)
		}
	}
}
