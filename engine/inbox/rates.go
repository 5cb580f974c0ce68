package inbox

import (
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// budgets refuses requests, and leaves out recipients, once the sender has used up its share.
type budgets struct {
	Deps
	bounds  *bounds
	ignored *ignored
}

// checkHost refuses a request that names a key of a host which has used up what it may send,
// before anything is done for it. It takes nothing from anybody.
func (b *budgets) checkHost(host string) error {
	return limitFault(b.Hosts.Ready(policy.RegistrableDomain(host)))
}

// countRequest counts a request against the actor who made it, and its host. One that comes again
// in the other dialect is a second knock, and not counted: many peers knock twice whatever they
// were told.
func (b *budgets) countRequest(x *receiving, signer vocab.ID) error {
	digest := sha256.Sum256(x.Body)
	knock := func(d signature.Dialect) string { return d.String() + string(digest[:]) + string(signer) } // nobody uses up another's
	this, other := knock(signature.RFC9421), knock(signature.Cavage)
	if x.claims[0].Dialect == signature.Cavage { // one request has claims of one dialect
		this, other = other, this
	}
	if once, _ := b.bounds.knocks.Ready(other); !once {
		if first, _ := b.bounds.knocks.Allow(this); first {
			return nil
		}
	}
	if err := limitBy(b.Senders, string(signer)); err != nil { // first: what it may not send takes nothing from others of its host
		return err
	}
	if err := limitBy(b.Hosts, policy.RegistrableDomain(signer.Host())); err != nil {
		return err
	}
	b.bounds.knocks.Allow(this)
	return nil
}

// Count counts a proven request that is for no inbox against its signer and the signer's host, as
// one to an inbox counts.
func (i *Inbox) Count(signer vocab.ID) error {
	if err := limitBy(i.Senders, string(signer)); err != nil {
		return err
	}
	return limitBy(i.Hosts, policy.RegistrableDomain(signer.Host()))
}

// paidBySigner returns ctx for what is fetched for a request once it is proven: the signer's
// domain pays for it.
func paidBySigner(ctx context.Context, x *receiving) context.Context {
	if x.signer == nil {
		return ctx
	}
	return policy.PaidByDomain(ctx, x.signer.ID.Host())
}

func limitBy(l *policy.Limiter, key string) error { return limitFault(l.Allow(key)) }

func limitFault(ok bool, after time.Duration) error {
	if ok {
		return nil
	}
	return fault.New(fault.RateLimited, "too many requests").After(max(after, time.Second))
}

// paidBy returns who caused the request: the domain of its signer; while none is proven, its
// client address. It is empty for what this server's own users cause.
func (x *receiving) paidBy() string {
	if x.signer != nil {
		return policy.RegistrableDomain(x.signer.ID.Host())
	}
	return x.payer
}

// chargeFanOut counts recipients who do not follow the sender against the sender's domain,
// whether they will keep the activity or ignore it: each costs a transaction in the recipient's
// database. The first is counted as the request. A post to those who follow its sender is not
// charged, however many they are.
func (b *budgets) chargeFanOut(ctx context.Context, x *receiving) error {
	if len(x.Recipients) < 2 || x.paidBy() == "" {
		return nil
	}
	strangers, err := b.countStrangers(ctx, x, x.Recipients)
	if err != nil || strangers < 2 {
		return err
	}
	if err := limitFault(b.bounds.fannedOut.Ready(x.paidBy())); err != nil {
		return err
	}
	b.bounds.fannedOut.Spend(x.paidBy(), strangers-1)
	return nil
}

// countStrangers returns how many of the recipients follow neither the actor nor the actor who
// passes the activity on.
func (b *budgets) countStrangers(ctx context.Context, x *receiving, recipients []vocab.Username) (int, error) {
	followers, err := x.followersOf(ctx, b.Store, x.Actor.ID)
	if err != nil {
		return 0, err
	}
	var passed map[vocab.Username]bool
	if x.passer != nil {
		if passed, err = x.followersOf(ctx, b.Store, x.passer.ID); err != nil {
			return 0, err
		}
	}
	n := 0
	for _, u := range recipients {
		if !followers[u] && !passed[u] {
			n++
		}
	}
	return n, nil
}

// limitStored keeps an activity from recipients for which the sender's domain has had much stored
// lately. When nobody is left it is refused.
func (b *budgets) limitStored(ctx context.Context, x *receiving) error {
	if b.Handlers.Lookup(x.Activity).TakesAway {
		return nil
	}
	if err := b.limitForFollowers(x); err != nil {
		return err
	}
	return b.limitForStrangers(ctx, x)
}

// limitForFollowers leaves out users for which much was stored of actors that they follow at
// the domain. Its answer is a refusal then, also when others get the activity: the peer sends it
// again, and they have it already.
func (b *budgets) limitForFollowers(x *receiving) error {
	left := x.Recipients[:0:0]
	var full error
	for _, u := range x.Recipients {
		if ok, after := b.bounds.storedForFollower.Ready(followedKey(x.paidBy(), u)); !ok {
			full = fault.New(fault.RateLimited, "too much of that domain was stored for a user who follows somebody there").After(after)
			continue
		}
		left = append(left, u)
	}
	if len(left) == 0 {
		return full
	}
	x.Recipients, x.refused = left, full
	return nil
}

// followedKey is the key of what a domain has stored for one user, of actors that the user
// follows there.
func followedKey(payer string, u vocab.Username) string { return u.String() + " " + payer }

// limitForStrangers leaves out users who do not follow the sender once much was stored of its
// domain for such users.
func (b *budgets) limitForStrangers(ctx context.Context, x *receiving) error {
	ok, after := b.bounds.storedOfDomain.Ready(x.paidBy())
	if ok {
		return nil
	}
	followers, err := x.followersOf(ctx, b.Store, x.Actor.ID)
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(x.Recipients), func(u vocab.Username) bool { return !followers[u] })
	if len(left) == 0 {
		return fault.New(fault.RateLimited, "too much of that domain was stored for users who follow nobody there").After(after)
	}
	if len(left) < len(x.Recipients) {
		x.Recipients = left
		b.ignored.add(x.Activity.ID, x.Activity.Type, x.Actor.ID, IgnoredOverBudget)
	}
	return nil
}

// chargeStored counts what was stored against the sender's domain, also when that was no more
// than an id: for a user who follows the sender by itself, for all others together.
func (p *applier) chargeStored(x *applying) {
	if p.Local.IsLocal(x.Actor.ID) {
		return
	}
	spend := func(n int) { p.bounds.storedOfDomain.Spend(x.payer, n) }
	if x.Follows {
		spend = func(n int) { p.bounds.storedForFollower.Spend(followedKey(x.payer, x.User), n) }
	}
	if x.effects.Remembered {
		spend(perStored)
	}
	if x.outcome != outcomeApplied || !x.stored && !p.Handlers.IsApart(x.Activity) {
		return
	}
	n := perStored + len(x.raw)
	for id, o := range x.fetched {
		if !p.Local.IsLocal(id) {
			n += perStored + len(o.Doc.JSON())
		}
	}
	spend(n)
}
