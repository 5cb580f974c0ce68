package server_test

import (
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/server"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// signedWith signs a request and its body, as another server does.
func (k *talk) signedWith(key signature.Key, body string) asking { return k.signedAt(start, key, body) }

func (k *talk) signedAt(at time.Time, key signature.Key, body string) asking {
	return func(r *http.Request) {
		c, err := http.NewRequest(r.Method, origin+r.RequestURI, strings.NewReader(body))
		if err == nil && body == "" {
			err = signature.Sign(c, nil, key, signature.RFC9421, at)
		} else if err == nil {
			err = signature.Sign(c, []byte(body), key, signature.RFC9421, at)
		}
		if err != nil {
			k.Fatal(err)
		}
		for name, v := range c.Header {
			r.Header[name] = v
		}
		r.Header.Set("Content-Type", "application/json")
	}
}

// submit posts a body. The request is signed with carol's key.
func (k *talk) submit(to string, body map[string]any) response {
	k.Helper()
	k.keys++
	text := string(toDoc(k.T, body).JSON())
	return k.send(k.peerPath()+to, text, k.signedWith(k.carolKey, text), header("Idempotency-Key", "key-"+strconv.Itoa(k.keys)))
}

func (k *talk) peerPath() string { return "/users/alice/conversations/" + k.id.String() }

func (k *talk) look(to string, key signature.Key) response {
	k.Helper()
	return k.get(k.peerPath()+to, k.signedWith(key, ""))
}

// Rows 9 to 12 of docs/conversations.md, Cases and their tests. A member on another server signs
// its requests. Until the member is removed, it gets the same answers as a local user.
func TestRow12AMemberElsewhereIsServedByItsSignature(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	phone := mlstest.NewDevice(string(k.carol.ID), start)
	k.look("", k.carolKey).want(t, 404) // carol was never a member
	k.add(phone)
	var got struct {
		Epoch   int64
		Members []struct{ Actor string }
	}
	k.look("", k.carolKey).want(t, 200).decode(t, &got)
	if got.Epoch != 1 || len(got.Members) != 2 {
		t.Errorf("carol sees %+v", got)
	}
	k.get(k.peerPath()).want(t, 401)
	_, stranger := k.remote("https://peer.example/users/stranger")
	k.look("/log", stranger).want(t, 404)
	message := map[string]any{"message": k.group.Message()}
	k.submit("/messages", message).want(t, 201)
	if again := k.submit("/messages", message).want(t, 201); again.Header.Get("Idempotent-Replayed") != "true" {
		t.Error("a message that comes again is not known")
	}
	text := string(toDoc(t, message).JSON())
	k.send(k.peerPath()+"/messages", text+" ", k.signedWith(k.carolKey, text)).want(t, 401) // carol has signed a body without the last space
	other := mlstest.NewGroup(phone)
	k.submit("/messages", map[string]any{"message": other.Message()}).want(t, 400) // row 11: a message of another group
	late, _ := k.group.Commit(k.device, mlstest.Change{})                          // row 12: alice's device made the commit, carol signs the request
	k.submit("/commits", map[string]any{"commit": late, "groupInfo": k.group.Info(k.device)}).want(t, 403)
	back, rejoined := k.group.Rejoin(phone, phone) // row 10: carol's device joins again
	k.look("/group-info", k.carolKey).want(t, 200)
	k.submit("/external-commit", map[string]any{"commit": back, "groupInfo": rejoined.Info(phone)}).want(t, 201)
	k.submit("/commits", map[string]any{"commit": late, "groupInfo": k.group.Info(k.device)}).want(t, 409)
	k.group = rejoined
	commit, next := k.group.Commit(k.device, mlstest.Change{Remove: []*mlstest.Device{phone}})
	k.post(k.device.Identity, k.path+"/commits", map[string]any{"commit": commit, "groupInfo": next.Info(k.device)}).want(t, 201)
	for _, path := range []string{"", "/log", "/group-info"} { // row 9: carol is removed
		k.look(path, k.carolKey).want(t, 403)
	}
	k.submit("/messages", map[string]any{"message": next.Message()}).want(t, 403)
	k.submit("/external-commit", map[string]any{"commit": back, "groupInfo": rejoined.Info(phone)}).want(t, 403)
	if len(k.inbox.counted) == 0 {
		t.Error("the requests do not count as those to inboxes")
	}
}

// A member's commit adds actors. The domain of the member's server pays for fetching them. If the
// commit is of another epoch, no actor is fetched.
func TestAMemberElsewherePaysForWhatItsCommitFetches(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	phone := mlstest.NewDevice(string(k.carol.ID), start)
	k.add(phone)
	bring := func(g *mlstest.Group, name string) response {
		device := mlstest.NewDevice("https://new.example/users/"+name, start)
		commit, next := g.Commit(phone, mlstest.Change{Add: []*mlstest.Device{device}})
		return k.submit("/commits", map[string]any{"commit": commit, "groupInfo": next.Info(phone), "welcomes": [][]byte{next.Welcome(device)}})
	}
	early := *k.group
	early.Epoch++
	bring(&early, "early").want(t, 409)
	if len(k.others.payers) > 0 {
		t.Errorf("for a commit of another epoch actors are fetched, at the cost of %q", k.others.payers)
	}
	bring(k.group, "now").want(t, 503)
	if got := k.others.payers; len(got) == 0 || slices.ContainsFunc(got, func(by string) bool { return by != "domain peer.example" }) {
		t.Errorf("the payers are %q, want the member's domain", got)
	}
}

// Signed requests for conversations and key packages that the signer may not use count as reads of
// strangers. They use no connections that are meant for users.
func TestSignersOfOtherServersReadAsStrangers(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	_, stranger := k.remote("https://peer.example/users/stranger")
	release := k.server.HoldReads(netip.MustParseAddr("192.0.2.1"))
	for name, r := range map[string]response{
		"a conversation": k.look("", stranger),
		"a claim":        k.send("/users/alice/keyPackages/claim", "{}", k.signedWith(stranger, "{}")),
	} {
		if r.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(r.body), "crowded") {
			t.Errorf("%s: %d %s, want crowded", name, r.StatusCode, r.body)
		}
	}
	release()
	k.look("", stranger).want(t, 404)
	k.send("/users/alice/keyPackages/claim", "{}", k.signedWith(stranger, "{}")).want(t, 403)
}

// unread is a request body. It fails the test if the server reads it.
type unread struct{ *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.Error("the body is read")
	return 0, io.EOF
}

func (unread) Close() error { return nil }

// A conversation refuses requests of other servers for the same reasons as an inbox.
func TestAConversationRefusesServersAsInboxesDo(t *testing.T) {
	t.Parallel()
	k := newTalk(t, secure)
	k.add(mlstest.NewDevice(string(k.carol.ID), start))
	k.get(k.peerPath()).want(t, 401) // the server is in secure mode
	k.look("", k.carolKey).want(t, 200)

	closed := func(r *http.Request) { r.Body = unread{t} }
	post := func(how asking) response {
		return k.send(k.peerPath()+"/messages", "", how, closed, header("Idempotency-Key", "refused"))
	}
	const body = `{"message":"AAAA"}`
	for _, away := range []time.Duration{-time.Hour - time.Second, time.Hour + time.Second} {
		k.get(k.peerPath(), k.signedAt(start.Add(away), k.carolKey, "")).want(t, 401)
		post(k.signedAt(start.Add(away), k.carolKey, body)).want(t, 401)
	}
	_, stranger := k.remote("https://peer.example/users/stranger")
	// the signer is not a member, so the body is not read
	post(k.signedWith(stranger, body)).want(t, 404)

	k.inbox.refuses = fault.New(fault.RateLimited, "too many activities").After(time.Minute)
	if r := post(k.signedWith(k.carolKey, body)).want(t, 429); r.Header.Get("Retry-After") != "60" {
		t.Errorf("Retry-After is %q, want 60", r.Header.Get("Retry-After"))
	}
	k.look("/log", k.carolKey).want(t, 429)
	k.inbox.refuses = nil

	k.policy.Suspended = []vocab.ID{k.carol.ID} // the key of a suspended actor is not fetched
	post(k.signedWith(k.carolKey, body)).want(t, 401)
	k.look("", k.carolKey).want(t, 401)
	k.policy.Suspended, k.policy.Blocked = nil, []string{k.carol.ID.Host()}
	post(k.signedWith(k.carolKey, body)).want(t, 403)
	k.look("", k.carolKey).want(t, 403)
}

func TestASubmissionHasABound(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	k.add(mlstest.NewDevice(string(k.carol.ID), start))
	huge := `{"message":"` + strings.Repeat("A", 8<<20) + `"}`
	k.send(k.peerPath()+"/messages", huge, k.signedWith(k.carolKey, huge), header("Idempotency-Key", "huge")).want(t, 413)
}

// The host stores the entries of members and sends them to the other members. So a domain may add
// only a limited amount a day to the logs of each host. When the amount is used up, the domain's
// actors may still read.
func TestAMemberElsewhereAddsToALogWhatADayHasRoomFor(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	k.add(mlstest.NewDevice(string(k.carol.ID), start))
	storage, most := k.deps.Conversations.Storage, policy.HostedLogs.Rate.Burst
	storage.Count(k.bob, k.carol.ID, most)
	storage.Count(k.alice, k.carol.ID, most-1)
	k.submit("/messages", map[string]any{"message": mlstest.NewGroup(k.device).Message()}).want(t, 400) // this request stores nothing
	k.submit("/messages", map[string]any{"message": k.group.Message()}).want(t, 201)
	closed := func(r *http.Request) { r.Body = unread{t} }
	r := k.send(k.peerPath()+"/messages", "", k.signedWith(k.carolKey, "{}"), closed, header("Idempotency-Key", "full")).want(t, 429)
	if r.Header.Get("Retry-After") == "" {
		t.Error("nothing tells when there is room again")
	}
	k.look("/log", k.carolKey).want(t, 200)
}

func TestAPausedServerServesNoMembersElsewhere(t *testing.T) {
	t.Parallel()
	k := newTalk(t, func(d *server.Deps) { d.Paused = true })
	k.add(mlstest.NewDevice(string(k.carol.ID), start))
	k.look("", k.carolKey).want(t, 503)
	k.submit("/messages", map[string]any{"message": k.group.Message()}).want(t, 503)
	k.send("/users/alice/keyPackages/claim", "{}").want(t, 503)
}

// A claim is counted by its address before its body is read and its signature is looked at.
func TestWhoClaimsTooOftenIsRefusedFirst(t *testing.T) {
	t.Parallel()
	k := newTalk(t, func(d *server.Deps) {
		d.Clients = policy.NewLimiter(policy.Rate{PerSecond: 0.001, Burst: 2}, d.Now, 10)
	})
	claim := func() response { return k.send("/users/alice/keyPackages/claim", "{}") }
	for range 2 {
		claim().want(t, 401)
	}
	if r := claim().want(t, 429); r.Header.Get("Retry-After") == "" {
		t.Error("nothing tells when there is room again")
	}
}
