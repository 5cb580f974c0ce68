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

// budgets refuses requests of senders that have used up their share, or leaves out some of the
// recipients.
type budgets struct {
	Deps
	bounds  *bounds
	ignored *ignored
}

// checkHost refuses a request whose key belongs to a host that has used up its request rate. It
// runs before any other work for the request, and counts nothing.
func (b *budgets) checkHost(host string) error {
	return limitFault(b.Hosts.Ready(policy.RegistrableDomain(host)))
}

// countRequest counts a request against its signer and the signer's host. It does not count a
// second knock, that is, a request that repeats an earlier one in the other signature dialect.
// The reason is that many peers send each request in both dialects, even if this server accepts
// the first request.
func (b *budgets) countRequest(x *receiving, signer vocab.ID) error {
	digest := sha256.Sum256(x.Body)
	// The key contains the signer, so that no signer uses up the second knock of another.
	knock := func(d signature.Dialect) string { return d.String() + string(digest[:]) + string(signer) }
	this, other := knock(signature.RFC9421), knock(signature.Cavage)
	if x.claims[0].Dialect == signature.Cavage { // all claims of a request are of one dialect
		this, other = other, this
	}
	if once, _ := b.bounds.knocks.Ready(other); !once {
		if first, _ := b.bounds.knocks.Allow(this); first {
			return nil
		}
	}
	if err := limitBy(b.Senders, string(signer)); err != nil { // checked first, so that a refused request does not count against the host
		return err
	}
	if err := limitBy(b.Hosts, policy.RegistrableDomain(signer.Host())); err != nil {
		return err
	}
	b.bounds.knocks.Allow(this)
	return nil
}

// Count counts a proven request that is not for an inbox against its signer and the signer's host.
// Unlike countRequest, it also counts a second knock.
func (i *Inbox) Count(signer vocab.ID) error {
	if err := limitBy(i.Senders, string(signer)); err != nil {
		return err
	}
	return limitBy(i.Hosts, policy.RegistrableDomain(signer.Host()))
}

// paidBySigner returns a context in which fetches are charged to the signer's domain. It returns
// ctx itself while no signer is proven.
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

// payerFor returns the payer for an activity that comes in no request: the domain of the first of
// these actors that is on another server. If all of them are users of this server, the payer is
// empty.
func (i *Inbox) payerFor(senders ...vocab.ID) string {
	for _, id := range senders {
		if !i.Local.IsLocal(id) {
			return policy.RegistrableDomain(id.Host())
		}
	}
	return ""
}

// paidBy returns the party that caused the activity, namely the domain of the request's signer.
// While no signer is proven, the result is x.payer, that is, the client address, or the result of
// payerFor if there is no request. The result is empty for an activity that a user of this server
// or the operator causes.
func (x *receiving) paidBy() string {
	if x.signer != nil {
		return policy.RegistrableDomain(x.signer.ID.Host())
	}
	return x.payer
}

// chargeFanOut counts the recipients who follow neither the activity's actor nor the actor that
// passes it on (see findStrangers) against the party that pays (see paidBy). It counts a
// recipient even if the user will ignore the activity, because each recipient costs a transaction
// in a user's database. One of the counted recipients is free, because the request itself was
// counted. Recipients who follow one of the two actors cost nothing. A large activity counts once
// more for each bytesOfCopy bytes, because what its copies take is known only once they are stored
// (see chargeStored), and thousands of them may wait until then.
func (b *budgets) chargeFanOut(ctx context.Context, x *receiving) error {
	if len(x.Recipients) < 2 || x.paidBy() == "" {
		return nil
	}
	strangers, err := b.findStrangers(ctx, x, x.Recipients)
	if err != nil || len(strangers) < 2 {
		return err
	}
	if err := limitFault(b.bounds.fannedOut.Ready(x.paidBy())); err != nil {
		return err
	}
	b.bounds.fannedOut.Spend(x.paidBy(), len(strangers)*(1+bytesFor(x)/bytesOfCopy)-1)
	x.strangers = setOf(strangers)
	return nil
}

// bytesOfCopy makes a domain's budget of recipients, 2,000 at once, about as large as its daily
// budget of storage for strangers, 256 MiB.
const bytesOfCopy = 128 << 10

// bytesFor returns how many bytes the activity takes in the database of one recipient, without what
// is fetched for it.
func bytesFor(x *receiving) int { return perStored + len(x.Activity.Raw) }

// limitDeletions takes the first Delete of an actor that is gone, and then drops further Deletes
// of that actor for a while. All these Deletes say the same, and need no signature of the actor.
// So without the limit, anybody could make the users who knew the actor forget it over and over. A
// Delete that the function take refuses does not count, because it comes again.
func (b *budgets) limitDeletions(x *receiving, take func() error) error {
	key := string(x.Actor.ID.Canonical())
	if first, _ := b.bounds.deletions.Ready(key); !first {
		return nil
	}
	if err := take(); err != nil {
		return err
	}
	b.bounds.deletions.Allow(key) // no effect if another Delete has used up the limit meanwhile
	return nil
}

// findStrangers returns the recipients who follow neither the activity's actor nor the
// actor that passes it on. If a user of this server passes the activity on, that user's followers
// are counted, too, because they do not follow the domain that pays.
func (b *budgets) findStrangers(ctx context.Context, x *receiving, recipients []vocab.Username) (strangers []vocab.Username, err error) {
	followers, err := x.followersOf(ctx, b.Store, x.Actor.ID)
	if err != nil {
		return nil, err
	}
	var passed map[vocab.Username]bool
	if x.passer != nil && !b.Local.IsLocal(x.passer.ID) {
		if passed, err = x.followersOf(ctx, b.Store, x.passer.ID); err != nil {
			return nil, err
		}
	}
	for _, u := range recipients {
		if !followers[u] && !passed[u] {
			strangers = append(strangers, u)
		}
	}
	return strangers, nil
}

// limitStored removes the recipients for which too much of the sender's domain was stored lately.
// If none is left, it refuses the activity. It does not limit activities that take something away,
// because they take effect in any case (see leavesNoRow), or activities of this server's own
// users.
func (b *budgets) limitStored(ctx context.Context, x *receiving) error {
	if x.paidBy() == "" || b.Handlers.Lookup(x.Activity).TakesAway {
		return nil
	}
	if err := b.limitForFollowers(x); err != nil {
		return err
	}
	return b.limitForStrangers(ctx, x)
}

// limitForFollowers removes each recipient whose database has lately stored too much of the actors
// that this recipient follows at the sender's domain. If other recipients are left, they get the
// activity, but x.refused is set, so that the peer sends the activity again. These recipients then
// ignore it as a duplicate. If no recipient is left, limitForFollowers refuses the activity.
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

// followedKey is the budget key for content that one user stores from the actors that the user
// follows at a domain.
func followedKey(payer string, u vocab.Username) string { return u.String() + " " + payer }

// limitForStrangers removes recipients who do not follow the sender, if too much of the sender's
// domain was stored for such users, or if the copies for all recipients exceed what a domain may
// store for such users in a day.
func (b *budgets) limitForStrangers(ctx context.Context, x *receiving) error {
	ok, after := b.bounds.storedOfDomain.Ready(x.paidBy())
	if ok && len(x.Recipients)*bytesFor(x) <= policy.StrangersStorage.Rate.Burst {
		return nil
	}
	followers, err := x.followersOf(ctx, b.Store, x.Actor.ID)
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(x.Recipients), func(u vocab.Username) bool { return !followers[u] })
	if len(left) == 0 && ok {
		return fault.New(fault.TooLarge, "the activity is too large for so many users who do not follow its actor")
	}
	if len(left) == 0 {
		return fault.New(fault.RateLimited, "too much of that domain was stored for users who follow nobody there").After(after)
	}
	if len(left) < len(x.Recipients) {
		x.Recipients = left
		b.ignored.add(x.Activity.ID, x.Activity.Type, x.Actor.ID, IgnoredOverBudget)
	}
	return nil
}

// hasRoom reports whether anything is left of the budget that pays for rows of the sender in the
// user's database. chargeStored spends the same budget. Activities of this server's own users need
// no budget.
func (p *applier) hasRoom(x *applying) bool {
	if x.payer == "" {
		return true
	}
	l, key := p.bounds.storedOfDomain, x.payer
	if x.Follows {
		l, key = p.bounds.storedForFollower, followedKey(x.payer, x.User)
	}
	ok, _ := l.Ready(key)
	return ok
}

// leavesNoRow reports whether the activity takes something away while there is no room for rows
// of the sender. Then it takes effect, but neither the activity nor its id is stored. If it comes
// again, it finds nothing to take away.
func (p *applier) leavesNoRow(x *applying) bool {
	return !x.Remembers && p.Handlers.Lookup(x.Activity).TakesAway
}

// chargeStored counts the stored bytes against the sender's domain, even when only an id was
// stored. Each user who follows the sender has a count of its own; all other users share one.
func (p *applier) chargeStored(x *applying) {
	if x.payer == "" {
		return
	}
	spend := func(n int) { p.bounds.storedOfDomain.Spend(x.payer, n) }
	if x.Follows {
		spend = func(n int) { p.bounds.storedForFollower.Spend(followedKey(x.payer, x.User), n) }
	}
	if x.effects.Remembered {
		spend(perStored * max(len(x.effects.Disabled), 1))
	}
	if x.outcome != outcomeApplied || !x.stored && !x.again && !p.Handlers.IsApart(x.Activity) {
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
