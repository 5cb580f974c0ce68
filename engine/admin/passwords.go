package admin

import (
	"context"

	dbinstance "github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/token"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Passwords are the passwords with which users sign in.
type Passwords struct{ in *instance.Instance }

// Set gives u a password. Sessions that were started with the earlier password end, in a serving
// engine too. The fault is NoUser when the user does not exist or was deleted, and Unprocessable
// when the text cannot be a password.
func (ps Passwords) Set(ctx context.Context, u vocab.Username, password string) error {
	if err := token.CheckPassword(password); err != nil {
		return err
	}
	return ps.in.DB.Instance.Passwords.Set(ctx, u, dbinstance.NewPassword(token.HashPassword(password)))
}

// Remove removes the password of u, and ends the sessions that were started with it. The fault
// is NoUser when the user does not exist, and NotFound when the user has no password.
func (ps Passwords) Remove(ctx context.Context, u vocab.Username) error {
	if _, err := ps.in.DB.Instance.Users.FindUndeleted(ctx, u); err != nil {
		return err
	}
	return ps.in.DB.Instance.Passwords.Remove(ctx, u)
}
