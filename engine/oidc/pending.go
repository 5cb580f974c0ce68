package oidc

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"github.com/lightweb/lightweb/engine/policy"
)

// lifetime is the time within which a person must sign in at the provider.
const lifetime = 10 * time.Minute

// login is a login that was begun and has not ended. The browser gets the login's state and the
// secret in the field browser. The provider gets the state and the nonce. The verifier is shown
// only to the provider, together with the code.
type login struct {
	nonce, verifier, browser string
	page                     string // the page to which its browser is sent in the end; may be empty
	payer                    string
	ends                     time.Time
}

// pending are the logins under way. They are in the memory of this process, so after a restart
// people have to begin them again.
type pending struct {
	now  func() time.Time
	pool *policy.Pool

	mu     sync.Mutex
	logins map[[32]byte]login // the logins by the digests of their states
	// order has the keys in the order in which the logins began. Their lifetimes end in the same
	// order.
	order [][32]byte
}

func newPending(now func() time.Time) *pending {
	return &pending{now: now, pool: policy.PendingLogins.NewPool(), logins: map[[32]byte]login{}}
}

// addLogin adds a login, unless the payer or the pool has no room for another login.
func (p *pending) addLogin(payer, page string) (state string, l login, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forgetOld()
	if !p.pool.Take(payer, 1) {
		return "", login{}, false
	}
	state = rand.Text() + rand.Text()
	l = login{nonce: rand.Text() + rand.Text(), verifier: oauth2.GenerateVerifier(), browser: rand.Text() + rand.Text(), page: page, payer: payer, ends: p.now().Add(lifetime)}
	digest := sha256.Sum256([]byte(state))
	p.logins[digest] = l
	p.order = append(p.order, digest)
	return state, l, true
}

// takeLogin removes the login of a state. It reports whether there was such a login and this
// browser began it.
func (p *pending) takeLogin(state, browser string) (l login, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forgetOld()
	digest := sha256.Sum256([]byte(state))
	l, ok = p.logins[digest]
	p.forgetLogin(digest)
	return l, ok && subtle.ConstantTimeCompare([]byte(l.browser), []byte(browser)) == 1
}

// forgetOld removes the logins whose time is over.
func (p *pending) forgetOld() {
	for len(p.order) > 0 {
		l, is := p.logins[p.order[0]]
		if is && p.now().Before(l.ends) {
			return
		}
		p.forgetLogin(p.order[0])
		p.order = p.order[1:]
	}
}

func (p *pending) forgetLogin(digest [32]byte) {
	if l, is := p.logins[digest]; is {
		delete(p.logins, digest)
		p.pool.Give(l.payer, 1)
	}
}
