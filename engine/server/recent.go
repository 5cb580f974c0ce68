package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	// recentTime is how long a page is shown that was read before. A write of this process ends it
	// at once; this bounds what another one's takes to be seen.
	recentTime = time.Second

	// maxRecent bounds all pages, in bytes, of which each takes recentRoom beside its body.
	maxRecent  = 16 << 20
	recentRoom = 512
)

// recentPages are pages of collections as they were last shown to a reader that nobody knows: many
// servers that read one page at once cost one look at the database.
type recentPages struct {
	now func() time.Time

	mu    sync.Mutex
	bytes int
	swept time.Time                                 // when old pages were last forgotten
	users map[vocab.Username]map[string]*recentPage // by the collection and the place in it
}

// recentPage is a page, or one that is being made.
type recentPage struct {
	tagged
	at   time.Time // when it began to be made
	made bool
}

func newRecentPages(now func() time.Time) *recentPages {
	return &recentPages{now: now, users: map[vocab.Username]map[string]*recentPage{}}
}

// find returns a page that may still be shown.
func (p *recentPages) find(u vocab.Username, key string) (tagged, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	page := p.users[u][key]
	if page == nil || !page.made || p.now().Sub(page.at) > recentTime {
		return tagged{}, false
	}
	return page.tagged, true
}

// begin is called before the database is read. keep remembers what was made of that, unless the
// user's collections changed in between. Of several who make a page at once the first to be done
// has it kept.
func (p *recentPages) begin(u vocab.Username, key string) (keep func(tagged)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := p.now(); p.bytes > maxRecent/2 && now.Sub(p.swept) > recentTime {
		p.forgetOld(now)
	}
	if p.bytes >= maxRecent {
		return func(tagged) {}
	}
	of := p.users[u]
	if of == nil {
		of = map[string]*recentPage{}
		p.users[u] = of
	}
	page := of[key]
	if page == nil || p.now().Sub(page.at) > recentTime {
		p.remove(u, key)
		page = &recentPage{at: p.now()}
		of[key] = page
		p.bytes += recentRoom
	}
	return func(t tagged) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.users[u][key] == page && !page.made && p.bytes+len(t.body) <= maxRecent {
			page.tagged, page.made = t, true
			p.bytes += len(t.body)
		}
	}
}

// abandon is called when what was begun cannot be made: there may be no such page.
func (p *recentPages) abandon(u vocab.Username, key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if page := p.users[u][key]; page != nil && !page.made {
		p.remove(u, key)
	}
}

// remove forgets one page. The caller holds mu.
func (p *recentPages) remove(u vocab.Username, key string) {
	if page := p.users[u][key]; page != nil {
		p.bytes -= recentRoom + len(page.body)
		delete(p.users[u], key)
	}
}

// forgetOld forgets the pages that are shown no more. The caller holds mu.
func (p *recentPages) forgetOld(now time.Time) {
	p.swept = now
	for u, of := range p.users {
		for key, page := range of {
			if now.Sub(page.at) > recentTime {
				p.remove(u, key)
			}
		}
		if len(of) == 0 {
			delete(p.users, u)
		}
	}
}

// committed forgets a user's pages when a reader may see anything otherwise.
func (p *recentPages) committed(c db.Commit) {
	if c.Touched.IsZero() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for key := range p.users[c.User] {
		p.remove(c.User, key)
	}
	delete(p.users, c.User)
}

// Committed has readers see what a commit changed, before the writer hears that it succeeded.
func (s *Server) Committed(_ context.Context, c db.Commit) { s.collections.recent.committed(c) }

// isAnonymous reports whether a request says nothing about who asks.
func isAnonymous(r *http.Request) bool {
	return !isSigned(r) && len(r.Header.Values("Authorization")) == 0
}
