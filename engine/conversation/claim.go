package conversation

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Claim returns one key package of each device of the user to an actor who wants to add the
// devices to a group. Strangers to the user are refused. claimsOfDay and domainClaims limit the
// one-time packages that one actor and one domain can claim. Otherwise an actor could use up all
// one-time packages, and only the packages of last resort would be left.
func (r *Registry) Claim(ctx context.Context, u vocab.Username, claimer vocab.ID) (claimed []user.KeyPackage, err error) {
	now := r.Now()
	err = r.Store.Write(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		if err := tx.Lock(ctx, keyPackages); err != nil { // the checks below depend on the number of packages
			return err
		}
		if claimer != r.Actors.ID(u) {
			if err := CheckClaimer(ctx, tx, r.Actors.ID(u), claimer, now); err != nil {
				return err
			}
		}
		if claimed, err = tx.KeyPackages.Claim(ctx, claimer, now); err != nil {
			return err
		}
		return tellLow(ctx, tx, now)
	})
	if err == nil && len(claimed) == 0 {
		err = errNoPackage // set after the commit, which stores the event of tellLow
	}
	return claimed, err
}

// CheckClaimer refuses actors that are strangers to the user, actors that the user blocks or that
// block the user, and actors that have claimed too many packages.
func CheckClaimer(ctx context.Context, tx *user.Tx, owner, claimer vocab.ID, now time.Time) error {
	s, err := tx.Relationships.FindStanding(ctx, claimer)
	if err != nil {
		return err
	}
	knows := s.Following == user.Accepted
	for _, f := range s.Friendship {
		knows = knows || f.Status == user.Accepted
	}
	if !knows {
		if knows, err = tx.Conversations.IsShared(ctx, claimer); err != nil {
			return err
		}
	}
	if !knows || s.Blocking || s.BlockedBy {
		return fault.New(fault.Forbidden, "the key packages are for actors that the user follows or talks with").WithCode("claim_refused")
	}
	return checkClaims(ctx, tx, owner, claimer, now)
}

// checkClaims refuses an actor that has claimed too many one-time packages of the user within 24
// hours. It also refuses an actor of another server if the actors of its domain have claimed too
// many. The host of a conversation that the user has joined can name any number of actors of one
// domain as members, so a limit for each actor alone would not limit the domain.
func checkClaims(ctx context.Context, tx *user.Tx, owner, claimer vocab.ID, now time.Time) error {
	all, err := tx.KeyPackages.CountClaims(ctx, now.Add(-24*time.Hour))
	if err != nil {
		return err
	}
	domain, own, ofActor, ofDomain := policy.RegistrableDomain(claimer.Host()), owner.Host(), 0, 0
	for _, c := range all {
		switch host := c.Actor.Host(); {
		case c.Actor == claimer:
			ofActor, ofDomain = c.Count, ofDomain+c.Count
		case host != own && policy.RegistrableDomain(host) == domain:
			ofDomain += c.Count
		}
	}
	limited := ""
	switch {
	case ofActor >= claimsOfDay:
		limited = "an actor claims 20 key packages of a user a day"
	case ofDomain >= domainClaims && claimer.Host() != own:
		limited = "the actors of a domain claim 40 key packages of a user a day"
	default:
		return nil
	}
	return fault.New(fault.RateLimited, limited).WithCode("claim_limit").After(time.Hour)
}

// tellLow tells the user that few packages are left. It does so once, and again only after the
// stock was refilled and has run low anew. It tells the user only if a one-time package is stored
// as claimed.
func tellLow(ctx context.Context, tx *user.Tx, now time.Time) error {
	s, err := tx.KeyPackages.CountStats(ctx, now)
	if err != nil || s.OneTime >= lowPackages || s.Told || s.Claimed == 0 {
		return err
	}
	if err := tx.KeyPackages.NoteLow(ctx, true); err != nil {
		return err
	}
	return tx.Events.Add(ctx, user.NewEvent(eventLow, user.SourceLocal, user.TrustSelf, vocab.Doc{"available": s.OneTime}, now))
}

// PublicPackages returns the key packages that everybody may see. Each device shows one, its
// package of last resort.
func (r *Registry) PublicPackages(ctx context.Context, tx *user.Tx) ([]user.KeyPackage, error) {
	return tx.KeyPackages.ListPublic(ctx, publicSuite, r.Now(), maxPackages)
}

// PublicPackage returns a key package that everybody may see. The fault is Gone if the package
// was replaced or revoked, or has expired.
func (r *Registry) PublicPackage(ctx context.Context, tx *user.Tx, id uuid.UUID) (*user.KeyPackage, error) {
	k, err := tx.KeyPackages.Find(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case k == nil || !k.LastResort || k.Suite != publicSuite:
		return nil, errNoPackage
	case k.State != user.PackageAvailable || !k.NotAfter.After(r.Now()):
		return nil, fault.New(fault.Gone, "the key package was replaced or revoked")
	}
	return k, nil
}
