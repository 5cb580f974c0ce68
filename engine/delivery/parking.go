package delivery

import (
	"maps"

	"github.com/lightweb/lightweb/engine/vocab"
)

// resumeBatch is the largest number of a user's deliveries to one host that one turn makes due
// again, and the largest number that one turn postpones because the host's breaker is open.
const resumeBatch = 1000

// parking records which users have deliveries that wait until a host is back, and which of these
// deliveries are to be made due again.
type parking struct {
	parked  map[string]userSet // by host: the users with parked deliveries to it
	waiting map[string]userSet // by host whose breaker is open: the users with deliveries that wait for it
	asked   map[vocab.Username]map[string]bool
}

type userSet map[vocab.Username]bool

func newParking() parking {
	return parking{parked: map[string]userSet{}, waiting: map[string]userSet{}, asked: map[vocab.Username]map[string]bool{}}
}

// addParked records that u has parked deliveries to a host, and reports whether that is new.
func (p *parking) addParked(host string, u vocab.Username) (isNews bool) {
	return addUser(p.parked, host, u)
}

func (p *parking) removeParked(host string, u vocab.Username) {
	if delete(p.parked[host], u); len(p.parked[host]) == 0 {
		delete(p.parked, host)
	}
}

// addWaiting records that deliveries of u wait until a host's breaker closes.
func (p *parking) addWaiting(host string, u vocab.Username) { addUser(p.waiting, host, u) }

func addUser(sets map[string]userSet, host string, u vocab.Username) (isNew bool) {
	if sets[host] == nil {
		sets[host] = userSet{}
	}
	isNew = !sets[host][u]
	sets[host][u] = true
	return isNew
}

// askBack requests that the user's next turn makes deliveries to a host due again.
func (p *parking) askBack(host string, u vocab.Username) {
	if p.asked[u] == nil {
		p.asked[u] = map[string]bool{}
	}
	p.asked[u][host] = true
}

// askAllBack calls askBack for every user with parked or waiting deliveries to a host, and
// returns these users.
func (p *parking) askAllBack(host string) userSet {
	owners := maps.Clone(p.parked[host])
	if owners == nil {
		owners = userSet{}
	}
	maps.Copy(owners, p.waiting[host])
	delete(p.waiting, host)
	for u := range owners {
		p.askBack(host, u)
	}
	return owners
}

func (p *parking) isAsked(u vocab.Username) bool { return len(p.asked[u]) > 0 }

// takeAsked removes and returns the hosts for which askBack was called for u and for which mayCome
// returns true now. Later calls of askBack are for another turn.
func (p *parking) takeAsked(u vocab.Username, mayCome func(host string) bool) (hosts []string) {
	for host := range p.asked[u] {
		if mayCome(host) {
			hosts = append(hosts, host)
			delete(p.asked[u], host)
		}
	}
	if len(p.asked[u]) == 0 {
		delete(p.asked, u)
	}
	return hosts
}
