package server_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// arrive stores a Create of a message in bob's database, as bob's inbox does.
func (k *talk) arrive(from string, kind string, content []byte, more vocab.Doc) conversation.Outcome {
	k.Helper()
	return k.arriveTold(from, kind, content, more, nil)
}

// arriveTold is like arrive. The function tells() decides which events are added.
func (k *talk) arriveTold(from string, kind string, content []byte, more vocab.Doc, tells func(trust string) bool) conversation.Outcome {
	k.Helper()
	object := vocab.Doc{"type": kind, "id": from + "/objects/" + uuid.NewString(), "attributedTo": from, "to": []any{string(k.local.ID(k.bob))}, "mediaType": "message/mls", "encoding": "base64",
		"content": base64.StdEncoding.EncodeToString(content)}
	for name, v := range more {
		object[name] = v
	}
	raw := vocab.Doc{"type": "Create", "id": from + "/activities/" + uuid.NewString(), "actor": from, "to": object["to"], "instrument": "urn:uuid:client", "object": object}.JSON()
	a, err := vocab.ParseActivity(raw)
	if err != nil {
		k.Fatal(err)
	}
	var o conversation.Outcome
	k.write(k.bob, func(ctx context.Context, tx *user.Tx) (err error) {
		o, err = conversation.Orderer{}.ReceiveForeign(ctx, tx, conversation.Arrival{Me: k.local.ID(k.bob), Activity: a, Sender: &vocab.Actor{ID: vocab.ID(from)}, Now: start, Tells: tells})
		return err
	})
	return o
}

// bobsDevice returns a device of bob's, which has published a key package.
func (k *talk) bobsDevice() *mlstest.Device {
	k.Helper()
	him := string(k.local.ID(k.bob))
	mine := mlstest.NewDevice(him, start)
	k.post(him, "/api/keypackages", map[string]any{"keyPackages": []any{map[string]any{"deviceId": "phone", "content": mine.Package}}}).want(k.T, 201)
	return mine
}

// groupOf returns a group that a device of the actor from has begun, after it has added a device.
func groupOf(from string, added *mlstest.Device) (g *mlstest.Group, began *mlstest.Device) {
	began = mlstest.NewDevice(from, start)
	_, g = mlstest.NewGroup(began).Commit(began, mlstest.Change{Add: []*mlstest.Device{added}})
	return g, began
}

// carol began a group with another program, so the group has no host. bob joins by a Welcome, and
// his device tells the engine the id of the group.
func TestAGroupWithoutAHost(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	him, from := string(k.local.ID(k.bob)), string(k.carol.ID)
	mine := k.bobsDevice()
	g, _ := groupOf(from, mine)
	early := g.Message()
	if o := k.arrive(from, "PrivateMessage", early, nil); !o.Kept || o.Reason != conversation.UnknownGroup {
		t.Errorf("a message before its Welcome: %+v", o)
	}
	if o := k.arrive(from, "Welcome", g.Welcome(mine), vocab.Doc{"context": nil, "topology": "Star"}); !o.Kept {
		t.Errorf("the Welcome: %+v", o)
	}
	var list struct {
		Items []struct {
			ID             uuid.UUID
			ConversationID *uuid.UUID
			Sender         string
		}
	}
	k.get("/api/welcomes", bearerToken(k.tokens[him])).want(t, 200).decode(t, &list)
	if len(list.Items) != 1 || list.Items[0].ConversationID != nil || list.Items[0].Sender != from {
		t.Fatalf("the welcomes are %+v", list)
	}
	confirm := "/api/welcomes/" + list.Items[0].ID.String() + "/confirm"
	for range 2 {
		k.post(him, confirm, map[string]any{"groupId": g.ID}).want(t, 204)
	}
	if o := k.arrive(from, "GroupInfo", g.PrivateCommit(), nil); !o.Kept || o.Reason != "" {
		t.Errorf("a commit: %+v", o)
	}
	var all struct{ Items []struct{ ID uuid.UUID } }
	k.get("/api/conversations", bearerToken(k.tokens[him])).want(t, 200).decode(t, &all)
	if len(all.Items) != 1 {
		t.Fatalf("bob's conversations are %+v", all)
	}
	var log struct {
		Items []struct {
			Kind    string
			Content []byte
		}
	}
	k.get("/api/conversations/"+all.Items[0].ID.String()+"/log", bearerToken(k.tokens[him])).want(t, 200).decode(t, &log)
	if len(log.Items) != 2 || string(log.Items[0].Content) != string(early) || log.Items[1].Kind != "commit" {
		t.Errorf("the log is %+v", log)
	}
}

// PAY-01: the actors of one domain leave room for actors of other domains. That holds for
// invitations and for messages that wait for the Welcome to their group.
func TestADomainLeavesRoomForTheInvitationsOfOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("it sends many of what others send a few of")
	}
	t.Parallel()
	k := newTalk(t)
	mine := k.bobsDevice()
	invite := func(from string) {
		g, _ := groupOf(from, mine)
		k.arrive(from, "Welcome", g.Welcome(mine), nil)
		k.arrive(from, "PrivateMessage", g.Message(), nil)
	}
	count := func() (n int) {
		k.write(k.bob, func(ctx context.Context, tx *user.Tx) error {
			all, err := tx.Joined.CountInvitations(ctx)
			for _, w := range all {
				n += w.N
			}
			return err
		})
		return n
	}
	for n := range 60 {
		invite("https://" + strconv.Itoa(n) + ".crowd.example/users/eve")
	}
	for range 22 {
		invite("https://one.example/users/eve")
	}
	if n := count(); n != 50+20 {
		t.Errorf("%d invitations wait of a crowd and of one, want 70", n)
	}
	waiting := func(from string) conversation.Outcome {
		hers := mlstest.NewDevice(from, start)
		return k.arrive(from, "PrivateMessage", mlstest.NewGroup(hers).Message(), nil)
	}
	kept := 0
	for n := range 200 {
		if waiting("https://" + strconv.Itoa(n) + ".queue.example/users/eve").Kept {
			kept++
		}
	}
	if o := waiting(string(k.carol.ID)); kept != 150 || !o.Kept {
		t.Errorf("%d messages of one domain wait, want 150, and of another one %+v", kept, o)
	}

	for n := range 200 {
		invite("https://" + strconv.Itoa(n) + ".crowd" + strconv.Itoa(n%4) + ".example/users/eve")
	}
	for n := range 600 {
		waiting("https://" + strconv.Itoa(n) + ".queue" + strconv.Itoa(n%5) + ".example/users/eve")
	}
	if n, o := count(), waiting("https://stranger.example/users/eve"); n != 200 || o.Kept {
		t.Fatalf("%d invitations wait in all, want 200, and one message more: %+v", n, o)
	}
	const friend = "https://friend.example/users/dan"
	k.write(k.bob, func(ctx context.Context, tx *user.Tx) error {
		return tx.Relationships.Set(ctx, user.Relationship{Actor: friend, Type: user.FriendOf, Status: user.Accepted, Activity: friend + "/offers/1", Direction: user.Inbound}, start)
	})
	invite(friend)
	if n, o := count(), waiting(friend); n != 201 || !o.Kept {
		t.Errorf("%d invitations wait with that of a friend, want 201, and a message of the friend: %+v", n, o)
	}
}

// began adds bob to a group without a host. carol began the group.
func (k *talk) began() (path string, g *mlstest.Group, hers, mine *mlstest.Device) {
	k.Helper()
	him, from := string(k.local.ID(k.bob)), string(k.carol.ID)
	mine = k.bobsDevice()
	g, hers = groupOf(from, mine)
	k.arrive(from, "Welcome", g.Welcome(mine), nil)
	k.arrive(from, "PrivateMessage", g.Message(), nil)
	var list struct{ Items []struct{ ID uuid.UUID } }
	k.get("/api/conversations", bearerToken(k.tokens[him])).want(k.T, 200).decode(k.T, &list)
	if len(list.Items) != 1 {
		k.Fatalf("bob's conversations are %+v", list)
	}
	return "/api/conversations/" + list.Items[0].ID.String(), g, hers, mine
}

func TestMessagesOfAGroupWithoutAHostGoToThoseThatAreNamed(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	path, g, _, mine := k.began()
	him, from := string(k.local.ID(k.bob)), string(k.carol.ID)
	message := g.Message()
	k.post(him, path+"/messages", map[string]any{"message": message}).want(t, 422) // the request names no recipient
	body := map[string]any{"message": message, "to": []any{from, string(k.local.ID(k.alice))}}
	first := k.post(him, path+"/messages", body).want(t, 201)
	again := k.post(him, path+"/messages", body).want(t, 201)
	if string(first.body) != string(again.body) || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("sent twice: %s, then %s", first.body, again.body)
	}
	k.post(him, path+"/commits", map[string]any{"commit": g.PrivateCommit(), "to": []any{from}}).want(t, 201)
	open, _ := g.Commit(mine, mlstest.Change{})
	k.post(him, path+"/commits", map[string]any{"commit": open, "to": []any{from}}).want(t, 422)
	k.post(him, path+"/messages", map[string]any{"message": k.group.Message(), "to": []any{from}}).want(t, 400)
	var log struct {
		Items []struct{ Kind, Sender string }
	}
	k.get(path+"/log", bearerToken(k.tokens[him])).want(t, 200).decode(t, &log)
	if len(log.Items) != 3 || log.Items[0].Sender != from || log.Items[1].Sender != him || log.Items[2].Kind != "commit" {
		t.Errorf("the log is %+v", log)
	}
	var bodies []string
	k.write(k.bob, func(ctx context.Context, tx *user.Tx) error {
		all, err := tx.Messages.ListNewest(ctx, 0, 10, 1<<20)
		for _, e := range all {
			bodies = append(bodies, conversation.JoinContent(e))
		}
		return err
	})
	var sent struct {
		Type    string
		Context string
		Object  struct {
			Type, Content, Conversation string
			To                          []string
		}
	}
	if err := json.Unmarshal([]byte(bodies[1]), &sent); err != nil {
		t.Fatal(err)
	}
	if sent.Type != "Create" || sent.Object.Type != "PrivateMessage" || sent.Context != g.ID || sent.Object.Content != base64.StdEncoding.EncodeToString(message) || len(sent.Object.To) != 2 {
		t.Errorf("what was sent is %+v", sent)
	}
}

// A stranger has learned a group's id and sends a message with it. That does not make the stranger
// a member. An actor becomes a member if a member's message names it, or if bob's device writes to
// it.
func TestAStrangersMessageMakesNoMember(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	path, g, _, _ := k.began()
	him, from := string(k.local.ID(k.bob)), string(k.carol.ID)
	const eve, dan = "https://stranger.example/users/eve", "https://friend.example/users/dan"
	check := func(when string, want ...string) {
		t.Helper()
		var members []string
		k.write(k.bob, func(ctx context.Context, tx *user.Tx) error {
			all, err := tx.Conversations.ListMembers(ctx, uuid.MustParse(path[strings.LastIndexByte(path, '/')+1:]))
			for _, m := range all {
				members = append(members, string(m.Actor))
			}
			return err
		})
		slices.Sort(members)
		slices.Sort(want)
		if !slices.Equal(members, want) {
			t.Errorf("%s the members are %q, want %q", when, members, want)
		}
	}
	check("at first", him, from)
	if o := k.arrive(eve, "PrivateMessage", g.Message(), nil); !o.Kept { // the devices will find that they cannot read it
		t.Errorf("a stranger's message: %+v", o)
	}
	check("after a stranger's message", him, from)
	k.arrive(from, "PrivateMessage", g.Message(), vocab.Doc{"to": []any{him, dan, from, dan}})
	check("after a member's message", him, from, dan)
	alice := string(k.local.ID(k.alice))
	k.post(him, path+"/messages", map[string]any{"message": g.Message(), "to": []any{from, alice}}).want(t, 201)
	check("after bob's message", him, from, dan, alice)

	if _, err := dbtest.SQL(t, k.store, k.bob).ExecContext(t.Context(), `DELETE FROM conversation_members WHERE actor_uri <> $1`, him); err != nil { // older releases stored no members
		t.Fatal(err)
	}
	k.arrive(eve, "PrivateMessage", g.Message(), nil)
	check("before the inviter writes", him)
	k.arrive(from, "PrivateMessage", g.Message(), vocab.Doc{"to": []any{him, dan}})
	check("after the inviter's message", him, from, dan)
}

// An actor who only knows a group's id is a stranger to the group. Its events use the budget of
// strangers, its commits do not change the epoch, and at most 50 of its messages are kept.
func TestAnOutsidersMessagesAreAStrangers(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	path, g, _, _ := k.began()
	him, from := string(k.local.ID(k.bob)), string(k.carol.ID)
	var list struct{ Items []struct{ ID uuid.UUID } }
	k.get("/api/welcomes", bearerToken(k.tokens[him])).want(t, 200).decode(t, &list)
	k.post(him, "/api/welcomes/"+list.Items[0].ID.String()+"/confirm", map[string]any{"groupId": g.ID}).want(t, 204)
	var told []string
	tells := func(trust string) bool {
		told = append(told, trust)
		return false
	}
	const eve = "https://stranger.example/users/eve"
	k.arriveTold(from, "PrivateMessage", g.Message(), nil, tells)
	if len(told) == 0 || slices.Contains(told, "stranger") {
		t.Errorf("a member's message is told with trust %q", told)
	}
	epoch := func() (at struct{ Epoch int64 }) {
		k.get(path, bearerToken(k.tokens[him])).want(t, 200).decode(t, &at)
		return at
	}
	before := epoch()
	for n := range 50 {
		told = nil
		message := g.Message()
		if n == 0 {
			message = g.PrivateCommit()
		}
		if o := k.arriveTold(eve, "PrivateMessage", message, nil, tells); !o.Kept {
			t.Fatalf("message %d of an outsider: %+v", n+1, o)
		}
		if len(told) == 0 || slices.ContainsFunc(told, func(trust string) bool { return trust != "stranger" }) {
			t.Fatalf("message %d of an outsider is told with trust %q", n+1, told)
		}
	}
	if after := epoch(); after != before {
		t.Errorf("an outsider's commit moves the epoch from %d to %d", before.Epoch, after.Epoch)
	}
	if o := k.arriveTold(eve, "PrivateMessage", g.Message(), nil, tells); o.Kept || o.Reason != conversation.TooMany {
		t.Errorf("the 51st message of an outsider: %+v", o)
	}
	if o := k.arriveTold(from, "PrivateMessage", g.Message(), nil, tells); !o.Kept {
		t.Errorf("a member's message beside them: %+v", o)
	}
}

// The messages collection shows received activities byte for byte, and only to their recipient.
func TestTheMessagesCollectionShowsWhatCame(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	_, g, _, _ := k.began()
	him := string(k.local.ID(k.bob))
	k.arrive(string(k.carol.ID), "PrivateMessage", g.Message(), vocab.Doc{"mlsSignature": "AA", "summary": "Encrypted <message>."})
	path := strings.TrimPrefix(him, origin) + "/messages"
	k.get(path).want(t, 401)
	k.get(path, bearerToken(k.tokens[string(k.local.ID(k.alice))])).want(t, 403)
	head := k.get(path, bearerToken(k.tokens[him])).want(t, 200).doc(t)
	if n, _ := head.Count("totalItems"); n != 3 || head.Text("type") != "OrderedCollection" {
		t.Errorf("the collection is %s", head.JSON())
	}
	page := k.get(strings.TrimPrefix(head.Text("first"), origin), bearerToken(k.tokens[him])).want(t, 200)
	items := page.doc(t).Subs("orderedItems")
	if len(items) != 3 || items[0].Text("instrument") != "urn:uuid:client" || items[0].Sub("object").Text("mlsSignature") != "AA" || items[2].Sub("object").Text("type") != "Welcome" {
		t.Errorf("the page is %s", page.body)
	}
	if !strings.Contains(string(page.body), `"summary":"Encrypted <message>."`) {
		t.Errorf("the page does not hold the bytes that came: %s", page.body)
	}
}

// Fixture F7. Each claim asks the other actor's server for a package. It skips packages that are
// forged or valid for too long. A Lightweb server has an endpoint for claims; other servers have a
// collection.
func TestKeyPackagesOfOthersAreAskedForEachTime(t *testing.T) {
	t.Parallel()
	for name, lightweb := range map[string]bool{"a server of this kind": true, "another one": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newTalk(t)
			p := peertest.New(t, "127.0.0.2")
			dora := p.Actor("/users/dora")
			at := string(dora.ID) + "/keyPackages"
			dora.Doc["keyPackages"] = at
			if lightweb {
				dora.Doc["lw:mls"] = vocab.Doc{"deliveryVersion": 1, "ciphersuites": []any{1}, "custody": "client"}
			}
			dora.Show()
			good, forged := mlstest.NewDevice(string(dora.ID), start), mlstest.NewDevice(string(dora.ID)+"x", start)
			late := mlstest.NewDeviceUntil(string(dora.ID), start, start.AddDate(2, 0, 0))
			item := func(d *mlstest.Device) vocab.Doc {
				return vocab.Doc{"id": at + "/" + uuid.NewString(), "type": "KeyPackage", "attributedTo": d.Identity, "mediaType": "message/mls", "encoding": "base64", "content": base64.StdEncoding.EncodeToString(d.Package)}
			}
			one := item(good)
			path := strings.TrimPrefix(one.Text("id"), p.Origin)
			p.Serve(path, one.JSON())
			asked := 0
			p.Handle("/users/dora/keyPackages/claim", func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", vocab.ActivityJSON)
				_, _ = w.Write(vocab.Doc{"type": "Collection", "items": []any{item(forged), one, item(late)}}.JSON()) // the client may have hung up
			})
			p.Handle("/users/dora/keyPackages", func(w http.ResponseWriter, r *http.Request) {
				asked++
				doc := vocab.Doc{"id": at, "type": "OrderedCollection", "first": at + "?page=1"}
				switch r.URL.Query().Get("page") {
				case "1":
					doc = vocab.Doc{"type": "OrderedCollectionPage", "orderedItems": []any{item(forged), item(late)}, "next": at + "?page=2"}
				case "2":
					doc = vocab.Doc{"type": "OrderedCollectionPage", "orderedItems": one.Text("id")}
				}
				_, _ = w.Write(doc.JSON()) // the client may have hung up
			})
			for range 2 {
				var got struct {
					Items []struct{ Content []byte }
				}
				k.post(k.device.Identity, "/api/keypackages/claim", map[string]any{"actor": string(dora.ID)}).want(t, 200).decode(t, &got)
				if len(got.Items) != 1 || string(got.Items[0].Content) != string(good.Package) {
					t.Errorf("the packages are %+v, want the good one", got)
				}
			}
			if want := 6; !lightweb && asked != want {
				t.Errorf("the collection was asked for %d times, want %d: nothing is kept", asked, want)
			}
		})
	}
}

// If a collection has no valid key package, the engine reads at most 100 of its items.
func TestACollectionOfJunkIsNotReadToItsEnd(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	p := peertest.New(t, "127.0.0.2")
	dora := p.Actor("/users/dora")
	at := p.Origin + "/users/dora/keyPackages"
	dora.Doc["keyPackages"] = at
	dora.Show()
	var items []any
	for n := range 1000 {
		items = append(items, at+"/"+strconv.Itoa(n))
	}
	p.Serve("/users/dora/keyPackages", vocab.Doc{"id": at, "type": "Collection", "items": items}.JSON())
	var asked atomic.Int32
	for n := range 1000 {
		p.Handle("/users/dora/keyPackages/"+strconv.Itoa(n), func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			_, _ = w.Write([]byte(`{"type":"KeyPackage"}`)) // the client may have hung up
		})
	}
	k.post(k.device.Identity, "/api/keypackages/claim", map[string]any{"actor": string(dora.ID)}).want(t, 404)
	if n := asked.Load(); n == 0 || n > 100 {
		t.Errorf("%d items were read, want 100 at most", n)
	}
}
