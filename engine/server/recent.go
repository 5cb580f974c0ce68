package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	// recentTime is the time for which a stored page is shown. A write of this process
	// removes the page immediately. A write of another process is seen within this time.
	recentTime = time.Second

	// maxRecent limits the bytes of all stored pages together. Each page takes recentRoom
	// bytes in addition to its body.
	maxRecent  = 16 << 20
	recentRoom = 512
)

// recentPages stores pages that everybody may see. A stored page is shown for recentTime, and
// needs no read of the database. Therefore many servers that read the same page within this time
// cause few reads of the database.
type recentPages struct {
	now func() time.Time

	mu    sync.Mutex
	bytes int
	swept time.Time                                 // when old pages were last removed
	users map[vocab.Username]map[string]*recentPage // the pages of each user, by their keys
}

// recentPage is a page that is stored, or is being made.
type recentPage struct {
	body []byte
	at   time.Time // when the making of the page began
	made bool
}

func newRecentPages(now func() time.Time) *recentPages {
	return &recentPages{now: now, users: map[vocab.Username]map[string]*recentPage{}}
}

// find returns a page that may still be shown.
func (p *recentPages) find(u vocab.Username, key string) (body []byte, found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	page := p.users[u][key]
	if page == nil || !page.made || p.now().Sub(page.at) > recentTime {
		return nil, false
	}
	return page.body, true
}

// begin is called before the database is read for a page. The result "keep" stores the page that
// was made, unless a commit changed the user's pages meanwhile or there is no room. If several
// requests make the page at the same time, the first that is done stores it.
func (p *recentPages) begin(u vocab.Username, key string) (keep func(body []byte)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := p.now(); p.bytes > maxRecent/2 && now.Sub(p.swept) > recentTime {
		p.forgetOld(now)
	}
	if p.bytes >= maxRecent {
		return func([]byte) {}
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
	return func(body []byte) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.users[u][key] == page && !page.made && p.bytes+len(body) <= maxRecent {
			page.body, page.made = body, true
			p.bytes += len(body)
		}
	}
}

// abandon removes a page that was begun but cannot be made. It does nothing if there is no such
// page.
func (p *recentPages) abandon(u vocab.Username, key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if page := p.users[u][key]; page != nil && !page.made {
		p.remove(u, key)
	}
}

// remove removes one page. The caller holds mu.
func (p *recentPages) remove(u vocab.Username, key string) {
	if page := p.users[u][key]; page != nil {
		p.bytes -= recentRoom + len(page.body)
		delete(p.users[u], key)
	}
}

// forgetOld removes the pages that are too old to be shown. The caller holds mu.
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

// committed removes a user's pages if the commit may have changed what a reader sees.
func (p *recentPages) committed(c user.Commit) {
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

// Committed makes a commit visible to readers before the writer learns that the commit succeeded.
func (s *Server) Committed(_ context.Context, c user.Commit) { s.collections.recent.committed(c) }

// isAnonymous reports whether a request says nothing about its sender.
func isAnonymous(r *http.Request) bool {
	return !isSigned(r) && len(r.Header.Values("Authorization")) == 0
}
