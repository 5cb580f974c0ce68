package engine_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/mls"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// brokenMemory is how many bytes of memory the engine may use for thousands of broken messages
// while they arrive.
const brokenMemory = 64 << 20

// Row 13 of docs/conversations.md, Cases and their tests. Thousands of broken MLS messages are
// sent to every route that accepts messages: by clients, by the server of a member, and to inboxes.
// They are cut off, have forged lengths, have bytes after their end, are of another kind, or are
// huge. The engine refuses all of them with 4xx, or drops those that come to an inbox. Its memory
// does not grow, and the conversations continue in their epochs.
func TestRow13BrokenMessagesAreRefusedOnEveryRoute(t *testing.T) {
	t.Parallel()
	b := newBrokenScene(newSiege(t, "LIGHTWEB_LIMITS_INBOX_RATE=off"))
	routes := slices.Concat(b.clientRoutes(), b.peerRoutes(), b.inboxRoutes())
	answers := map[string]map[int]int{}
	var mu sync.Mutex
	send := func(r messageRoute, broken []byte) {
		a := r.send(broken)
		mu.Lock()
		defer mu.Unlock()
		if answers[r.name] == nil {
			answers[r.name] = map[int]int{}
		}
		answers[r.name][a.Status]++
		if !r.isRefused(a.Status) && !(isHuge(broken) && (a.Status == http.StatusServiceUnavailable || a.Status == 0)) {
			t.Errorf("%x as %s is answered %d %s", broken[:min(len(broken), 2000)], r.name, a.Status, a.Body)
		}
	}
	b.floodWithin(brokenMemory, "3,000 broken messages", func() {
		b.at32(3000, func(n int) {
			random := rand.New(rand.NewPCG(13, uint64(n)))
			r, other := routes[n%len(routes)], routes[random.IntN(len(routes))]
			if kindOf(r.whole) != kindOf(other.whole) && random.IntN(5) == 0 {
				send(r, other.whole)
			} else {
				send(r, breakMessage(random, r.whole, r.signed))
			}
		})
	})
	b.floodWithin(floodMemory, "60 huge messages", func() {
		b.at32(60, func(n int) {
			r := routes[n%len(routes)]
			send(r, slices.Concat(r.whole, make([]byte, 4<<20)))
		})
	})
	for _, r := range routes {
		t.Logf("%s is answered %v", r.name, answers[r.name])
	}
	b.goesOn(routes)
}

// messageRoute is a field of a request that holds an MLS message.
type messageRoute struct {
	name   string
	whole  []byte
	signed int                                    // how many of the first bytes the server checks for changes
	send   func(message []byte) enginetest.Answer // sends the request with the message in the field
	drops  bool                                   // it may answer 202 to a broken message
	isUsed bool                                   // the whole message is sent after the broken ones
}

func (r messageRoute) isRefused(status int) bool {
	return status >= 400 && status < 500 && status != http.StatusTooManyRequests || r.drops && status == http.StatusAccepted
}

// brokenScene has three conversations of holly and dora, whose server is another one. holly hosts
// the first, to which nora is to be added, and the second, whose reset is pending. dora hosts the
// third.
type brokenScene struct {
	*siege
	host, near *talker
	dora       *peertest.Actor
	phone      *mlstest.Device // dora's
	group      *mlstest.Group
	pending    *talker // holly in the second conversation
	next       string  // the MLS group with which the second conversation goes on
	copy       *talker // holly in the third conversation
	away       *mlstest.Group
	awayURI    string
	before     []conversation // the states of the three
}

func newBrokenScene(s *siege) *brokenScene {
	t := s.T
	b := &brokenScene{siege: s, host: newTalker(s.home, t, "holly"), near: newTalker(s.home, t, "nora"), dora: s.q.Actor("/users/dora")}
	befriend(t, b.near.user, b.host.user)
	b.dora.Doc["lw:mls"] = vocab.Doc{"deliveryVersion": 1}
	b.dora.Show()
	b.phone = mlstest.NewDevice(string(b.dora.ID), time.Now())
	makeOne := func() (*talker, *mlstest.Group) {
		w := *b.host
		group, _ := w.commit(t, w.host(t), mlstest.Change{Add: []*mlstest.Device{b.phone}})
		return &w, group
	}
	b.host, b.group = makeOne()
	b.host.claim(t, b.near)
	b.pending, _ = makeOne()
	var asked struct{ GroupID string }
	b.pending.want(t, http.StatusAccepted, b.pending.user.Ask(t, http.MethodPost, b.pending.path+"/reset", map[string]any{})).Decode(t, &asked)
	b.next = asked.GroupID
	_, b.away = mlstest.NewGroup(b.phone).Commit(b.phone, mlstest.Change{Add: []*mlstest.Device{b.host.device}})
	b.awayURI = string(b.dora.ID) + "/conversations/" + uuid.NewString()
	b.accepted(b.post(b.dora, b.host.user.ID+"/inbox", b.add("Welcome", b.away.Welcome(b.host.device))))
	joins := *b.host
	b.copy = &joins
	b.copy.join(t)
	b.before = b.states()
	return b
}

func (b *brokenScene) states() (all []conversation) {
	b.Helper()
	for _, w := range []*talker{b.host, b.pending, b.copy} {
		var c conversation
		w.want(b.T, http.StatusOK, w.user.Ask(b, http.MethodGet, w.path, nil)).Decode(b, &c)
		all = append(all, c)
	}
	return all
}

// change is a commit with all that a request needs beside it.
type change struct{ commit, info, welcome []byte }

func (c change) body() map[string]any {
	body := map[string]any{"commit": c.commit, "groupInfo": c.info}
	if c.welcome != nil {
		body["welcomes"] = [][]byte{c.welcome}
	}
	return body
}

func changeBy(g *mlstest.Group, by, added *mlstest.Device) change {
	commit, next := g.Commit(by, mlstest.Change{Add: []*mlstest.Device{added}})
	return change{commit, next.Info(by), next.Welcome(added)}
}

// routesOf returns the routes of a conversation: for a commit that adds a device, for an external
// commit of the device by, for a message, and for the GroupInfo with which by ends a reset.
func (b *brokenScene) routesOf(by string, device, added *mlstest.Device, ask func(w *talker, part string, body map[string]any) enginetest.Answer) []messageRoute {
	joins, rejoined := b.group.Rejoin(device, device)
	adds, back := changeBy(b.group, device, added), change{joins, rejoined.Info(device), nil}
	info := mlstest.NewGroupWith(b.next, device).Info(device)
	in := func(part string, c change, set func(c *change, message []byte)) func([]byte) enginetest.Answer {
		return func(message []byte) enginetest.Answer {
			broken := c
			set(&broken, message)
			return ask(b.host, part, broken.body())
		}
	}
	setCommit, setInfo := func(c *change, m []byte) { c.commit = m }, func(c *change, m []byte) { c.info = m }
	return []messageRoute{
		{name: by + "commit", whole: adds.commit, signed: len(adds.commit) - tags, send: in("/commits", adds, setCommit)},
		{name: by + "GroupInfo", whole: adds.info, signed: len(adds.info), send: in("/commits", adds, setInfo)},
		{name: by + "Welcome", whole: adds.welcome, send: in("/commits", adds, func(c *change, m []byte) { c.welcome = m })},
		{name: by + "external commit", whole: joins, signed: len(joins) - tags, send: in("/external-commit", back, setCommit)},
		{name: by + "GroupInfo of an external commit", whole: back.info, signed: len(back.info), send: in("/external-commit", back, setInfo)},
		{name: by + "message", whole: b.group.Message(), isUsed: true, send: func(m []byte) enginetest.Answer {
			return ask(b.host, "/messages", map[string]any{"message": m})
		}},
		{name: by + "GroupInfo of a reset", whole: info, signed: len(info), send: func(m []byte) enginetest.Answer {
			return ask(b.pending, "/reset", map[string]any{"groupInfo": m})
		}},
	}
}

func (b *brokenScene) clientRoutes() []messageRoute {
	info := mlstest.NewGroup(b.host.device).Info(b.host.device)
	other := mlstest.NewDevice(b.host.user.ID, time.Now())
	routes := b.routesOf("holly's ", b.host.device, b.near.device, func(w *talker, part string, body map[string]any) enginetest.Answer {
		return w.user.AskOnce(b, http.MethodPost, w.path+part, uuid.NewString(), body)
	})
	routes[0].isUsed, routes[len(routes)-1].isUsed = true, true // the commit and the reset
	return append(routes, []messageRoute{
		{name: "GroupInfo of a conversation", whole: info, signed: len(info), isUsed: true, send: func(m []byte) enginetest.Answer {
			return b.host.user.Ask(b, http.MethodPost, "/api/conversations", map[string]any{"groupInfo": m})
		}},
		{name: "key package", whole: other.Package, signed: len(other.Package), isUsed: true, send: func(m []byte) enginetest.Answer {
			return b.host.user.Ask(b, http.MethodPost, "/api/keypackages", map[string]any{"keyPackages": []any{map[string]any{"deviceId": uuid.NewString(), "content": m}}})
		}},
		{name: "SendMessage", whole: b.group.Message(), isUsed: true, send: func(m []byte) enginetest.Answer {
			return b.host.user.Try(b, "SendMessage", map[string]any{"conversationId": idOf(b.host), "content": base64.StdEncoding.EncodeToString(m)})
		}},
	}...)
}

// peerRoutes returns the routes that dora's server uses, under dora's signature.
func (b *brokenScene) peerRoutes() []messageRoute {
	return b.routesOf("dora's ", b.phone, mlstest.NewDevice(string(b.dora.ID), time.Now()), func(w *talker, part string, body map[string]any) enginetest.Answer {
		content, err := json.Marshal(body)
		if err != nil {
			b.Fatal(err)
		}
		return b.siege.send(peertest.Forgery{URL: w.user.ID + "/conversations/" + idOf(w) + part, Body: string(content), Key: b.dora.Keys.RSA, Dialect: signature.RFC9421, After: func(r *http.Request) {
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Idempotency-Key", uuid.NewString())
		}}.Request(b))
	})
}

// inboxRoutes returns the routes of dora's activities to holly's inbox.
func (b *brokenScene) inboxRoutes() []messageRoute {
	types := []string{"PrivateMessage", "PublicMessage", "Welcome", "GroupInfo"}
	inbox := func(write func(m []byte) vocab.Doc) func([]byte) enginetest.Answer {
		return func(m []byte) enginetest.Answer { return b.post(b.dora, b.host.user.ID+"/inbox", write(m)) }
	}
	return []messageRoute{
		{name: "message in a Create", whole: b.group.Message(), drops: true, isUsed: true, send: inbox(func(m []byte) vocab.Doc {
			return b.activity("Create", types[len(m)%len(types)], m)
		})},
		{name: "message in an Add", whole: b.away.Message(), isUsed: true, send: inbox(func(m []byte) vocab.Doc { return b.add("PrivateMessage", m) })},
		{name: "Welcome in an Add", whole: b.away.Welcome(b.host.device), send: inbox(func(m []byte) vocab.Doc { return b.add("Welcome", m) })},
	}
}

// activity returns an activity of dora's for holly, whose object holds an MLS message.
func (b *brokenScene) activity(kind, objectKind string, message []byte) vocab.Doc {
	name, to := string(b.dora.ID)+"/"+uuid.NewString(), []any{b.host.user.ID}
	return vocab.Doc{"@context": vocab.MessageActivityContext(), "type": kind, "id": name, "actor": string(b.dora.ID), "to": to, "object": vocab.Doc{"type": objectKind, "id": name + "-o",
		"attributedTo": string(b.dora.ID), "to": to, "mediaType": "message/mls", "encoding": "base64", "content": base64.StdEncoding.EncodeToString(message)}}
}

// add returns the Add by which dora, as the host, puts a message or a Welcome into the third
// conversation.
func (b *brokenScene) add(kind string, message []byte) vocab.Doc {
	d := b.activity("Add", kind, message)
	labels := vocab.Doc{"seq": 2, "mlsGroupId": b.away.ID, "mlsEpoch": b.away.Epoch, "mlsGeneration": 0}
	if kind == "Welcome" {
		labels["seq"], labels["keyPackageRef"] = 1, base64.StdEncoding.EncodeToString(b.host.device.Ref)
	}
	d["target"], d.Sub("object")["lwMetadata"] = b.awayURI, labels
	d["lwMetadata"] = vocab.Doc{"status": "active", "members": []any{vocab.Doc{"id": string(b.dora.ID), "role": "admin"}, vocab.Doc{"id": b.host.user.ID, "role": "member"}}}
	return d
}

// goesOn checks that the broken messages changed no conversation, and that the whole ones are
// accepted.
func (b *brokenScene) goesOn(routes []messageRoute) {
	b.settle()
	if after := b.states(); !reflect.DeepEqual(after, b.before) {
		b.Errorf("the conversations were %+v, and are %+v", b.before, after)
	}
	for _, r := range routes {
		if r.isUsed {
			b.answered(r.send(r.whole), http.StatusCreated, http.StatusAccepted)
		}
	}
	b.settle()
	after := b.states()
	// a commit and four messages; a reset; a message
	for n, want := range []struct{ epoch, entries int64 }{{2, 5}, {0, 0}, {1, 1}} {
		if got := after[n]; got.Epoch != want.epoch || got.LastSeq != b.before[n].LastSeq+want.entries {
			b.Errorf("conversation %d is %+v after %+v", n+1, got, b.before[n])
		}
	}
	b.near.join(b.T)
}

func idOf(w *talker) string { return strings.TrimPrefix(w.path, "/api/conversations/") }

// tags is the number of bytes at the end of a commit that only members can check: the confirmation
// tag and the membership tag, each with its length (RFC 9420 §6.2).
const tags = 2 * (1 + 32)

// breakMessage returns a message that is cut off, has bytes after its end, or has a forged length.
// The forged length is among the first bytes; the parameter signed says how many.
func breakMessage(random *rand.Rand, whole []byte, signed int) []byte {
	switch random.IntN(4) {
	case 0:
		return slices.Concat(whole, bytes.Repeat([]byte{byte(random.Uint32())}, 1+random.IntN(100)))
	case 1, 2:
		if signed > 4 {
			broken := slices.Clone(whole)
			forged := []uint32{0xbfffffff, 0xffffffff, 0, 0x7fff7fff}
			binary.BigEndian.PutUint32(broken[random.IntN(signed-4):], forged[random.IntN(len(forged))])
			if !bytes.Equal(broken, whole) {
				return broken
			}
		}
	}
	return whole[:random.IntN(len(whole))]
}

// isHuge reports whether a message is so large that the engine may answer 503, or hang up while the
// client still sends it (status 0).
func isHuge(broken []byte) bool { return len(broken) > 1<<20 }

// kindOf returns the kind of a whole message.
func kindOf(whole []byte) string {
	if _, err := mls.ParseKeyPackage(whole); err == nil {
		return "key package"
	}
	h, err := mls.ReadHeader(whole)
	return fmt.Sprint(h.WireFormat, h.ContentType, err)
}
