package conversation

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

// forgetful is a host whose first answer gets lost. Each later answer is a refusal.
type forgetful struct {
	Hosts
	status  int
	refusal vocab.Doc
	asked   int
}

func (h *forgetful) Ask(context.Context, transport.Question) (*transport.Reply, error) {
	if h.asked++; h.asked == 1 {
		return nil, errors.New("the connection was cut")
	}
	return &transport.Reply{Status: h.status, Body: h.refusal.JSON()}, nil
}

// The answer of a host to a message gets lost, so the host may have ordered the message. The
// sender repeats it, and the host refuses. Only a refusal of the message itself shows that the
// message was not ordered. After another refusal, members whose servers know only the SWICG draft
// get the message once the host's entry arrives.
func TestARefusedRetryKeepsWhatWaitsForTheHostsEntry(t *testing.T) {
	t.Parallel()
	type refusal struct {
		name   string
		status int
		code   string
		winner bool // whether the refusal lists the message as the commit of its epoch
		sent   bool // whether the Create is delivered once the host's entry arrives
	}
	always := []refusal{
		{"too many requests", http.StatusTooManyRequests, "rate_limited", false, true},
		{"a full mailbox", http.StatusTooManyRequests, "mls_busy", false, true},
		{"the user was removed since", http.StatusForbidden, "not_member", false, true},
		{"a reset since", http.StatusConflict, "former_group", false, true},
		{"a reset is pending", http.StatusConflict, "reset_pending", false, true},
		{"closed since", http.StatusConflict, "conversation_closed", false, true},
		{"no valid message", http.StatusBadRequest, "bad_mls_message", false, false},
		{"another kind of message", http.StatusUnprocessableEntity, "not_a_message", false, false},
		{"too large", http.StatusRequestEntityTooLarge, "too_large", false, false},
	}
	for kind, all := range map[string][]refusal{
		"message": append([]refusal{{"an old epoch", http.StatusConflict, "past_epoch", false, false}}, always...),
		"commit": append([]refusal{
			{"another commit won", http.StatusConflict, "epoch_conflict", false, false},
			{"the commit itself won", http.StatusConflict, "epoch_conflict", true, true},
			{"the key with another body", http.StatusUnprocessableEntity, "idempotency_key_reuse", false, true},
		}, always...),
	} {
		for _, r := range all {
			t.Run(kind+", "+r.name, func(t *testing.T) {
				t.Parallel()
				s := newMixed(t)
				content, send := s.group.Message(), func(content []byte) error { _, err := s.Send(t.Context(), s.user, s.c, content); return err }
				if kind == "commit" {
					content, _ = s.group.SealedCommit(mlstest.Change{})
					send = func(content []byte) error {
						_, err := s.Commit(t.Context(), s.user, s.c, Commit{Key: "1", Message: content})
						return err
					}
				}
				s.host.status, s.host.refusal = r.status, vocab.Doc{"type": "https://peer.example/errors/" + r.code}
				if r.winner {
					s.host.refusal["conversation"] = map[string]any{"missing": []any{map[string]any{"seq": 2, "epoch": s.group.Epoch, "sender": s.me, "content": content}}}
				}
				for range 2 {
					if err := send(content); err == nil {
						t.Fatal("the host accepted it")
					}
				}
				if s.host.asked != 2 {
					t.Fatalf("the host was asked %d times", s.host.asked)
				}
				s.enter(content)
				if n := s.owed(); n != map[bool]int{true: 1}[r.sent] {
					t.Errorf("after %s %d Creates leave, want them: %t", r.code, n, r.sent)
				}
			})
		}
	}
}

// mixedCopy is bob's copy of a mixed conversation. Another server hosts the conversation. Dora is
// a member, and her server knows only the SWICG draft.
type mixedCopy struct {
	*Members
	t     *testing.T
	host  *forgetful
	group *mlstest.Group
	user  vocab.Username
	me    vocab.ID
	c     *user.Conversation
}

func newMixed(t *testing.T) *mixedCopy {
	t.Helper()
	store, now := dbtest.New(t), time.Now()
	const host, dora = vocab.ID("https://peer.example/users/host"), vocab.ID("https://swicg.example/users/dora")
	s := &mixedCopy{t: t, host: &forgetful{}, user: dbtest.User(t, store, "bob"), me: here{}.ID(vocab.Username{})}
	s.group = mlstest.NewGroup(mlstest.NewDevice(string(s.me), now))
	j := user.JoinedConversation{ID: uuid.New(), URI: host + "/conversations/" + vocab.ID(uuid.NewString()), Host: host, GroupID: s.group.ID, Epoch: int64(s.group.Epoch),
		LastSeq: 1, WholeSeq: 1, Status: user.StatusActive, FormerGroups: []string{}, Confirmed: true, Mixed: true}
	s.c = &user.Conversation{ID: j.ID, URI: j.URI, Host: host, GroupID: j.GroupID}
	d := MemberDeps{Store: store, Local: speaking{}, Hosts: s.host, Keys: here{}, People: speaking{}, Gate: open, Log: slog.New(slog.DiscardHandler), Now: time.Now}
	d.Registry = NewRegistry(Deps{Store: store, Actors: nobody{}, Log: d.Log, Now: d.Now})
	s.Members = NewMembers(d)
	s.write(func(ctx context.Context, tx *user.Tx) error {
		if err := tx.Joined.Add(ctx, j, now); err != nil {
			return err
		}
		if _, err := tx.Joined.Save(ctx, j, now); err != nil {
			return err
		}
		if err := tx.Conversations.Join(ctx, j.ID, []vocab.ID{s.me, host, dora}, user.RoleMember, 0); err != nil {
			return err
		}
		return tx.Hosted.NoteForeign(ctx, j.ID, []vocab.ID{dora})
	})
	return s
}

func (s *mixedCopy) write(work func(context.Context, *user.Tx) error) {
	s.t.Helper()
	if err := s.Store.Write(s.t.Context(), s.user, work); err != nil {
		s.t.Fatal(err)
	}
}

// enter stores a message as the next entry of the host's log.
func (s *mixedCopy) enter(content []byte) {
	s.t.Helper()
	e, err := entryOf(content)
	if err != nil {
		s.t.Fatal(err)
	}
	e.seq, e.sender = 2, s.me
	s.write(func(ctx context.Context, tx *user.Tx) error {
		if err := tx.HoldAudience(ctx); err != nil {
			return err
		}
		if err := tx.Messages.Lock(ctx); err != nil {
			return err
		}
		return s.gaps.keepEntry(ctx, tx, copyKey{s.user, s.c.ID}, e)
	})
}

// owed returns the number of waiting deliveries.
func (s *mixedCopy) owed() (n int) {
	s.t.Helper()
	s.write(func(ctx context.Context, tx *user.Tx) error {
		open, err := tx.Deliveries.CountOpen(ctx)
		for _, o := range open {
			n += o.Count
		}
		return err
	})
	return n
}
