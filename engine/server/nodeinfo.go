package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	nodeInfoSchema = "http://nodeinfo.diaspora.software/ns/schema/"
	relApplication = "https://www.w3.org/ns/activitystreams#Application" // FEP-d556
	homepage       = "https://lightwebbrowser.org"
	repository     = "https://github.com/lightweb/lightweb"
)

// getNodeInfoLinks tells where NodeInfo and the instance actor are (FEP-f1d5). The first link is
// one to NodeInfo, because Gancio follows the first.
func (s *discovery) getNodeInfoLinks(a *answer, r *http.Request, _ httprouter.Params) error {
	a.allowAnyOrigin()
	a.setCache(cachePublic)
	a.sendTagged(r, "application/json", vocab.Doc{"links": []any{
		vocab.Doc{"rel": nodeInfoSchema + "2.1", "href": s.local.Origin() + "/nodeinfo/2.1"},
		vocab.Doc{"rel": nodeInfoSchema + "2.0", "href": s.local.Origin() + "/nodeinfo/2.0"},
		vocab.Doc{"rel": relApplication, "href": string(s.local.InstanceID())},
	}}.JSON())
	return nil
}

// getNodeInfo describes the software of this server. It names no users, and counts them roughly.
func (s *discovery) getNodeInfo(a *answer, r *http.Request, _ httprouter.Params) error {
	return s.sendNodeInfo(a, r, "2.1", vocab.Doc{"name": "lightweb", "version": s.version, "homepage": homepage, "repository": repository})
}

// getOldNodeInfo is getNodeInfo in version 2.0 of the schema, which Takahē and others read alone.
func (s *discovery) getOldNodeInfo(a *answer, r *http.Request, _ httprouter.Params) error {
	return s.sendNodeInfo(a, r, "2.0", vocab.Doc{"name": "lightweb", "version": s.version})
}

func (s *discovery) sendNodeInfo(a *answer, r *http.Request, version string, software vocab.Doc) error {
	a.allowAnyOrigin()
	total, err := s.users.countUsers(r.Context(), s.now(), s.store.Instance.Users.CountActive)
	if err != nil {
		return err
	}
	none := []any{}
	a.setCache(cachePublic)
	a.sendTagged(r, `application/json; profile="`+nodeInfoSchema+version+`#"`, vocab.Doc{
		"version":           version,
		"software":          software,
		"protocols":         []any{"activitypub"},
		"services":          vocab.Doc{"inbound": none, "outbound": none},
		"openRegistrations": false,
		"usage":             vocab.Doc{"users": vocab.Doc{"total": roundRoughly(total)}},
		"metadata":          vocab.Doc{},
	}.JSON())
	return nil
}

// roundRoughly keeps the two leading digits, so that the count does not show when users come or
// go.
func roundRoughly(n int) int {
	unit := 1
	for n/unit >= 100 {
		unit *= 10
	}
	return n / unit * unit
}

// countEvery is the time for which a count is reused, so that strangers cannot make this server
// count all the time.
const countEvery = time.Minute

// userCount stores a recent count of the users.
type userCount struct {
	mu    sync.Mutex
	total int
	until time.Time
}

func (c *userCount) countUsers(ctx context.Context, now time.Time, ask func(context.Context) (int, error)) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Before(c.until) {
		return c.total, nil
	}
	total, err := ask(ctx)
	if err == nil {
		c.total, c.until = total, now.Add(countEvery)
	}
	return total, err
}
