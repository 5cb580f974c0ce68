package server

import (
	"context"
	"time"

	"golang.org/x/time/rate"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	maxOpens  = 20              // users' databases a second that strangers may make us connect to
	placeTime = 2 * time.Second // how long a stranger waits for a place
)

// visits bounds what strangers take of users' databases: how many connections a second are opened for them, and how
// many they hold. Users and their inboxes have the rest to themselves.
type visits struct {
	opens  *rate.Limiter
	places chan struct{}
}

func newVisits(places int) visits {
	return visits{rate.NewLimiter(maxOpens, maxOpens), make(chan struct{}, max(places, 1))}
}

// visit reads u's database for somebody who is not u.
func (s *Server) visit(ctx context.Context, u vocab.Username, work func(context.Context, *db.Tx) error) error {
	if !s.Store.Warm(u) && !s.visits.opens.AllowN(s.Now(), 1) {
		return errCrowded
	}
	waiting, cancel := context.WithTimeout(ctx, placeTime)
	defer cancel()
	select {
	case s.visits.places <- struct{}{}:
	case <-waiting.Done():
		return errCrowded
	}
	defer func() { <-s.visits.places }()
	return s.Store.Read(ctx, u, work)
}

var errCrowded = fault.New(fault.Unavailable, "too many are asking: try again later").WithCode("crowded").After(time.Second)
