package server_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/vocab"
)

// owes claims the deliveries that bob owes. For each delivery it returns the target, the
// recipients and the content.
func (k *talk) owes() (all []string) {
	k.Helper()
	k.write(k.bob, func(ctx context.Context, tx *user.Tx) error {
		owed, err := tx.Deliveries.Claim(ctx, "test", start.Add(time.Minute), time.Hour, user.ClaimBounds{Most: 10})
		for _, d := range owed {
			a, bad := vocab.ParseActivity(d.Body)
			if bad != nil {
				return bad
			}
			said, bad := json.Marshal([]any{d.Targets, a.Addressing.To, a.Object.Doc["to"], a.Object.Doc.Text("content")})
			if bad != nil {
				return bad
			}
			all = append(all, string(said))
		}
		return err
	})
	return all
}

// A program sends a commit again, because the first request did not name or did not find some
// recipients. Only those recipients get it. The program cannot make a new commit, because the
// epoch is past.
func TestAMessageThatIsSentAgainGoesToRecipientsThatItHadNot(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	path, g, _, _ := k.began()
	him, carol, alice := string(k.local.ID(k.bob)), string(k.carol.ID), string(k.local.ID(k.alice))
	message := g.PrivateCommit()
	type answer struct{ Seq, Epoch int64 }
	send := func(replayed string, to ...any) (got answer) {
		t.Helper()
		r := k.post(him, path+"/commits", map[string]any{"commit": message, "to": to}).want(t, 201)
		if r.Header.Get("Idempotent-Replayed") != replayed {
			t.Errorf("to %v: replayed %q, want %q", to, r.Header.Get("Idempotent-Replayed"), replayed)
		}
		r.decode(t, &got)
		return got
	}
	said := func(target string, to ...string) string {
		b, err := json.Marshal([]any{[]string{target}, to, to, message})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	// another commit of the same epoch
	k.arrive(carol, "PrivateMessage", g.PrivateCommit(), nil)
	first := send("", carol)
	if got := k.owes(); !slices.Equal(got, []string{said(carol, carol)}) {
		t.Errorf("bob owes %q, want one to carol", got)
	}
	if again := send("", carol, him, alice); again != first {
		t.Errorf("the place is %+v, then %+v", first, again)
	}
	if got := k.owes(); !slices.Equal(got, []string{said(alice, carol, him, alice)}) {
		t.Errorf("bob owes %q, want one to alice", got)
	}
	for _, to := range []string{alice, carol, him} {
		if again := send("true", to); again != first {
			t.Errorf("the place is %+v, then %+v", first, again)
		}
	}
	if got := k.owes(); len(got) > 0 {
		t.Errorf("bob owes %q again", got)
	}
	k.write(k.bob, func(ctx context.Context, tx *user.Tx) error {
		all, err := tx.Messages.ListNewest(ctx, 0, 1, 1<<20)
		if err != nil {
			return err
		}
		a, err := vocab.ParseActivity([]byte(conversation.JoinContent(all[0])))
		if err == nil && (len(a.Addressing.To) != 3 || a.Object.ID != all[0].Object) {
			t.Errorf("the user's devices see %s", a.Raw)
		}
		return err
	})
}

// A message of another actor is not sent in the user's name.
func TestAMessageThatCameIsNotSentAsTheUsersOwn(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	path, g, _, _ := k.began()
	message := g.Message()
	k.arrive(string(k.carol.ID), "PrivateMessage", message, nil)
	k.post(string(k.local.ID(k.bob)), path+"/messages", map[string]any{"message": message, "to": []any{string(k.local.ID(k.alice))}}).want(t, 201)
	if got := k.owes(); len(got) > 0 {
		t.Errorf("bob owes %q", got)
	}
}
