package server_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// away is a conversation whose host, dora, is on another server. bob is a member.
type away struct {
	*talk
	peer  *peertest.Peer
	host  *mlstest.Device
	mine  *mlstest.Device
	uri   string // the conversation's path on the host's server
	his   string // the path of bob's copy
	where uuid.UUID
}

func newAway(t *testing.T) *away {
	t.Helper()
	return newAwayIf(t, true)
}

// newAwayIf is like newAway, but a device of bob has joined only if confirmed is true.
func newAwayIf(t *testing.T, confirmed bool) *away {
	t.Helper()
	k := newTalk(t)
	w := &away{talk: k, peer: peertest.New(t, "127.0.0.2"), where: uuid.New(), mine: mlstest.NewDevice(string(k.local.ID(k.bob)), start)}
	host := w.peer.Actor("/users/dora")
	w.host = mlstest.NewDevice(string(host.ID), start)
	w.group = mlstest.NewGroup(w.host)
	_, w.group = w.group.Commit(w.host, mlstest.Change{Add: []*mlstest.Device{w.mine}})
	w.uri, w.his = "/users/dora/conversations/"+uuid.NewString(), "/api/conversations/"+w.where.String()
	k.write(k.bob, func(ctx context.Context, tx *user.Tx) error {
		err := tx.Joined.Add(ctx, user.JoinedConversation{ID: w.where, URI: vocab.ID(w.peer.Origin + w.uri), Host: host.ID, GroupID: w.group.ID, Epoch: 1, LastSeq: 1, WholeSeq: 1, Status: user.StatusActive, Confirmed: confirmed}, start)
		if err != nil {
			return err
		}
		_, err = tx.Joined.SetRoster(ctx, w.where, []vocab.ID{host.ID, k.local.ID(k.bob)}, []string{user.RoleAdmin, user.RoleMember}, 1)
		return err
	})
	return w
}

func (w *away) him() string { return string(w.local.ID(w.bob)) }

// answers sets the host's answer to requests for a part of the conversation. The test fails if
// such a request is not signed by bob.
func (w *away) answers(part string, status int, kind string, body any, see ...func(*http.Request)) {
	w.peer.Handle(w.uri+part, func(rw http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Signature-Input"), w.him()) {
			w.Errorf("%s is signed with %s, want bob's key", part, r.Header.Get("Signature-Input"))
		}
		for _, s := range see {
			s(r)
		}
		b, err := json.Marshal(body)
		if err != nil {
			w.Error(err)
		}
		rw.Header().Set("Content-Type", kind)
		rw.Header().Set("Retry-After", "7")
		rw.WriteHeader(status)
		_, _ = rw.Write(b) // the client may have hung up
	})
}

const (
	plainJSON = "application/json"
	isProblem = "application/problem+json"
)

func TestAMemberSubmitsToAHostElsewhere(t *testing.T) {
	t.Parallel()
	w := newAway(t)
	var key atomic.Value
	w.answers("/commits", 201, plainJSON, map[string]any{"seq": 2, "epoch": 2, "generation": 0}, func(r *http.Request) { key.Store(r.Header.Get("Idempotency-Key")) })
	w.answers("/messages", 201, plainJSON, map[string]any{"seq": 3, "epoch": 2, "generation": 0})
	w.answers("/reset", 202, plainJSON, map[string]any{"groupId": "urn:uuid:" + uuid.NewString()})
	w.answers("/group-info", 200, plainJSON, map[string]any{"epoch": 1, "groupInfo": []byte("info")})
	commit, next := w.group.Commit(w.mine, mlstest.Change{})
	body := map[string]any{"commit": commit, "groupInfo": next.Info(w.mine)}
	var got struct{ Seq, Epoch int64 }
	w.post(w.him(), w.his+"/commits", body).want(t, 201).decode(t, &got)
	if got.Seq != 2 || got.Epoch != 2 || !strings.HasPrefix(key.Load().(string), "key-") {
		t.Errorf("the commit stands at %+v, sent with the key %q", got, key.Load())
	}
	w.post(w.him(), w.his+"/messages", map[string]any{"message": next.Message()}).want(t, 201).decode(t, &got)
	if got.Seq != 3 {
		t.Errorf("the message stands at %+v", got)
	}
	w.post(w.him(), w.his+"/reset", map[string]any{}).want(t, 202)
	w.get(w.his+"/group-info", bearerToken(w.tokens[w.him()])).want(t, 200)
	w.post(w.him(), w.his+"/messages", map[string]any{"message": w.group.Plain(w.mine)}).want(t, 422) // bob's server does not send plain text to the host
}

// Row 9 of docs/conversations.md, Cases and their tests. bob is removed from a conversation on
// another server. His own server also refuses to show him the copy.
func TestARemovedMemberIsRefusedItsCopy(t *testing.T) {
	t.Parallel()
	w := newAway(t)
	w.get(w.his, bearerToken(w.tokens[w.him()])).want(t, 200)
	w.write(w.bob, func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Joined.SetRoster(ctx, w.where, []vocab.ID{vocab.ID(w.host.Identity)}, []string{user.RoleAdmin}, 2)
		return err
	})
	for _, path := range []string{"", "/log"} {
		w.get(w.his+path, bearerToken(w.tokens[w.him()])).want(t, 403)
	}
	w.get("/api/mls/messages", bearerToken(w.tokens[w.him()])).want(t, 200)
}

// A program gets a host's refusal in this server's form. The refusal contains no text of the
// host's.
func TestRefusalsOfHostsArePassedOn(t *testing.T) {
	t.Parallel()
	w := newAway(t)
	commit, next := w.group.Commit(w.mine, mlstest.Change{})
	winner, _ := w.group.Commit(w.host, mlstest.Change{})
	body := map[string]any{"commit": commit, "groupInfo": next.Info(w.mine)}
	state := map[string]any{"groupId": w.group.ID, "generation": 0, "epoch": 2, "status": "active<b>", "winner": map[string]any{"seq": 2}, "missing": []any{
		map[string]any{"seq": 2, "generation": 0, "epoch": 1, "kind": "application", "sender": w.host.Identity, "content": winner, "at": start},
		map[string]any{"seq": 3, "generation": 0, "epoch": 9, "kind": "commit", "sender": "x", "content": "AAAA", "at": start}}}
	for _, c := range []struct {
		status, want int
		kind         string
		answer       any
		code         string
	}{
		{409, 409, isProblem, map[string]any{"type": "https://p/epoch-conflict", "detail": "<script>", "conversation": state, "more": "x"}, "epoch_conflict"},
		{403, 403, isProblem, map[string]any{"type": "https://p/not-member"}, "not_member"},
		{404, 404, isProblem, map[string]any{"type": "https://p/no-conversation"}, "no_conversation"},
		{422, 422, isProblem, map[string]any{"type": "https://p/<b>Odd"}, "host_refused"},
		{429, 429, isProblem, map[string]any{"type": "https://p/mls-busy"}, "mls_busy"},
		{413, 413, isProblem, map[string]any{"type": "https://p/too-large"}, "too_large"},
		{500, 503, isProblem, map[string]any{}, "host_unreachable"},
		{201, 502, plainJSON, map[string]any{"seq": -4}, "host_answer"},
		{201, 502, plainJSON, []any{"x"}, "host_answer"},
		{403, 503, "text/html", "<h1>no</h1>", "host_unreachable"},
	} {
		w.answers("/commits", c.status, c.kind, c.answer)
		r := w.post(w.him(), w.his+"/commits", body).want(t, c.want)
		var p struct {
			Type, Detail string
			Conversation *struct {
				Epoch   int64
				Status  string
				Winner  *struct{ Seq int64 }
				Missing []struct{ Kind string }
			}
		}
		r.decode(t, &p)
		if code := strings.ReplaceAll(p.Type[strings.LastIndexByte(p.Type, '/')+1:], "-", "_"); code != c.code {
			t.Errorf("%d: code %s, want %s", c.status, code, c.code)
		}
		if c.want == 429 && r.Header.Get("Retry-After") != "7" {
			t.Errorf("429 with Retry-After %q, want the host's", r.Header.Get("Retry-After"))
		}
		if s := p.Conversation; c.want == 409 && (s == nil || s.Epoch != 2 || s.Status != "active" || s.Winner == nil || s.Winner.Seq != 2 || len(s.Missing) != 1 || s.Missing[0].Kind != "commit") {
			t.Errorf("the conflict tells %+v", s)
		}
	}
	w.answers("/commits", 201, plainJSON, map[string]any{"seq": 2, "epoch": 2, "generation": 0}, func(*http.Request) { t.Error("something was sent to a conversation that takes nothing") })
	for _, status := range []string{user.StatusFrozen, user.StatusClosed} {
		w.write(w.bob, func(ctx context.Context, tx *user.Tx) error {
			j, err := tx.Joined.Find(ctx, w.where)
			if err != nil {
				return err
			}
			j.Status = status
			_, err = tx.Joined.Save(ctx, *j, start)
			return err
		})
		var p struct{ Error string }
		if w.post(w.him(), w.his+"/commits", body).want(t, 409).decode(t, &p); p.Error != "conversation_"+status {
			t.Errorf("a commit to one that is %s is refused with %s", status, p.Error)
		}
	}
}

// An entry arrives whose number is too high, so there is a gap. The engine reads the missing
// entries from the host's log.
func TestAGapIsFilledFromTheHostsLog(t *testing.T) {
	t.Parallel()
	w := newAway(t)
	commit, next := w.group.Commit(w.host, mlstest.Change{})
	entry := func(seq int, epoch uint64, content []byte) map[string]any {
		return map[string]any{"seq": seq, "generation": 0, "epoch": epoch, "kind": "whatever", "sender": w.host.Identity, "content": content, "at": start}
	}
	pages := map[string]any{
		"1": map[string]any{"items": []any{entry(2, 1, w.group.Message()), entry(3, 1, commit)}, "more": true},
		"3": map[string]any{"items": []any{entry(5, 2, next.Message())}, "more": false}, // the host's log no longer has entry 4
	}
	w.peer.Handle(w.uri+"/log", func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", plainJSON)
		if err := json.NewEncoder(rw).Encode(pages[r.URL.Query().Get("after")]); err != nil {
			t.Error(err)
		}
	})
	w.heard(w.his, 5)
	var got struct {
		Epoch  int64
		Unread int
	}
	w.get(w.his, bearerToken(w.tokens[w.him()])).want(t, 200).decode(t, &got)
	if got.Epoch != 2 || got.Unread != 2 {
		t.Errorf("bob sees %+v", got)
	}
	var log struct {
		Items []struct {
			Seq  int64
			Kind string
		}
	}
	w.get(w.his+"/log", bearerToken(w.tokens[w.him()])).want(t, 200).decode(t, &log)
	if len(log.Items) != 3 || log.Items[0].Kind != "application" || log.Items[1].Kind != "commit" || log.Items[2].Seq != 5 {
		t.Errorf("the log is %+v", log)
	}
	var all struct {
		Items []struct {
			Number int64
			Seq    int64
			Kind   string
		}
		More bool
	}
	w.get("/api/mls/messages?after=1", bearerToken(w.tokens[w.him()])).want(t, 200).decode(t, &all)
	if len(all.Items) != 2 || all.More || all.Items[0].Number != 2 || all.Items[1].Seq != 5 {
		t.Errorf("the messages are %+v", all)
	}
}

// A log with impossible entries changes nothing in bob's copy, and the gap stays.
func TestALogThatCannotBeLeavesTheGap(t *testing.T) {
	t.Parallel()
	w := newAway(t)
	asked := make(chan struct{}, 100)
	w.answers("/log", 200, plainJSON, map[string]any{"items": []any{map[string]any{"seq": 2, "epoch": 7, "sender": w.host.Identity, "content": w.group.Message(), "at": start}}},
		func(*http.Request) { asked <- struct{}{} })
	w.tellOf(w.his, 4)
	select {
	case <-asked:
	case <-time.After(time.Minute):
		t.Fatal("the host was never asked")
	}
	var got struct{ LastSeq int64 }
	w.get(w.his, bearerToken(w.tokens[w.him()])).want(t, 200).decode(t, &got)
	if got.LastSeq != 1 {
		t.Errorf("it is whole up to %d, want 1", got.LastSeq)
	}
}
