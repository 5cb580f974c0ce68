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
	nodeInfoSchema = "http://nodeinfo.diaspora.software/ns/schema/2.1"
	relApplication = "https://www.w3.org/ns/activitystreams#Application" // FEP-d556
	homepage       = "https://lightwebbrowser.org"
	repository     = "https://github.com/lightweb/lightweb"
)

// getNodeInfoLinks tells where NodeInfo and the instance actor are (FEP-f1d5).
func (s *discovery) getNodeInfoLinks(a *answer, r *http.Request, _ httprouter.Params) error {
	a.allowAnyOrigin()
	a.setCache(cachePublic)
	a.sendTagged(r, "application/json", vocab.Doc{"links": []any{
		vocab.Doc{"rel": nodeInfoSchema, "href": s.local.Origin() + "/nodeinfo/2.1"},
		vocab.Doc{"rel": relApplication, "href": string(s.local.InstanceID())},
	}}.JSON())
	return nil
}

// getNodeInfo tells what runs here. It names nobody, and counts users roughly.
func (s *discovery) getNodeInfo(a *answer, r *http.Request, _ httprouter.Params) error {
	a.allowAnyOrigin()
	total, err := s.users.countUsers(r.Context(), s.now(), s.store.Instance.Users.CountActive)
	if err != nil {
		return err
	}
	none := []any{}
	a.setCache(cachePublic)
	a.sendTagged(r, `application/json; profile="`+nodeInfoSchema+`#"`, vocab.Doc{
		"version":           "2.1",
		"software":          vocab.Doc{"name": "lightweb", "version": s.version, "homepage": homepage, "repository": repository},
		"protocols":         []any{"activitypub"},
		"services":          vocab.Doc{"inbound": none, "outbound": none},
		"openRegistrations": false,
		"usage":             vocab.Doc{"users": vocab.Doc{"total": roundRoughly(total)}},
		"metadata":          vocab.Doc{},
	}.JSON())
	return nil
}

// roundRoughly keeps the two leading digits: nobody can tell from it when somebody came or went.
func roundRoughly(n int) int {
	unit := 1
	for n/unit >= 100 {
		unit *= 10
	}
	return n / unit * unit
}

// countEvery is how long a count is repeated: strangers cannot make us count without end.
const countEvery = time.Minute

// userCount is how many users there were not long ago.
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
