package delivery

import "github.com/lightweb/lightweb/engine/policy"

// rotation is a round-robin list of the registrable domains, and of the hosts in each, for which
// an attempt may start. The hosts of a domain share its part of the attempts, so that many host
// names under one domain (a wildcard in the DNS) gain nothing.
type rotation struct {
	domains []string
	hosts   map[string][]*hostQueue // by domain
}

func newRotation() *rotation { return &rotation{hosts: map[string][]*hostQueue{}} }

// add puts h at the end of its domain's hosts, once.
func (r *rotation) add(h *hostQueue) {
	if h.listed[r] {
		return
	}
	h.listed[r] = true
	if len(r.hosts[h.domain]) == 0 {
		r.domains = append(r.domains, h.domain)
	}
	r.hosts[h.domain] = append(r.hosts[h.domain], h)
}

// next reserves an attempt for the domain whose turn it is, and returns the domain's next host. It
// returns nil if no domain may have an attempt. It skips only few domains, because the pool
// refuses an attempt only to a domain that has attempts in progress.
func (r *rotation) next(attempts *policy.Pool) *hostQueue {
	for range len(r.domains) {
		domain := r.domains[0]
		r.domains = r.domains[1:]
		if attempts.Take(domain, 1) {
			return r.removeFirst(domain)
		}
		r.domains = append(r.domains, domain)
	}
	return nil
}

// removeFirst removes and returns the first host of a domain. If the domain has more hosts, the
// domain goes to the end of r.domains.
func (r *rotation) removeFirst(domain string) *hostQueue {
	hosts := r.hosts[domain]
	h := hosts[0]
	hosts[0] = nil
	if len(hosts) > 1 {
		r.hosts[domain] = hosts[1:]
		r.domains = append(r.domains, domain)
	} else {
		delete(r.hosts, domain)
	}
	delete(h.listed, r)
	return h
}
