package admin

import (
	"context"
	"slices"
	"strings"

	dbinstance "github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// mergeMutes returns a change that first does what mergeProfile does. Then it adds the actors that
// the engine will mute when it fulfils the wishes to mute, both the waiting wishes and those of
// the import. A handle that no stored actor has may belong to a muted actor that is not stored any
// more. So only the handles in excess of such actors count. For each of them the change adds the
// user's own id.
func (r *importRun) mergeMutes(ctx context.Context) (func(*registry.User) error, error) {
	merge := r.mergeProfile("")
	var accounts []string
	for _, w := range r.luggage.wishes {
		if w.Kind == dbinstance.WishMute {
			accounts = append(accounts, w.Account)
		}
	}
	if len(accounts) == 0 {
		return merge, nil
	}
	waiting, err := r.in.DB.Instance.Wishes.ListAccounts(ctx, r.report.User, dbinstance.WishMute)
	if err != nil {
		return nil, err
	}
	known, unknown, err := r.findActors(ctx, append(accounts, waiting...))
	if err != nil {
		return nil, err
	}
	return func(c *registry.User) error {
		if err := merge(c); err != nil {
			return err
		}
		m := &c.Moderation
		stored, err := r.in.Actors.KnownAll(ctx, m.MutedActors)
		if err != nil {
			return err
		}
		forgotten := 0
		for _, a := range stored {
			if a == nil {
				forgotten++
			}
		}
		for _, id := range known {
			if !slices.ContainsFunc(m.MutedActors, id.Same) {
				m.MutedActors = append(m.MutedActors, id)
			}
		}
		m.MutedActors = append(m.MutedActors, slices.Repeat([]vocab.ID{r.in.Local.ID(r.report.User)}, max(0, unknown-forgotten))...)
		return nil
	}, nil
}

// findActors returns the ids of the accounts, which are ids or handles, and the number of handles
// that no stored actor has. It fetches nothing.
func (r *importRun) findActors(ctx context.Context, accounts []string) (known []vocab.ID, unknown int, err error) {
	handles := map[string]bool{}
	for _, account := range accounts {
		if id, err := vocab.ParseID(account); err == nil {
			known = append(known, id)
		} else {
			handles[strings.ToLower(account)] = true
		}
	}
	for handle := range handles {
		a, err := r.in.Actors.KnownHandle(ctx, handle)
		switch {
		case err != nil && fault.KindOf(err) != fault.Invalid:
			return nil, 0, err
		case a == nil: // or the account is no handle, and the engine gives it up
			unknown++
		default:
			known = append(known, a.ID)
		}
	}
	return known, unknown, nil
}
