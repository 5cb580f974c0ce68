package conversation_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// reruns is a store that counts how often transactions were run again after a conflict.
type reruns struct {
	conversation.Store
	n atomic.Int64
}

func (r *reruns) Write(ctx context.Context, u vocab.Username, work func(context.Context, *user.Tx) error) error {
	isFirst := true
	return r.Store.Write(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		if !isFirst {
			r.n.Add(1)
		}
		isFirst = false
		return work(ctx, tx)
	})
}

// newMixed returns a conversation of alice's with sam. Sam's server knows only the SWICG draft.
func (s *scene) newMixed() (at conversation.Place, g *mlstest.Group) {
	s.Helper()
	s.group = mlstest.NewGroup(s.alice)
	v, err := s.registry.Create(s.Context(), s.user, s.group.Info(s.alice))
	if err != nil {
		s.Fatal(err)
	}
	s.at.ID = v.ID
	s.commit(s.alice, mlstest.Change{Add: []*mlstest.Device{mlstest.NewDevice(samID, time.Now())}})
	return s.at, s.group
}

// create returns a message by sam, in the form in which alice's inbox receives it.
func create(t testing.TB, content []byte) *vocab.Activity {
	t.Helper()
	id := samID + "/" + uuid.NewString()
	object := vocab.Doc{"type": "PrivateMessage", "id": id, "attributedTo": samID, "to": []any{aliceID}, "mediaType": "message/mls", "encoding": "base64", "content": base64.StdEncoding.EncodeToString(content)}
	a, err := vocab.ParseActivity(vocab.Doc{"type": "Create", "id": id + "/create", "actor": samID, "to": []any{aliceID}, "object": object}.JSON())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Three kinds of transactions run at the same time. The first are inbox batches, which number
// messages of the conversations and store a follower. The second store the host's own messages to
// the conversations. The third store new blocks. Each is done once, the numbers have no gaps, and
// no transaction has to be run again.
func TestInboxLogsAndAudienceChangeAtOnce(t *testing.T) {
	t.Parallel()
	const rounds = 50
	for conversations := 1; conversations <= 2; conversations++ {
		t.Run(strconv.Itoa(conversations), func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			store := &reruns{Store: s.store}
			s.registry = s.node(store)
			var at []conversation.Place
			var groups []*mlstest.Group
			for range conversations {
				p, g := s.newMixed()
				at, groups = append([]conversation.Place{p}, at...), append([]*mlstest.Group{g}, groups...) // in the reverse order of their creation
			}
			var all sync.WaitGroup
			repeat := func(work func(n int) error) {
				all.Go(func() {
					for n := range rounds {
						if err := work(n); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			repeat(func(n int) error {
				var came []*vocab.Activity
				for _, g := range groups {
					came = append(came, create(t, g.Message()))
				}
				follower := vocab.ID(fmt.Sprintf("https://peer.example/users/f%d", n))
				return store.Write(t.Context(), s.user, func(ctx context.Context, tx *user.Tx) error { return s.takeBatch(ctx, tx, came, follower) })
			})
			for i := range at {
				repeat(func(int) error {
					_, err := s.registry.Send(t.Context(), at[i], conversation.Message{Caller: aliceID, Content: groups[i].Message()})
					return err
				})
			}
			repeat(func(n int) error {
				return store.Write(t.Context(), s.user, func(ctx context.Context, tx *user.Tx) error {
					if err := tx.ChangeAudience(ctx); err != nil {
						return err
					}
					return tx.Blocks.Add(ctx, user.Block{Actor: vocab.ID(fmt.Sprintf("https://peer.example/users/b%d", n)), Direction: user.Outbound, Activity: vocab.ID(fmt.Sprintf(aliceID+"/activities/%d", n))}, s.now())
				})
			})
			all.Wait()
			for _, p := range at {
				s.at = p
				log := s.log()
				for n, e := range log {
					if e.Seq != int64(n+1) {
						t.Fatalf("after %d comes number %d", n, e.Seq)
					}
				}
				if len(log) != 1+2*rounds {
					t.Errorf("the log has %d entries, want %d", len(log), 1+2*rounds)
				}
			}
			if again := store.n.Load(); again > 0 {
				t.Errorf("%d transactions were run again, want none", again)
			}
		})
	}
}

// An inbox batch locks one conversation and then another. Meanwhile a shared transaction stores
// the host's messages to both conversations. The batch and the shared transaction do not deadlock.
func TestABatchAndASharedTransactionDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	s, g := gated(t)
	store := &reruns{Store: g}
	s.registry = s.node(store)
	var talks []conversation.Place
	messages := map[conversation.Place][]byte{}
	for range 2 {
		at, group := s.newMixed()
		talks, messages[at] = append(talks, at), group.Message()
	}
	slices.SortFunc(talks, func(a, b conversation.Place) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	shared := make(chan struct{})
	g.set(func() error { <-shared; return nil })
	var all sync.WaitGroup
	for _, at := range talks {
		all.Go(func() {
			a, err := s.registry.Send(t.Context(), at, conversation.Message{Caller: aliceID, Content: messages[at]})
			if err != nil || a.Seq != 2 {
				t.Errorf("the host's message is number %d, %v, want 2", a.Seq, err)
			}
		})
	}
	for _, at := range talks {
		for s.registry.Waiting(at) == 0 {
			runtime.Gosched()
		}
	}
	batch := &reruns{Store: s.store}
	err := batch.Write(t.Context(), s.user, func(ctx context.Context, tx *user.Tx) error {
		if batch.n.Load() > 0 {
			return nil
		}
		if _, err := tx.Hosted.Lock(ctx, talks[1].ID); err != nil {
			return err
		}
		close(shared)
		dbtest.AwaitLock(t, s.store, s.user, nil) // the host's message now waits for talks[1]
		_, err := tx.Hosted.Lock(ctx, talks[0].ID)
		return err
	})
	all.Wait()
	if again := store.n.Load() + batch.n.Load(); err != nil || again > 0 {
		t.Errorf("%d transactions were run again, want none; %v", again, err)
	}
}

// takeBatch stores messages by sam and a follower in one transaction, as the inbox does. It locks
// the audience first.
func (s *scene) takeBatch(ctx context.Context, tx *user.Tx, came []*vocab.Activity, follower vocab.ID) error {
	if err := tx.HoldAudience(ctx); err != nil {
		return err
	}
	for _, a := range came {
		arrival := conversation.Arrival{User: s.user, Me: aliceID, Activity: a, Sender: &vocab.Actor{ID: samID}, Now: s.now(), Applied: s.now()}
		o, err := conversation.Orderer{Actors: actors{}, Inboxes: inboxesOf, Rules: actors{}}.ReceiveForeign(ctx, tx, arrival)
		if err == nil && !o.Kept {
			err = fmt.Errorf("a message is not kept: %s", o.Reason)
		}
		if err != nil {
			return err
		}
	}
	return tx.Relationships.Set(ctx, user.Relationship{Actor: follower, Type: user.Follower, Status: user.Accepted, Activity: follower + "/follow"}, s.now())
}
