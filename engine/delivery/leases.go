package delivery

import (
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	leaseTime        = 90 * time.Second
	margin           = 30 * time.Second // an attempt begins only while so much of the delivery's lease is left
	maxClaimed       = 200              // users' own deliveries that one turn may claim
	minClaimed       = 8                // the least that maxOwn returns while the pool has room
	maxForwarded     = 2048             // forwarded deliveries in memory
	maxUserForwarded = 256              // forwarded deliveries of one user in memory
)

// leases holds the deliveries in memory, which are those that this process has leased. The
// registrable domains of their hosts share the room for these deliveries.
type leases struct {
	pool        *policy.Pool
	rows        map[vocab.Username]map[int64]*row
	forwarded   int
	forwardedOf map[vocab.Username]int
}

func newLeases() leases {
	return leases{pool: policy.HeldDeliveries.NewPool(), rows: map[vocab.Username]map[int64]*row{}, forwardedOf: map[vocab.Username]int{}}
}

func (l *leases) add(r *row) {
	if l.rows[r.user] == nil {
		l.rows[r.user] = map[int64]*row{}
	}
	l.rows[r.user][r.ID] = r
	l.pool.Spend(r.domain, 1)
	l.countForwarded(r, 1)
}

// remove forgets a delivery whose outcome is stored, or whose user was removed.
func (l *leases) remove(u vocab.Username, id int64) {
	r := l.rows[u][id]
	if r == nil {
		return
	}
	if delete(l.rows[u], id); len(l.rows[u]) == 0 {
		delete(l.rows, u)
	}
	l.pool.Give(r.domain, 1)
	l.countForwarded(r, -1)
}

func (l *leases) countForwarded(r *row, n int) {
	if !r.Forwarded {
		return
	}
	l.forwarded += n
	if l.forwardedOf[r.user] += n; l.forwardedOf[r.user] == 0 {
		delete(l.forwardedOf, r.user)
	}
}

// maxOwn returns how many of a user's own deliveries a turn may claim. The pool limits how many
// deliveries a domain may get that has no delivery in memory. The turns share that number, but
// each turn may claim at least a few deliveries.
func (l *leases) maxOwn() int {
	share := int(l.pool.FairShare())
	return min(maxClaimed, max(share/maxTurns, min(share, minClaimed)))
}

// maxForwarded returns how many forwarded deliveries may be claimed for u in addition to u's own
// deliveries. The parameter own is how many of u's own deliveries may be claimed.
func (l *leases) maxForwarded(u vocab.Username, own int) int {
	return max(0, min(own/4, maxUserForwarded-l.forwardedOf[u], maxForwarded-l.forwarded))
}

// fullDomains returns the domains that have no room for n more deliveries in memory. It returns
// them in the form in which a claim names the hosts that it leaves out.
func (l *leases) fullDomains(n int) []string {
	full := l.pool.Full(int64(n))
	for i, name := range full {
		full[i] = user.AllHostsOf + name
	}
	return full
}

// inAdvance returns the leases that a transaction which stores a job may take. They leave out the
// hosts in the list "except".
func (l *leases) inAdvance(owner string, except []string, now time.Time) user.DeliveryLeases {
	most := l.pool.FairShare()
	if most < minClaimed {
		return user.DeliveryLeases{}
	}
	return user.DeliveryLeases{Owner: owner, Until: now.Add(leaseTime), Most: int(most), Except: append(l.fullDomains(1), except...)}
}
