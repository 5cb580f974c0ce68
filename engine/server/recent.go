package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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
// needs no read of the database. While one request makes a page, others wait for it. Therefore
// many servers that read the same page at once, or within this time, cause one read of the
// database.
type recentPages struct {
	now     func() time.Time
	results *prometheus.CounterVec

	mu    sync.Mutex
	bytes int
	swept time.Time                                 // when old pages were last removed
	users map[vocab.Username]map[string]*recentPage // the pages of each user, by their keys
}

// recentPage is a page that is stored, or is being made.
type recentPage struct {
	body   []byte
	at     time.Time // when the making of the page began
	made   bool
	failed bool          // the page could not be made
	done   chan struct{} // closed when the page is made or removed
}

func newRecentPages(now func() time.Time, reg prometheus.Registerer) *recentPages {
	p := &recentPages{now: now, users: map[vocab.Username]map[string]*recentPage{}, results: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "lightweb_recent_page_reads_total",
		Help: "Reads of pages for everybody by result: hit, from memory; miss, made from the database.",
	}, []string{"result"})}
	for _, result := range []string{"hit", "miss"} {
		p.results.WithLabelValues(result)
	}
	if reg != nil {
		reg.MustRegister(p.results)
	}
	return p
}

// find returns a page that may still be shown.
func (p *recentPages) find(u vocab.Username, key string) (body []byte, found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	page := p.users[u][key]
	if page == nil || !page.made || p.now().Sub(page.at) > recentTime {
		return nil, false
	}
	p.results.WithLabelValues("hit").Inc()
	return page.body, true
}

// obtain returns a page that may be shown, if there is one or another request makes it now. A
// request waits no longer than a page is shown. Otherwise the result "keep" is not nil: the
// caller makes the page, and calls keep with its body, or with nil if it could not make it.
func (p *recentPages) obtain(ctx context.Context, u vocab.Username, key string) (body []byte, keep func(body []byte)) {
	ctx, cancel := context.WithTimeout(ctx, recentTime)
	defer cancel()
	for {
		if body, found := p.find(u, key); found {
			return body, nil
		}
		keep, making := p.begin(u, key)
		if making == nil || ctx.Err() != nil || !making.await(ctx) {
			p.results.WithLabelValues("miss").Inc()
			return nil, keep
		}
	}
}

// await waits until the page is made or removed. It reports whether it is worth to look for the
// page again: the page is made, or a commit removed it. If the page could not be made, each
// request tries on its own, because they would fail one after the other.
func (page *recentPage) await(ctx context.Context) (again bool) {
	select {
	case <-page.done:
		return !page.failed
	case <-ctx.Done():
		return false
	}
}

// begin is called before the database is read for a page. The result "keep" stores the page that
// was made, unless a commit changed the user's pages meanwhile or there is no room. If another
// request makes the page already, the result "making" is that page. If several requests make the
// page at the same time, the first that is done stores it.
func (p *recentPages) begin(u vocab.Username, key string) (keep func(body []byte), making *recentPage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := p.now(); p.bytes > maxRecent/2 && now.Sub(p.swept) > recentTime {
		p.forgetOld(now)
	}
	if p.bytes >= maxRecent {
		return func([]byte) {}, nil
	}
	of := p.users[u]
	if of == nil {
		of = map[string]*recentPage{}
		p.users[u] = of
	}
	page := of[key]
	if page == nil || p.now().Sub(page.at) > recentTime {
		p.remove(u, key)
		page = &recentPage{at: p.now(), done: make(chan struct{})}
		of[key] = page
		p.bytes += recentRoom
		return p.keeper(u, key, page), nil
	}
	return p.keeper(u, key, page), page
}

// keeper returns the function that stores the body of a page that was begun, or removes the page
// if it could not be made and its body is nil.
func (p *recentPages) keeper(u vocab.Username, key string, page *recentPage) func(body []byte) {
	return func(body []byte) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.users[u][key] != page || page.made {
			return
		}
		if body == nil || p.bytes+len(body) > maxRecent {
			page.failed = true
			p.remove(u, key)
			return
		}
		page.body, page.made = body, true
		p.bytes += len(body)
		close(page.done)
	}
}

// remove removes one page. The caller holds mu.
func (p *recentPages) remove(u vocab.Username, key string) {
	if page := p.users[u][key]; page != nil {
		p.bytes -= recentRoom + len(page.body)
		delete(p.users[u], key)
		if !page.made {
			close(page.done)
		}
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
