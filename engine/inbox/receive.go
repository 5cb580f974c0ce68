package inbox

import (
	"context"
	"errors"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

// receive makes the checks that need nothing fetched or parsed. It refuses a request with another
// media type or with an encoding, a request to an inbox that does not exist, and one whose
// signature cannot be valid. It also refuses a request of a suspended actor, of a blocked host, or
// of a host that has sent too much.
func (i *Inbox) receive(ctx context.Context, x *receiving) error {
	h := x.Request.Header
	if h.Get("Content-Encoding") != "" {
		return fault.New(fault.Unsupported, "a Content-Encoding is not taken")
	}
	if types := h.Values("Content-Type"); len(types) != 1 || !transport.IsActivityMediaType(types[0]) {
		return fault.New(fault.Unsupported, "send application/activity+json or application/ld+json with the ActivityStreams profile")
	}
	if err := i.checkClaims(x); err != nil {
		return err
	}
	if x.User.IsZero() {
		return nil
	}
	return i.checkAddressed(ctx, x.User)
}

// checkClaims refuses a request without a signature that may be valid. It also refuses a
// request with a key of an actor or host that is blocked, or of a host that has used up its
// request rate.
func (i *Inbox) checkClaims(x *receiving) (err error) {
	if x.claims, err = i.Verifier.Claims(x.Request, x.Body); err != nil {
		return err
	}
	for _, c := range x.claims {
		key := vocab.IDOf(c.KeyID)
		if err := i.Gate.CheckActor(key); err != nil {
			return err
		}
		if err := i.budgets.checkHost(key.Host()); err != nil {
			return err
		}
	}
	return nil
}

// checkAddressed refuses a request to a personal inbox that does not exist.
func (i *Inbox) checkAddressed(ctx context.Context, u vocab.Username) error {
	if active, err := i.Store.Instance.Users.Active(ctx, []vocab.Username{u}); err != nil || len(active) == 1 {
		return err
	}
	row, err := i.Store.Instance.Users.Find(ctx, u)
	switch {
	case fault.KindOf(err) == fault.NoUser, err == nil && row.State == instance.UserCreating:
		return fault.New(fault.NotFound, "there is no such inbox")
	case err != nil:
		return err
	}
	return fault.New(fault.Gone, "the user is not here any more")
}

// outcomeOf names how a request ended, for counting.
func outcomeOf(err error) string {
	switch {
	case err == nil:
		return "accepted"
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	switch fault.KindOf(err) {
	case fault.Internal:
		return "failed"
	case fault.Unavailable, fault.Busy:
		return "unavailable"
	case fault.Unauthenticated:
		return "unauthenticated"
	case fault.Forbidden:
		return "forbidden"
	case fault.RateLimited:
		return "limited"
	default:
		return "refused"
	}
}
