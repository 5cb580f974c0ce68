package server_test

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// invitations returns how many of bob's conversations were joined by no device of his.
func (k *talk) invitations() (n int) {
	k.Helper()
	k.write(k.bob, func(ctx context.Context, tx *user.Tx) error {
		all, err := tx.Conversations.List(ctx, k.local.ID(k.bob), nil, 100)
		for _, c := range all {
			j, err := tx.Joined.Find(ctx, c.ID)
			if err != nil {
				return err
			}
			if j != nil && !j.Confirmed {
				n++
			}
		}
		return err
	})
	return n
}

// The device with the Welcome may be lost, and another device of bob's may join without a Welcome.
// A request of bob's that the host accepts counts as joining, so the conversation stays.
func TestAUserWhoWritesInAConversationHasJoinedIt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		part string
		body func(*away) map[string]any
	}{
		"by an external commit": {"/external-commit", func(w *away) map[string]any {
			laptop := mlstest.NewDevice(w.him(), start)
			commit, next := w.group.Rejoin(laptop, w.mine)
			return map[string]any{"commit": commit, "groupInfo": next.Info(laptop)}
		}},
		"by a message": {"/messages", func(w *away) map[string]any { return map[string]any{"message": w.group.Message()} }},
		"by the group after": {"/reset", func(w *away) map[string]any {
			return map[string]any{"groupInfo": mlstest.NewGroup(w.mine).Info(w.mine)}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newAwayIf(t, false)
			refusal := map[string]any{"type": "https://x.example/errors/not-member", "detail": "no"}
			w.answers(tt.part, 403, isProblem, refusal)
			w.post(w.him(), w.his+tt.part, tt.body(w)).want(t, 403)
			if n := w.invitations(); n != 1 {
				t.Errorf("after a refusal %d invitations wait, want 1", n)
			}
			w.answers(tt.part, 201, plainJSON, map[string]any{"seq": 2, "epoch": 2, "generation": 0})
			w.post(w.him(), w.his+tt.part, tt.body(w)).want(t, 201)
			if n := w.invitations(); n != 0 {
				t.Errorf("%d invitations wait, want none", n)
			}
		})
	}
}

// A request for a reset does not count as joining the conversation, even if the host accepts the
// request.
func TestAResetThatIsAskedForJoinsNothing(t *testing.T) {
	t.Parallel()
	w := newAwayIf(t, false)
	w.answers("/reset", 202, plainJSON, map[string]any{"groupId": "urn:uuid:" + uuid.NewString()})
	w.post(w.him(), w.his+"/reset", map[string]any{}).want(t, 202)
	if n := w.invitations(); n != 1 {
		t.Errorf("%d invitations wait, want 1", n)
	}
}

func TestAUserWhoWritesInAGroupWithoutAHostHasJoinedIt(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	path, g, _, _ := k.began()
	if n := k.invitations(); n != 1 {
		t.Fatalf("%d invitations wait, want 1", n)
	}
	k.post(string(k.local.ID(k.bob)), path+"/messages", map[string]any{"message": g.Message(), "to": []any{string(k.carol.ID)}}).want(t, 201)
	if n := k.invitations(); n != 0 {
		t.Errorf("%d invitations wait, want none", n)
	}
}

// A device confirms its Welcome without the id of the group. The conversation counts as joined
// when the first message shows the id.
func TestAGroupWhoseWelcomeIsConfirmedIsJoinedOnceItIsKnown(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	him, from := string(k.local.ID(k.bob)), string(k.carol.ID)
	mine := k.bobsDevice()
	g, _ := groupOf(from, mine)
	k.arrive(from, "Welcome", g.Welcome(mine), nil)
	var list struct{ Items []struct{ ID uuid.UUID } }
	k.get("/api/welcomes", bearerToken(k.tokens[him])).want(t, 200).decode(t, &list)
	k.post(him, "/api/welcomes/"+list.Items[0].ID.String()+"/confirm", map[string]any{}).want(t, 204)
	k.arrive(from, "PrivateMessage", g.Message(), nil)
	k.write(k.bob, func(ctx context.Context, tx *user.Tx) error {
		j, err := tx.Joined.FindGroup(ctx, g.ID)
		if j == nil || !j.Confirmed {
			t.Errorf("the conversation is %+v, want one that a device has joined", j)
		}
		shared, err2 := tx.Conversations.IsShared(ctx, vocab.ID(from))
		if !shared || err2 != nil {
			t.Errorf("its sender shares a conversation: %v, %v", shared, err2)
		}
		return err
	})
}
