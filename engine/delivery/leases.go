package delivery

import (
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	leaseTime        = 90 * time.Second
	margin           = 30 * time.Second // of its lease that a delivery must still have when its attempt begins
	maxClaimed       = 200              // deliveries in one turn
	minClaimed       = 8                // deliveries in one turn, even when all turns claim as many
	maxForwarded     = 2048             // forwarded deliveries in memory
	maxUserForwarded = 256              // of one user's
)

// leases are the deliveries in memory: those on which this process has a lease. Registrable
// domains share the room.
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

// remove ends the hold on a delivery whose outcome is stored.
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

// maxOwn returns how many deliveries of a user's own a turn may claim: all turns under way as many
// as one domain may have which has none, and each a few.
func (l *leases) maxOwn() int {
	share := int(l.pool.Share())
	return min(maxClaimed, max(share/maxTurns, min(share, minClaimed)))
}

// maxForwarded returns how many forwarded deliveries may be claimed for u, beside own ones. They
// never take the places of users' own.
func (l *leases) maxForwarded(u vocab.Username, own int) int {
	return max(0, min(own/4, maxUserForwarded-l.forwardedOf[u], maxForwarded-l.forwarded))
}

// fullDomains returns the domains that may not have n more deliveries in memory, as hosts to leave
// out.
func (l *leases) fullDomains(n int) []string {
	full := l.pool.Full(int64(n))
	for i, name := range full {
		full[i] = db.AllHostsOf + name
	}
	return full
}

// inAdvance returns the leases that whoever stores a job may take, except those for some hosts.
func (l *leases) inAdvance(owner string, except []string, now time.Time) db.DeliveryLeases {
	most := l.pool.Share()
	if most < minClaimed {
		return db.DeliveryLeases{}
	}
	return db.DeliveryLeases{Owner: owner, Until: now.Add(leaseTime), Most: int(most), Except: append(l.fullDomains(1), except...)}
}
