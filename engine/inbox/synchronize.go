package inbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	maxComparing   = 2               // senders whose followers are compared at once
	comparisonTime = 5 * time.Minute // for one sender
	maxStrangers   = 500             // users looked at for one list who do not follow its sender
)

// synchronizationField is the field in which a sender says who follows it here (FEP-8fcf).
const synchronizationField = "Collection-Synchronization"

// Outcomes of comparing the users that a sender takes for its followers with those who follow it.
const (
	followersEqual    = "equal"
	followersHealed   = "healed"
	followersWait     = "limited" // they differ, and its server was asked not long ago
	followersUnproven = "unproven"
	followersFailed   = "failed"
)

// synchronizer compares the users that senders take for their followers with those who follow
// them, one sender at a time, and heals what differs. Its goroutines run while there is something
// to compare. Offers that it has not come to are lost at the end: the next post says it again.
type synchronizer struct {
	*Inbox
	ctx  context.Context // ends with the inbox
	stop context.CancelFunc

	compared *policy.Limiter // comparisons, by sender: they read the databases of all who may follow it
	asked    *policy.Limiter // lists that are fetched, by sender
	undone   *policy.Limiter // follows that are taken back, by domain

	mu      sync.Mutex
	waiting []offer
	offers  *policy.Pool      // waiting, by domain
	busy    map[vocab.ID]bool // senders that wait or are being compared
	workers int
	closed  bool
	running sync.WaitGroup
}

// offer is what a sender has said.
type offer struct {
	by   *vocab.Actor
	said vocab.Synchronization
}

func newSynchronizer(i *Inbox) *synchronizer {
	ctx, stop := context.WithCancel(context.Background())
	return &synchronizer{Inbox: i, ctx: ctx, stop: stop, busy: map[vocab.ID]bool{}, offers: policy.Offers.NewPool(),
		compared: policy.Comparisons.Limiter(i.Now),
		asked:    policy.FollowerLists.Limiter(i.Now),
		undone:   policy.UndoneFollows.Limiter(i.Now)}
}

// domain returns which domain the sender is of.
func (o offer) domain() string { return policy.RegistrableDomain(o.by.ID.Host()) }

// parseOffer returns what a request that was verified says of its signer's followers. It counts
// only when it is covered by whichever signature the request was verified by, speaks of the
// signer's own followers, and leads to the signer's own server; everything else is as if it were
// not there.
func parseOffer(x *receiving) (offer, bool) {
	lines := x.Request.Header[synchronizationField]
	if x.signer == nil || len(lines) != 1 || slices.ContainsFunc(x.claims, isUncovered) {
		return offer{}, false
	}
	s, err := vocab.ParseSynchronization(lines[0])
	if err != nil || x.signer.Followers == "" || !s.Collection.Same(x.signer.Followers) || !s.URL.SameOrigin(x.signer.ID) {
		return offer{}, false
	}
	return offer{x.signer, s}, true
}

func isUncovered(c signature.Claim) bool {
	return !slices.Contains(c.Covered, strings.ToLower(synchronizationField))
}

// heedOffer queues what a request says of its signer's followers, when the signer has not said
// much lately. Nobody waits for it.
func (s *synchronizer) heedOffer(x *receiving) {
	o, ok := parseOffer(x)
	if !ok {
		return
	}
	key := o.by.ID.Canonical()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.busy[key] {
		return
	}
	if ok, _ := s.compared.Allow(string(key)); !ok {
		return
	}
	if !s.offers.Take(o.domain(), 1) {
		return
	}
	s.busy[key] = true
	s.waiting = append(s.waiting, o)
	if s.workers < maxComparing {
		s.workers++
		s.running.Go(s.compareWaiting)
	}
}

// compareWaiting compares until nothing waits.
func (s *synchronizer) compareWaiting() {
	for {
		o, ok := s.nextOffer()
		if !ok {
			return
		}
		s.settleOffer(o)
		s.mu.Lock()
		delete(s.busy, o.by.ID.Canonical())
		s.mu.Unlock()
	}
}

func (s *synchronizer) nextOffer() (o offer, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 || s.closed {
		s.workers--
		return offer{}, false
	}
	o, s.waiting = s.waiting[0], s.waiting[1:]
	s.offers.Give(o.domain(), 1)
	return o, true
}

// settleOffer compares for one sender, and counts and logs what came of it. A panic costs no more
// than that.
func (s *synchronizer) settleOffer(o offer) {
	defer func() {
		if p := recover(); p != nil {
			s.Log.Error("comparing followers panicked", "actor", o.by.ID, "err", p, "stack", string(debug.Stack()))
		}
	}()
	ctx, cancel := context.WithTimeout(s.ctx, comparisonTime)
	defer cancel()
	outcome, err := s.compareFollowers(ctx, o)
	if outcome == "" {
		return
	}
	s.metrics.synchronizations.WithLabelValues(outcome).Inc()
	s.Log.DebugContext(ctx, "followers compared", "actor", o.by.ID, "outcome", outcome, "err", err)
}

// compareFollowers finds out whether those who follow the sender are those that it takes for its
// followers, and if not, asks its server for their names. The answer counts when it bears out
// what was said: a part of it, a list of another time, and one that is empty change nothing. The
// outcome is empty when nobody here may follow the sender: what it says then is nobody's
// business.
func (s *synchronizer) compareFollowers(ctx context.Context, o offer) (outcome string, err error) {
	users, err := s.Store.Instance.Acquaintances.Users(ctx, o.by.ID, true)
	if err != nil {
		return followersFailed, err
	}
	if len(users) == 0 {
		return "", nil
	}
	if len(users) > vocab.MaxSynchronized {
		return followersFailed, errors.New("too many may follow it")
	}
	follows, err := s.findFollows(ctx, o.by.ID, users)
	if err != nil {
		return followersFailed, err
	}
	var digest vocab.FollowersDigest
	for u := range follows {
		digest.Add(string(s.Local.ID(u)))
	}
	if digest == o.said.Digest {
		return followersEqual, nil
	}
	if ok, _ := s.asked.Allow(string(o.by.ID.Canonical())); !ok {
		return followersWait, nil
	}
	listed, err := s.Actors.FollowersHere(ctx, o.said.URL)
	if err != nil {
		return followersUnproven, err
	}
	listed = slices.DeleteFunc(listed, func(id vocab.ID) bool { return !s.Local.IsLocal(id) })
	if len(listed) == 0 || vocab.DigestOf(listed...) != o.said.Digest {
		return followersUnproven, nil
	}
	if err := s.healFollows(ctx, o.by, follows, listed); err != nil {
		return followersFailed, err
	}
	return followersHealed, nil
}

// findFollows returns those of the users who follow the actor and were accepted, each with the
// Follow. Only their own databases know.
func (s *synchronizer) findFollows(ctx context.Context, by vocab.ID, users []vocab.Username) (map[vocab.Username]vocab.ID, error) {
	found := map[vocab.Username]vocab.ID{}
	for _, u := range users {
		var rel *db.Relationship
		err := s.Store.Read(ctx, u, func(ctx context.Context, tx *db.Tx) (err error) {
			rel, err = tx.Relationship(ctx, db.Following, by)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("compare followers of %s: %w", by, err)
		}
		if rel != nil && rel.Status == db.Accepted {
			found[u] = rel.Activity
		}
	}
	return found, nil
}

// healFollows ends the follows of those who are not listed, and takes back those of the listed
// who do not follow. follows is from before the list was made: who has begun to follow since is
// left alone. A failure for one user, and whatever is too much for once, is left to the next
// time.
func (s *synchronizer) healFollows(ctx context.Context, by *vocab.Actor, follows map[vocab.Username]vocab.ID, listed []vocab.ID) error {
	names := map[vocab.Username]bool{}
	var strangers []vocab.Username
	for _, id := range listed {
		u, ok := s.Local.Owner(id)
		if !ok || names[u] {
			continue
		}
		names[u] = true
		if _, ok := follows[u]; !ok {
			strangers = append(strangers, u)
		}
	}
	var failures []error
	for u, follow := range follows {
		if names[u] {
			continue
		}
		failures = append(failures, s.Store.Write(ctx, u, func(ctx context.Context, tx *db.Tx) error {
			return handler.Unlisted(ctx, tx, s.listingOf(u, by), follow)
		}))
	}
	rand.Shuffle(len(strangers), func(i, j int) { strangers[i], strangers[j] = strangers[j], strangers[i] })
	return errors.Join(append(failures, s.disownStrangers(ctx, by, strangers[:min(len(strangers), maxStrangers)]))...)
}

// disownStrangers lets users take back what they never asked for, as far as the domain has not
// had much of that lately: each time a user's database grows, and not because its user wanted
// something.
func (s *synchronizer) disownStrangers(ctx context.Context, by *vocab.Actor, strangers []vocab.Username) error {
	users, err := s.Store.Instance.Users.Active(ctx, strangers)
	failures := []error{err}
	domain := policy.RegistrableDomain(by.ID.Host())
	for _, u := range users {
		if ok, _ := s.undone.Ready(domain); !ok {
			break
		}
		queued := false
		err := s.Store.Write(ctx, u, func(ctx context.Context, tx *db.Tx) (err error) {
			queued, err = handler.Listed(ctx, tx, s.listingOf(u, by))
			return err
		})
		failures = append(failures, err)
		if queued && err == nil {
			s.undone.Spend(domain, 1)
		}
	}
	return errors.Join(failures...)
}

func (s *synchronizer) listingOf(u vocab.Username, by *vocab.Actor) handler.Listing {
	return handler.Listing{Local: s.Local, User: u, By: by, Now: s.Now()}
}

// close takes nothing more, and waits for what is under way to be given up.
func (s *synchronizer) close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	ended := make(chan struct{})
	go func() { s.running.Wait(); close(ended) }()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fault.Wrap(fault.Busy, "comparing followers did not end in time", ctx.Err())
	}
}
