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

// lifetime is how long somebody has to sign in at the provider.
const lifetime = 10 * time.Minute

// login is one that was begun. The browser is told its state and its own secret, the provider state
// and nonce; the verifier is shown to the provider alone, with the code.
type login struct {
	nonce, verifier, browser string
	page                     string // where its browser is sent in the end; may be empty
	payer                    string
	ends                     time.Time
}

// pending are the logins under way, in the memory of this process: after a restart they are begun
// again.
type pending struct {
	now  func() time.Time
	pool *policy.Pool

	mu     sync.Mutex
	logins map[[32]byte]login // by the digests of their states
	order  [][32]byte         // as they were begun, so as they end
}

func newPending(now func() time.Time) *pending {
	return &pending{now: now, pool: policy.PendingLogins.NewPool(), logins: map[[32]byte]login{}}
}

// addLogin adds a login, unless the payer has no room for one.
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

// takeLogin takes the login of a state away, and reports whether it was there, and the browser's.
func (p *pending) takeLogin(state, browser string) (l login, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forgetOld()
	digest := sha256.Sum256([]byte(state))
	l, ok = p.logins[digest]
	p.forgetLogin(digest)
	return l, ok && subtle.ConstantTimeCompare([]byte(l.browser), []byte(browser)) == 1
}

// forgetOld forgets the logins whose time is over.
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
