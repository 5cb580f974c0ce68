package delivery

import (
	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/policy"
)

// rotation goes round the registrable domains, and the hosts of each, that may start an attempt. The hosts of a domain share
// its part of the attempts, so that a wildcard in somebody's DNS buys nothing.
type rotation struct {
	domains []string
	hosts   map[string][]*host // by domain
}

func newRotation() *rotation { return &rotation{hosts: map[string][]*host{}} }

// add puts h at the end of its domain's hosts, once.
func (r *rotation) add(h *host) {
	if h.listed[r] {
		return
	}
	h.listed[r] = true
	if len(r.hosts[h.domain]) == 0 {
		r.domains = append(r.domains, h.domain)
	}
	r.hosts[h.domain] = append(r.hosts[h.domain], h)
}

// next takes an attempt for the domain whose turn it is and returns its next host, nil when no domain may have one. It
// passes over few: what is left of the attempts is refused only to domains that have some under way.
func (r *rotation) next(attempts *policy.Pool) *host {
	for range len(r.domains) {
		domain := r.domains[0]
		r.domains = r.domains[1:]
		if !attempts.Take(domain, 1) {
			r.domains = append(r.domains, domain)
			continue
		}
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
	return nil
}

// host returns the queue of a host. The caller holds mu.
func (d *Dispatcher) host(name string) *host {
	h := d.hosts[name]
	if h == nil {
		h = &host{name: name, domain: policy.RegistrableDomain(name), limit: d.HostConcurrency, listed: map[*rotation]bool{}}
		if name == "" {
			h.limit = localConcurrency
		}
		d.hosts[name] = h
	}
	return h
}

// fullDomains returns which domains may not have n more deliveries in memory, as hosts to leave out. The caller holds mu.
func (d *Dispatcher) fullDomains(n int) []string {
	full := d.rows.Full(int64(n))
	for i, name := range full {
		full[i] = db.AllHostsOf + name
	}
	return full
}
