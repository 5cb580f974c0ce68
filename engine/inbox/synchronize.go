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

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	maxComparing   = 2               // senders compared at the same time
	comparisonTime = 5 * time.Minute // the time for one comparison
	maxStrangers   = 500             // users in one list that are looked at although they do not follow its sender
)

// synchronizationField is the header field in which a sender names a digest of its followers on
// this server (FEP-8fcf).
const synchronizationField = "Collection-Synchronization"

// Outcomes of comparing a sender's list of its followers here with the users who follow it.
const (
	followersEqual    = "equal"
	followersHealed   = "healed"
	followersWait     = "limited" // the digests differ, but the list was fetched too recently
	followersUnproven = "unproven"
	followersFailed   = "failed"
)

// synchronizer compares the list of local followers that a sender has with the users who follow
// it, and repairs the differences. It compares up to maxComparing senders at a time. Its
// goroutines run while there is something to compare. The offers of lists that still wait when
// the inbox closes are lost, but the sender's next post repeats its offer.
type synchronizer struct {
	*Inbox
	ctx  context.Context // cancelled when the inbox closes
	stop context.CancelFunc

	// Comparisons, by sender. Each one reads the databases of all users who may follow the
	// sender.
	compared *policy.Limiter
	asked    *policy.Limiter // lists that are fetched, by sender
	undone   *policy.Limiter // Undos that are sent for listed users, by domain

	mu      sync.Mutex
	waiting []offer
	offers  *policy.Pool      // waiting offers, by domain
	busy    map[vocab.ID]bool // senders that wait or are being compared
	workers int
	closed  bool
	running sync.WaitGroup
}

// offer is the Collection-Synchronization field of a request, by which a sender offers its list
// of followers for comparison.
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

// domain returns the sender's registrable domain.
func (o offer) domain() string { return policy.RegistrableDomain(o.by.ID.Host()) }

// parseOffer returns the offer in a verified request. The offer counts only if all signatures that
// count cover the field, the field is about the signer's own followers, and the field's URL is on
// the signer's own server. Otherwise parseOffer returns false, as for a request without an offer.
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

// heedOffer queues the offer in a request. It drops the offer if another offer of the signer waits
// or is being compared, if the signer's followers were compared too recently, if too many offers
// of its domain wait, or if the inbox closes. No request waits for the comparison.
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

// compareWaiting settles the waiting offers one after another, until there is none.
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

// settleOffer makes the comparison for one offer, and counts and logs the outcome. A panic ends
// only this comparison.
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

// compareFollowers compares the digest in the offer with that of the users who follow the
// sender. If they differ, it fetches the list of followers from the sender's server and repairs
// the follows. The list counts only if its digest is the offered one, so a list that is partial
// or from another time changes nothing. An empty list changes nothing either. The outcome is ""
// when no local user may follow the sender, because then there is nothing to compare.
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

// findFollows returns the users whose follow of the actor was accepted, each with the id of the
// Follow. It reads the users' own databases, because the follows are stored only there.
func (s *synchronizer) findFollows(ctx context.Context, by vocab.ID, users []vocab.Username) (map[vocab.Username]vocab.ID, error) {
	found := map[vocab.Username]vocab.ID{}
	for _, u := range users {
		var rel *user.Relationship
		err := s.Store.Read(ctx, u, func(ctx context.Context, tx *user.Tx) (err error) {
			rel, err = tx.Relationships.Find(ctx, user.Following, by)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("compare followers of %s: %w", by, err)
		}
		if rel != nil && rel.Status == user.Accepted {
			found[u] = rel.Activity
		}
	}
	return found, nil
}

// healFollows ends the follows of users who are not listed, and sends an Undo for listed users who
// do not follow the sender. The map in the parameter follows was read before the list was fetched.
// A user who has begun to follow the sender since then is left alone. A failure for one user does
// not stop the others. The next comparison tries such a user again, and deals with the users that
// a limit left out.
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
		failures = append(failures, s.Store.Write(ctx, u, func(ctx context.Context, tx *user.Tx) error {
			return handler.Unlisted(ctx, tx, s.listingOf(u, by), follow)
		}))
	}
	rand.Shuffle(len(strangers), func(i, j int) { strangers[i], strangers[j] = strangers[j], strangers[i] })
	return errors.Join(append(failures, s.disownStrangers(ctx, by, strangers[:min(len(strangers), maxStrangers)]))...)
}

// disownStrangers sends an Undo for each listed user who does not follow the sender. It stops
// when the sender's domain has used up its budget, because each Undo takes space in a user's
// database without the user's wish.
func (s *synchronizer) disownStrangers(ctx context.Context, by *vocab.Actor, strangers []vocab.Username) error {
	users, err := s.Store.Instance.Users.Active(ctx, strangers)
	failures := []error{err}
	domain := policy.RegistrableDomain(by.ID.Host())
	for _, u := range users {
		if ok, _ := s.undone.Ready(domain); !ok {
			break
		}
		queued := false
		err := s.Store.Write(ctx, u, func(ctx context.Context, tx *user.Tx) (err error) {
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

// close accepts no more offers, cancels the comparisons in progress and waits for them to end.
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
