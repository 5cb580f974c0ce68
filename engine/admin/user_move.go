package admin

import (
	"context"
	"fmt"
	"slices"

	dbinstance "github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// MovedUser has the other accounts that a user's actor names.
type MovedUser struct {
	User    vocab.Username `json:"user"`
	MovedTo vocab.ID       `json:"moved_to,omitempty"`
	Aliases []vocab.ID     `json:"aliases"`
}

// MoveTo writes in the user's profile that the user's account has moved to another account. That
// account is given by its handle or id, and must list the user's account as an alias. A serving
// engine, or the next one that starts, tells the followers. The fault is NoUser when there is no
// such user or the user is not active, and Conflict when the other account does not list that
// alias or has itself moved. If the other account is not found, the fault is one of Actors.Fetch.
func (us Users) MoveTo(ctx context.Context, name vocab.Username, to string) (MovedUser, error) {
	target, err := us.findAccount(ctx, name, to)
	if err != nil {
		return MovedUser{}, err
	}
	me := us.in.Local.ID(name)
	switch {
	case target.MovedTo != "":
		return MovedUser{}, fault.New(fault.Conflict, fmt.Sprintf("%s has itself moved to %s", target.ID, target.MovedTo)).WithHint("move to that account")
	case !slices.ContainsFunc(target.AlsoKnownAs, me.Same):
		return MovedUser{}, fault.New(fault.Conflict, fmt.Sprintf("%s does not say that it is also known as %s", target.ID, me)).
			WithHint("sign in to that account, and add " + us.in.Local.Handle(name) + " as its alias")
	}
	return us.changeAccounts(name, func(p *registry.Profile) { p.MovedTo = target.ID })
}

// MoveFrom adds another account to the aliases of the user's account. The other account is given
// by its handle or id. Then the other account can move to the user's account.
func (us Users) MoveFrom(ctx context.Context, name vocab.Username, from string) (MovedUser, error) {
	old, err := us.findAccount(ctx, name, from)
	if err != nil {
		return MovedUser{}, err
	}
	return us.changeAccounts(name, func(p *registry.Profile) {
		if !slices.ContainsFunc(p.Aliases, old.ID.Same) {
			p.Aliases = append(p.Aliases, old.ID)
		}
	})
}

// findAccount fetches the current state of another account of the user.
func (us Users) findAccount(ctx context.Context, name vocab.Username, account string) (*vocab.Actor, error) {
	row, err := us.in.DB.Instance.Users.Find(ctx, name)
	if err != nil {
		return nil, err
	}
	if row.State != dbinstance.UserActive {
		return nil, fault.New(fault.NoUser, fmt.Sprintf("the user %q is %s", name, row.State)).WithHint("lightweb user list")
	}
	id, err := Actors(us).findID(ctx, ActorFetch{Resource: account})
	if err != nil {
		return nil, err
	}
	if id.Same(us.in.Local.ID(name)) {
		return nil, fault.New(fault.Usage, "that is the user's own account").WithHint("name the other one")
	}
	a, err := us.askAccount(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("find the account %s: %w", account, err)
	}
	return a, nil
}

// askAccount returns the current state of an account of this or another server. It fetches a
// remote account even if the account was fetched a moment ago, because the owner may just have
// corrected it.
func (us Users) askAccount(ctx context.Context, id vocab.ID) (*vocab.Actor, error) {
	if u, local := us.in.Local.Owner(id); local {
		if _, err := us.in.DB.Instance.Users.FindUndeleted(ctx, u); err != nil {
			return nil, err
		}
		return us.in.Local.Actor(u)
	}
	keys, err := us.in.Keys.Instance()
	if err != nil {
		return nil, err
	}
	a, _, err := us.in.Actors.Ask(ctx, id, &keys)
	return a, err
}

func (us Users) changeAccounts(name vocab.Username, change func(*registry.Profile)) (MovedUser, error) {
	r := MovedUser{User: name}
	err := us.in.Registry.UpdateUser(name, func(c *registry.User) error {
		change(&c.Profile)
		r.MovedTo, r.Aliases = c.Profile.MovedTo, c.Profile.Aliases
		return nil
	})
	return r, err
}
