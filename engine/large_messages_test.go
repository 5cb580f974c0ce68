package engine_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// fullMessage is the size of an MLS message whose body has 15 MiB in base64.
const fullMessage = 11 << 20

// group is an MLS group without a host. dave, on another server, made the group and added alice's
// device.
type group struct {
	*siege
	dave *peertest.Actor
	mls  *mlstest.Group
}

func (s *siege) groupWithoutAHost() *group {
	s.Helper()
	g := &group{siege: s, dave: s.q.Actor("/users/dave")}
	w := &talker{user: s.alice, device: mlstest.NewDevice(s.alice.ID, time.Now())}
	w.publish(s.T)
	his := mlstest.NewDevice(string(g.dave.ID), time.Now())
	_, g.mls = mlstest.NewGroup(his).Commit(his, mlstest.Change{Add: []*mlstest.Device{w.device}})
	s.accepted(s.post(g.dave, s.home.URL+"/inbox", g.message("Welcome", g.mls.Welcome(w.device))))
	s.accepted(s.post(g.dave, s.home.URL+"/inbox", g.message("PrivateMessage", g.mls.Message())))
	return g
}

// joined lets alice's device confirm that it is in the group.
func (g *group) joined() *group {
	g.Helper()
	var all struct{ Items []struct{ ID string } }
	g.alice.Ask(g, http.MethodGet, "/api/welcomes", nil).Decode(g, &all)
	if len(all.Items) != 1 {
		g.Fatalf("alice has %d Welcomes, want dave's", len(all.Items))
	}
	a := g.alice.Ask(g, http.MethodPost, "/api/welcomes/"+all.Items[0].ID+"/confirm", map[string]any{"groupId": g.mls.ID})
	g.answered(a, http.StatusNoContent)
	return g
}

func (g *group) message(kind string, content []byte) vocab.Doc {
	return g.object(vocab.Doc{"type": kind, "mediaType": "message/mls", "encoding": "base64", "content": base64.StdEncoding.EncodeToString(content)})
}

// object returns a Create of an object by dave, for alice.
func (g *group) object(o vocab.Doc) vocab.Doc {
	g.Helper()
	name := uuid.NewString()
	o["id"], o["attributedTo"], o["to"] = g.id(g.dave, name+"-o"), string(g.dave.ID), []any{g.alice.ID}
	return vocab.Doc{"@context": vocab.MessageActivityContext(), "type": "Create", "id": g.id(g.dave, name), "actor": string(g.dave.ID), "to": o["to"], "object": o}
}

// The largest allowed MLS message reaches the devices of a user in a conversation with the
// message's sender, by either inbox.
func TestALargeMessageGoesFromTheWireToTheDevices(t *testing.T) {
	t.Parallel()
	g := newSiege(t).groupWithoutAHost()
	first := g.mls.LongMessage(fullMessage)
	g.answered(g.post(g.dave, g.alice.ID+"/inbox", g.message("PrivateMessage", first)), http.StatusRequestEntityTooLarge)
	g.joined()
	sent := g.message("PrivateMessage", first)
	g.accepted(g.post(g.dave, g.alice.ID+"/inbox", sent))
	g.accepted(g.post(g.dave, g.alice.ID+"/inbox", sent)) // the same message arrives again
	second := g.mls.LongMessage(fullMessage)
	g.accepted(g.post(g.dave, g.home.URL+"/inbox", g.message("mls:PrivateMessage", second)))

	var got [][]byte
	for after, more := int64(0), true; more; {
		var page struct {
			Items []struct {
				Number  int64
				Content []byte
			}
			More bool
		}
		g.alice.Ask(t, http.MethodGet, fmt.Sprintf("/api/mls/messages?after=%d", after), nil).Decode(t, &page)
		for _, m := range page.Items {
			after, got = m.Number, append(got, m.Content)
		}
		more = page.More && len(page.Items) > 0
	}
	if len(got) != 4 || !bytes.Equal(got[2], first) || !bytes.Equal(got[3], second) {
		t.Errorf("the devices read %d messages, want the Welcome, a short one and both large ones as they were sent", len(got))
	}
	shown := g.collection()
	if len(shown) != 4 || !slices.Equal(shown[1], sent.JSON()) {
		t.Errorf("the collection has %d activities, want 4, and a large one to the byte", len(shown))
	}
}

// collection returns the items of alice's collection of messages, newest first.
func (g *group) collection() (all [][]byte) {
	g.Helper()
	path := strings.TrimPrefix(g.alice.ID, g.home.URL) + "/messages"
	for url := path + "?page=true"; url != ""; {
		var page struct {
			OrderedItems []json.RawMessage
			Next         string
		}
		g.alice.Ask(g, http.MethodGet, url, nil).Decode(g, &page)
		for _, item := range page.OrderedItems {
			all = append(all, item)
		}
		url = strings.TrimPrefix(page.Next, g.home.URL)
	}
	return all
}

// A message is larger than the limit of bodies. It goes from the host's server to the shared inbox
// of a member's server. The member's server accepts it because it knows the host from the
// conversation.
func TestALargeMessageOfAHostReachesAMemberElsewhere(t *testing.T) {
	t.Parallel()
	a, b := enginetest.StartTwo(t, "LIGHTWEB_LIMITS_BODY=64KiB")
	host, far := newTalker(a, t, "alice"), newTalker(b, t, "carol")
	group := host.gather(t, far)
	sent := group.LongMessage(200 << 10)
	host.want(t, http.StatusCreated, host.user.Ask(t, http.MethodPost, host.path+"/messages", map[string]any{"message": sent}))
	enginetest.Eventually(t, "carol's server has the message from its inbox", func() bool {
		return slices.Equal(far.user.Column(t, `SELECT encode(content_hash, 'hex') FROM mls_inbox WHERE kind = 'application' AND activity <> ''`), []string{fmt.Sprintf("%x", sha256.Sum256(sent))})
	})
}

// The engine refuses a sender that may not send a large body before it reads the body, whatever
// the reason.
func TestALargeBodyOfAStrangerIsNotRead(t *testing.T) {
	t.Parallel()
	g := newSiege(t).groupWithoutAHost().joined()
	long := g.message("PrivateMessage", g.mls.LongMessage(fullMessage))
	unknown, known := peertest.New(t, "127.0.0.5"), g.mallory
	for name, by := range map[string]*peertest.Actor{"nobody knows": unknown.Actor("/users/mia"), "is in no conversation": known} {
		for _, inbox := range []string{g.alice.ID + "/inbox", g.home.URL + "/inbox", g.home.URL + "/users/nobody/inbox"} {
			before := g.state()
			g.answered(g.raw(g.head(by, inbox, long.JSON(), len(long.JSON()))), http.StatusRequestEntityTooLarge)
			if g.state() != before {
				t.Errorf("what an actor sends that %s left traces", name)
			}
		}
	}
	if asked := unknown.Asked(); len(asked) > 0 {
		t.Errorf("asked for %v in the name of a large body", asked)
	}
	forged := g.mallory.Keys.RSA
	forged.ID = g.dave.Keys.RSA.ID
	a := g.send(peertest.Forgery{URL: g.alice.ID + "/inbox", Body: string(long.JSON()), Key: forged, Dialect: signature.RFC9421}.Request(g))
	g.answered(a, http.StatusRequestEntityTooLarge)
}

// head returns the head of a request, with length as its Content-Length.
func (g *group) head(by *peertest.Actor, inbox string, body []byte, length int) string {
	g.Helper()
	r := peertest.Forgery{URL: inbox, Body: string(body), Key: by.Keys.RSA, Dialect: signature.RFC9421}.Request(g)
	var head bytes.Buffer
	fmt.Fprintf(&head, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n", r.URL.RequestURI(), r.URL.Host, length)
	if err := r.Header.Write(&head); err != nil {
		g.Fatal(err)
	}
	return head.String() + "\r\n"
}

// Only MLS messages may be large. All other bodies of a known sender have the usual limit. A
// larger body leaves no trace.
func TestOnlyMessagesOfMLSMayBeLarge(t *testing.T) {
	t.Parallel()
	g := newSiege(t).groupWithoutAHost().joined()
	words := strings.Repeat("x", 14<<20)
	noise := base64.StdEncoding.EncodeToString(append([]byte{0, 1, 0, 9}, make([]byte, 2<<20)...))
	others := g.message("PrivateMessage", g.mls.LongMessage(2<<20))
	others["actor"] = string(g.carol.ID)
	for name, sent := range map[string]struct {
		activity vocab.Doc
		status   int
	}{
		"a Note":                             {g.object(vocab.Doc{"type": "Note", "content": words}), 413},
		"an Article":                         {g.object(vocab.Doc{"type": "Article", "content": words}), 413},
		"a Note that calls itself a message": {g.object(vocab.Doc{"type": []any{"Note", "PrivateMessage"}, "content": words}), 400},
		"words in the open":                  {g.object(vocab.Doc{"type": "PrivateMessage", "content": words}), 400},
		"a key package":                      {g.object(vocab.Doc{"type": "KeyPackage", "encoding": "base64", "content": noise}), 413},
		"what has no header of MLS":          {g.message("PrivateMessage", append([]byte{0, 1, 0, 9}, make([]byte, 2<<20)...)), 413},
		"a message of somebody else":         {others, 413},
		"much beside the message":            {vocab.Doc{"id": g.id(g.dave, "l"), "type": "Listen", "actor": string(g.dave.ID), "to": g.alice.ID, "object": g.note, "song": words}, 413},
	} {
		g.Run(name, func(t *testing.T) {
			one := *g.siege
			one.T = t
			before := one.state()
			one.answered(one.post(g.dave, g.alice.ID+"/inbox", sent.activity), sent.status)
			if one.state() != before {
				t.Error("it left traces")
			}
		})
	}
}

// A large body must match its signature and its Content-Length.
func TestALargeBodyIsTheOneThatWasSignedFor(t *testing.T) {
	t.Parallel()
	g := newSiege(t).groupWithoutAHost().joined()
	body := string(g.message("PrivateMessage", g.mls.LongMessage(2<<20)).JSON())
	other := string(g.message("PrivateMessage", g.mls.LongMessage(2<<20)).JSON())
	before := g.state()
	forge := func(f peertest.Forgery) *http.Request {
		f.URL, f.Body, f.Key, f.Dialect = g.alice.ID+"/inbox", body, g.dave.Keys.RSA, signature.RFC9421
		return f.Request(g)
	}
	g.answered(g.send(forge(peertest.Forgery{Sent: other})), http.StatusUnauthorized)
	g.answered(g.send(forge(peertest.Forgery{After: func(r *http.Request) { r.ContentLength = -1 }})), http.StatusRequestEntityTooLarge)
	head := func(length int) string { return g.head(g.dave, g.alice.ID+"/inbox", []byte(body), length) }
	g.answeredRaw(head(len(body)-1000)+body, http.StatusUnauthorized)
	g.answeredRaw(head(len(body)+1000)+body, http.StatusBadRequest)
	g.answered(g.raw(head(16<<20+1)), http.StatusRequestEntityTooLarge)
	if g.state() != before {
		t.Error("one of them left traces")
	}
	g.accepted(g.send(forge(peertest.Forgery{})))
}

// Many large messages at once use the memory of a few, and other senders are served. The engine
// tells a peer to come again. The peer receives that answer even if it reads no answer before it
// has sent everything.
func TestManyLargeMessagesTakeTheMemoryOfAFew(t *testing.T) {
	t.Parallel()
	g := newSiege(t).groupWithoutAHost().joined()
	bodies := make([][]byte, 20)
	for n := range bodies {
		bodies[n] = g.message("PrivateMessage", g.mls.LongMessage(8<<20)).JSON() // all bodies together are as large as a domain may have stored in a day
	}
	send := func(body []byte) enginetest.Answer {
		conn := g.dial()
		defer conn.Close()
		if _, err := io.WriteString(conn, g.head(g.dave, g.home.URL+"/inbox", body, len(body))+string(body)); err != nil {
			g.Errorf("the engine hung up: %v", err)
		}
		return g.answer(conn)
	}
	taken, busy := 0, 0
	var mu sync.Mutex
	g.floodWithin(float64(policy.Memory.Pool), "20 messages of 11 MiB", func() {
		var all sync.WaitGroup
		for n := range bodies {
			all.Go(func() {
				a := send(bodies[n])
				g.answered(a, http.StatusAccepted, http.StatusServiceUnavailable)
				mu.Lock()
				defer mu.Unlock()
				if a.Status == http.StatusAccepted {
					taken++
				} else {
					busy++
				}
			})
		}
		for range 10 {
			g.accepted(g.post(g.carol, g.alice.ID+"/inbox", g.create(g.carol, uuid.NewString())))
		}
		all.Wait()
	})
	t.Logf("%d were taken, and %d asked to come again", taken, busy)
	if taken == 0 {
		t.Error("none was taken")
	}
	for _, b := range bodies[:3] { // the peer's server sends the refused messages again
		g.accepted(send(b))
	}
}
