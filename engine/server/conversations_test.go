package server_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/server"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// talk is a conversation that alice hosts, used over HTTP.
type talk struct {
	*fixture
	id     uuid.UUID
	path   string
	tokens map[string]string // the keys are actors
	device *mlstest.Device   // alice's device
	group  *mlstest.Group
	keys   int
}

func newTalk(t *testing.T, change ...func(*server.Deps)) *talk {
	t.Helper()
	f := newFixture(t, change...)
	me := string(f.local.ID(f.alice))
	k := &talk{fixture: f, device: mlstest.NewDevice(me, start), tokens: map[string]string{
		me: f.token(f.alice, "read", "write"), string(f.local.ID(f.bob)): f.token(f.bob, "read", "write")}}
	k.group = mlstest.NewGroup(k.device)
	var made struct {
		ID    uuid.UUID
		Epoch int64
	}
	k.post(me, "/api/conversations", map[string]any{"groupInfo": k.group.Info(k.device)}).want(t, 201).decode(t, &made)
	k.id, k.path = made.ID, "/api/conversations/"+made.ID.String()
	return k
}

// post posts a body with the token of an actor's program.
func (k *talk) post(as, path string, body map[string]any, how ...asking) response {
	k.Helper()
	k.keys++
	return k.send(path, string(toDoc(k.T, body).JSON()), append([]asking{bearerToken(k.tokens[as]), header("Content-Type", "application/json"),
		header("Idempotency-Key", "key-"+strconv.Itoa(k.keys))}, how...)...)
}

func toDoc(t *testing.T, body map[string]any) vocab.Doc {
	t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	d, err := vocab.ParseDoc(b)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// add adds a device to the group by a commit of alice's.
func (k *talk) add(d *mlstest.Device) response {
	k.Helper()
	commit, next := k.group.Commit(k.device, mlstest.Change{Add: []*mlstest.Device{d}})
	k.group = next
	return k.post(k.device.Identity, k.path+"/commits", map[string]any{"commit": commit, "groupInfo": next.Info(k.device), "welcomes": [][]byte{next.Welcome(d)}}).want(k.T, 201)
}

// invite stores bob's copy of the conversation at the current epoch, as an arriving Welcome does.
// It returns the path of the copy.
func (k *talk) invite() string {
	k.Helper()
	host, mine := k.local.ID(k.alice), uuid.New()
	k.write(k.bob, func(ctx context.Context, tx *user.Tx) error {
		err := tx.Joined.Add(ctx, user.JoinedConversation{ID: mine, URI: host + "/conversations/" + vocab.ID(k.id.String()), Host: host, GroupID: k.group.ID, Epoch: int64(k.group.Epoch),
			LastSeq: 1, WholeSeq: 1, Status: user.StatusActive, Confirmed: true}, start)
		if err != nil {
			return err
		}
		_, err = tx.Joined.SetRoster(ctx, mine, []vocab.ID{host, k.local.ID(k.bob)}, []string{user.RoleAdmin, user.RoleMember}, 1)
		return err
	})
	return "/api/conversations/" + mine.String()
}

// heard tells bob's copy that the log has entries up to a number. It waits until the copy has all
// of them.
func (k *talk) heard(path string, seq int64) {
	k.Helper()
	k.tellOf(path, seq)
	k.waitFor(path, seq)
}

// waitFor reads bob's copy until the copy has all entries up to a number.
func (k *talk) waitFor(path string, seq int64) {
	k.Helper()
	for range 10_000 {
		var got struct{ LastSeq int64 }
		k.get(path, bearerToken(k.tokens[string(k.local.ID(k.bob))])).want(k.T, 200).decode(k.T, &got)
		if got.LastSeq == seq {
			return
		}
	}
	k.Fatalf("number %d never came", seq)
}

func (k *talk) tellOf(path string, seq int64) {
	k.Helper()
	id := uuid.MustParse(strings.TrimPrefix(path, "/api/conversations/"))
	k.write(k.bob, func(ctx context.Context, tx *user.Tx) error {
		j, err := tx.Joined.Find(ctx, id)
		if err != nil {
			return err
		}
		j.LastSeq = seq
		_, err = tx.Joined.Save(ctx, *j, start)
		tx.Joined.NoteBehind(id, k.local.ID(k.alice), true)
		return err
	})
}

func TestTwoUsersTalkOverTheAPI(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	me, him := k.device.Identity, string(k.local.ID(k.bob))
	phone := mlstest.NewDevice(him, start)
	k.add(phone)
	k.ask(http.MethodGet, k.path, bearerToken(k.tokens[him])).want(t, 404) // bob has no copy yet
	his := k.invite()
	var got struct {
		Epoch, LastSeq int64
		Unread         int
		Members        []struct{ Actor, Role string }
	}
	k.get(his, bearerToken(k.tokens[him])).want(t, 200).decode(t, &got)
	if got.Epoch != 1 || len(got.Members) != 2 || got.Members[0].Role != "admin" {
		t.Errorf("bob sees %+v", got)
	}
	message := k.group.Message()
	first := k.post(him, his+"/messages", map[string]any{"message": message}).want(t, 201)
	if again := k.post(him, his+"/messages", map[string]any{"message": message}).want(t, 201); string(again.body) != string(first.body) || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("sent twice: %s, then %s", first.body, again.body)
	}
	k.get(k.path, bearerToken(k.tokens[me])).want(t, 200).decode(t, &got)
	if got.Unread != 1 || got.LastSeq != 2 {
		t.Errorf("alice sees %+v", got)
	}
	var log struct {
		Items []struct {
			Seq     int64
			Kind    string
			Sender  string
			Content []byte
		}
		More bool
	}
	k.get(k.path+"/log?after=1", bearerToken(k.tokens[me])).want(t, 200).decode(t, &log)
	if len(log.Items) != 1 || log.More || log.Items[0].Sender != him || string(log.Items[0].Content) != string(message) {
		t.Errorf("the log is %+v", log)
	}
	k.put(k.path+"/read", `{"seq":2}`, k.tokens[me]).want(t, 204)
	k.get(k.path, bearerToken(k.tokens[me])).want(t, 200).decode(t, &got)
	if got.Unread != 0 {
		t.Errorf("alice has %d unread after reading", got.Unread)
	}
	var list struct{ Items []struct{ ID uuid.UUID } }
	k.get("/api/conversations", bearerToken(k.tokens[him])).want(t, 200).decode(t, &list)
	if len(list.Items) != 1 || his != "/api/conversations/"+list.Items[0].ID.String() {
		t.Errorf("bob's conversations are %+v", list)
	}
	k.post(me, k.path+"/messages", map[string]any{"message": k.group.Message()}).want(t, 201)
	k.heard(his, 3)
	k.get(his+"/log?after=1", bearerToken(k.tokens[him])).want(t, 200).decode(t, &log)
	if len(log.Items) != 2 || log.Items[0].Sender != him || log.Items[1].Sender != me {
		t.Errorf("bob's log is %+v", log)
	}
	k.get(his, bearerToken(k.tokens[him])).want(t, 200).decode(t, &got)
	if got.Unread != 1 || got.LastSeq != 3 {
		t.Errorf("bob sees %+v", got)
	}
}

// The host's first message makes the engine keep the conversation in memory. Afterwards the same
// requests get the same answers, without a look into the database.
func TestAConversationAnswersTheSameAsleepAndLive(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	me, him := k.device.Identity, string(k.local.ID(k.bob))
	message := func() map[string]any { return map[string]any{"message": k.group.Message()} }
	toOne := map[string]any{"message": k.group.Message(), "to": []string{him}}
	for _, how := range []string{"asleep", "live"} {
		if got := k.post(me, k.path+"/messages", toOne); got.StatusCode != 422 || !strings.Contains(string(got.body), `"has_host"`) {
			t.Errorf("%s: a message to one member is answered with %d %s", how, got.StatusCode, got.body)
		}
		// the path is that of alice's copy
		k.post(him, k.path+"/messages", message()).want(t, 404)
		k.post(me, k.path+"/messages", message()).want(t, 201)
	}
}

func (f *fixture) put(path, body, token string) response {
	f.Helper()
	return ask(f, f.public, http.MethodPut, path, body, bearerToken(token), header("Content-Type", "application/json"))
}

func TestALostCommitIsToldWhatIsMissing(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	me := k.device.Identity
	request := func() map[string]any {
		commit, next := k.group.Commit(k.device, mlstest.Change{})
		return map[string]any{"commit": commit, "groupInfo": next.Info(k.device)}
	}
	late := request()
	winner := request()
	k.post(me, k.path+"/commits", winner).want(t, 201)
	var problem struct {
		Error        string
		Conversation struct {
			Epoch   int64
			GroupID string
			Winner  struct {
				Seq  int64
				Hash string
			}
			Missing []struct {
				Seq     int64
				Content []byte
			}
		}
	}
	k.post(me, k.path+"/commits", late).want(t, 409).decode(t, &problem)
	c := problem.Conversation
	if problem.Error != "epoch_conflict" || c.Epoch != 1 || c.GroupID != k.group.ID || len(c.Missing) != 1 || string(c.Missing[0].Content) != string(winner["commit"].([]byte)) || c.Winner.Seq != 1 || len(c.Winner.Hash) != 64 {
		t.Errorf("the refusal is %+v", problem)
	}
	var info struct {
		Epoch     int64
		GroupInfo []byte
	}
	k.get(k.path+"/group-info", bearerToken(k.tokens[me])).want(t, 200).decode(t, &info)
	if info.Epoch != 1 || string(info.GroupInfo) != string(winner["groupInfo"].([]byte)) {
		t.Errorf("the group info is of epoch %d", info.Epoch)
	}
	k.send(k.path+"/commits", string(toDoc(t, request()).JSON()), bearerToken(k.tokens[me]), header("Content-Type", "application/json")).want(t, 400) // without an idempotency key
	k.post(me, k.path+"/commits", map[string]any{"commit": "noise"}).want(t, 422)
	k.post(me, k.path+"/commits", map[string]any{"comit": "AAAA"}).want(t, 422)
	k.send(k.path+"/messages", "{}", bearerToken(k.tokens[me])).want(t, 415)
	reading := k.token(k.alice, "read")
	k.send(k.path+"/messages", "{}", bearerToken(reading), header("Content-Type", "application/json")).want(t, 403)
	k.send(k.path+"/messages", `{"message":"`+strings.Repeat("A", 8<<20)+`"}`, bearerToken(k.tokens[me]), header("Content-Type", "application/json")).want(t, 413)
}

func TestAResetOverTheAPI(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	me := k.device.Identity
	var reset struct{ GroupID string }
	k.post(me, k.path+"/reset", map[string]any{}).want(t, 202).decode(t, &reset)
	next, again := mlstest.NewGroupWith(reset.GroupID, k.device), mlstest.NewDevice(me, start)
	body := map[string]any{"groupInfo": next.Info(k.device)}
	k.post(me, k.path+"/reset", body).want(t, 201)
	if r := k.post(me, k.path+"/reset", body).want(t, 201); r.Header.Get("Idempotent-Replayed") != "true" { // the program repeats the request, because it may have lost the first answer
		t.Error("the same reset again is not answered as before")
	}
	k.post(me, k.path+"/reset", map[string]any{"groupInfo": mlstest.NewGroupWith(reset.GroupID, again).Info(again)}).want(t, 409)
	commit, grown := next.Rejoin(again, k.device)
	k.post(me, k.path+"/external-commit", map[string]any{"commit": commit, "groupInfo": grown.Info(again)}).want(t, 201)
	var got struct{ Generation, Epoch int64 }
	k.get(k.path, bearerToken(k.tokens[me])).want(t, 200).decode(t, &got)
	if got.Generation != 1 || got.Epoch != 1 {
		t.Errorf("the conversation is %+v", got)
	}
}

func TestKeyPackagesArePublishedShownAndRevoked(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	him := string(k.local.ID(k.bob))
	token := bearerToken(k.tokens[him])
	phone, last := mlstest.NewDevice(him, start), mlstest.NewDevice(him, start)
	var published struct {
		Items []struct {
			ID          uuid.UUID
			Ciphersuite string
			LastResort  bool
		}
	}
	k.post(him, "/api/keypackages", map[string]any{"keyPackages": []map[string]any{{"deviceId": "phone", "content": phone.Package}, {"deviceId": "phone", "content": last.Package, "lastResort": true}}}).
		want(t, 201).decode(t, &published)
	k.get("/api/keypackages", token).want(t, 200).decode(t, &published)
	if len(published.Items) != 2 || published.Items[0].Ciphersuite != "MLS_128_DHKEMX25519_AES128GCM_SHA256_Ed25519" {
		t.Fatalf("bob has %+v", published)
	}
	var stats struct {
		Available, LastResort int
		NeedsReplenish        bool
	}
	k.get("/api/keypackages/stats", token).want(t, 200).decode(t, &stats)
	if stats.Available != 1 || stats.LastResort != 1 || !stats.NeedsReplenish {
		t.Errorf("the stats are %+v", stats)
	}

	// The public collection shows the package of last resort.
	actor := k.get(him).want(t, 200).doc(t)
	collection := k.get(actor.Text("keyPackages")).want(t, 200).doc(t)
	items, _ := collection["items"].([]any)
	if collection.Text("type") != "Collection" || len(items) != 1 {
		t.Fatalf("the collection is %s", collection.JSON())
	}
	shown := items[0].(string)
	doc := k.get(shown).want(t, 200).doc(t)
	want := vocab.Doc{"id": shown, "type": "KeyPackage", "attributedTo": him, "mediaType": "message/mls", "encoding": "base64", "ciphersuite": "MLS_128_DHKEMX25519_AES128GCM_SHA256_Ed25519"}
	for name, value := range want {
		if doc[name] != value {
			t.Errorf("%s is %v, want %v", name, doc[name], value)
		}
	}
	for _, p := range published.Items {
		status := http.StatusNotFound
		if p.LastResort {
			status = http.StatusOK
		}
		k.get(actor.Text("keyPackages")+"/"+p.ID.String()).want(t, status)
	}
	k.get(actor.Text("keyPackages")+"/"+uuid.NewString()).want(t, 404)

	// An actor that bob follows may claim packages. When the others are used up, it gets the
	// package of last resort.
	path := strings.TrimPrefix(actor.Text("keyPackages"), origin) + "/claim"
	k.send(path, "").want(t, 401)
	claimed := func(r *http.Request) {
		r.Header.Set("Content-Type", "application/json")
		c, err := http.NewRequest(r.Method, origin+r.RequestURI, nil)
		if err == nil {
			err = signature.Sign(c, []byte("{}"), k.carolKey, signature.RFC9421, start)
		}
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range c.Header {
			r.Header[name] = v
		}
	}
	k.send(path, "{ }", claimed).want(t, 401) // the actor signed another body
	k.send(path, "{}", claimed).want(t, 403)
	k.relate(k.bob, user.Following, user.Accepted, k.carol.ID, start)
	claim := func() (content string) {
		t.Helper()
		items := k.send(path, "{}", claimed).want(t, 200).doc(t)["items"].([]any)
		return items[0].(vocab.Doc).Text("content")
	}
	if first, second := claim(), claim(); first == second || second != doc.Text("content") {
		t.Error("the second claim is not answered with the package of last resort")
	}

	ask(t, k.public, http.MethodDelete, "/api/keypackages/"+strings.TrimPrefix(shown, actor.Text("keyPackages")+"/"), "", token).want(t, 204)
	k.get(shown).want(t, 410)
	if doc := k.get(actor.Text("keyPackages")).want(t, 200).doc(t); doc["items"] != nil {
		t.Errorf("after its revocation the collection is %s", doc.JSON())
	}
}

// Row 20, PAY-01: an actor that keeps claiming packages without permission uses up only its own
// share, not the share of its server.
func TestRow20AnActorClaimsAtTheCostOfNobodyElse(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	_, eve := k.remote("https://" + k.carol.ID.Host() + "/users/eve")
	claim := func(key signature.Key) response {
		return k.send("/users/bob/keyPackages/claim", "{}", k.signedWith(key, "{}"))
	}
	for range 100 {
		claim(eve).want(t, 403)
	}
	claim(eve).want(t, 429)
	claim(k.carolKey).want(t, 403)
	if n := len(k.inbox.counted); n != 101 {
		t.Errorf("%d claims count as requests of another server, want 101", n)
	}
}

func TestConversationsAreListedInPages(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	me := k.device.Identity
	want := []uuid.UUID{k.id}
	for range 50 {
		var made struct{ ID uuid.UUID }
		k.post(me, "/api/conversations", map[string]any{"groupInfo": mlstest.NewGroup(k.device).Info(k.device)}).want(t, 201).decode(t, &made)
		want = append(want, made.ID)
	}
	slices.Reverse(want) // newest first
	var got []uuid.UUID
	var sizes []int
	for path := "/api/conversations"; path != ""; {
		var page struct {
			Items []struct{ ID uuid.UUID }
			Next  string
		}
		k.get(path, bearerToken(k.tokens[me])).want(t, 200).decode(t, &page)
		for _, c := range page.Items {
			got = append(got, c.ID)
		}
		sizes = append(sizes, len(page.Items))
		if path = ""; page.Next != "" {
			path = "/api/conversations?cursor=" + page.Next
		}
	}
	if !slices.Equal(got, want) || !slices.Equal(sizes, []int{50, 1}) {
		t.Errorf("pages of %v conversations list %v, want %v", sizes, got, want)
	}
}
