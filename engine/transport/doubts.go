package transport

import "sync"

// maxDoubts limits the number of hosts in doubts. When a new host would exceed the limit, all
// hosts are removed first.
const maxDoubts = 10_000

// doubts holds the hosts that answered 5xx to RFC 9421 while no dialect of them was stored. Some
// servers, such as Guppe and Gancio, fail at a signature that they cannot read. The next contact
// with such a host begins with draft-cavage. A 5xx in draft-cavage raises no doubt, because a host
// that does not read draft-cavage refuses it. The answer to a Question raises none either, because
// the servers that are asked run this software.
//
// A host of which draft-cavage is stored is added when it refuses that and accepts RFC 9421. A
// firewall may have refused, and some hosts accept everything. If the host does so again, RFC 9421
// is stored.
type doubts struct {
	mu    sync.Mutex
	hosts map[string]bool
}

func (d *doubts) add(host string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hosts == nil || len(d.hosts) >= maxDoubts {
		d.hosts = map[string]bool{}
	}
	d.hosts[host] = true
}

func (d *doubts) has(host string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.hosts[host]
}
