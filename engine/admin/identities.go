package admin

import (
	"context"
	"fmt"

	dbinstance "github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/oidc"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Identities link users to their identities at an OpenID provider.
type Identities struct{ in *instance.Instance }

// Identity is the identity of a user at a provider.
type Identity = dbinstance.Identity

// Link lets u sign in with an identity at an OpenID provider. issuer names the provider, and
// subject is the provider's id for the identity. An empty issuer means the configured provider.
// The fault is Usage when issuer is empty and no provider is configured, when issuer is too long,
// or when subject is empty or too long. It is NoUser when the user does not exist, or is neither
// active nor suspended. It is Conflict when another user has the identity, or when u has as many
// identities as a user may have.
func (is Identities) Link(ctx context.Context, u vocab.Username, issuer, subject string) error {
	issuer, err := is.nameIdentity(issuer, subject)
	if err != nil {
		return err
	}
	return is.in.DB.Instance.Identities.Link(ctx, u, issuer, subject)
}

// Unlink removes an identity from u, and ends the sessions that were started with it. The fault
// is NotFound when u does not have the identity.
func (is Identities) Unlink(ctx context.Context, u vocab.Username, issuer, subject string) error {
	issuer, err := is.nameIdentity(issuer, subject)
	if err != nil {
		return err
	}
	return is.in.DB.Instance.Identities.Unlink(ctx, u, issuer, subject)
}

// List returns the identities of u, the oldest first. The fault is NoUser when the user does not
// exist.
func (is Identities) List(ctx context.Context, u vocab.Username) ([]Identity, error) {
	if _, err := is.in.DB.Instance.Users.FindUndeleted(ctx, u); err != nil {
		return nil, err
	}
	list, err := is.in.DB.Instance.Identities.List(ctx, u)
	return append([]Identity{}, list...), err
}

func (is Identities) nameIdentity(issuer, subject string) (string, error) {
	if issuer == "" {
		issuer = is.in.Config.OIDC.Issuer
	}
	switch {
	case issuer == "":
		return "", fault.New(fault.Usage, "no OpenID provider is configured").WithHint("set oidc.issuer, or name one with --issuer")
	case len(issuer) > oidc.MaxIssuer:
		return "", fault.New(fault.Usage, fmt.Sprintf("an issuer has at most %d bytes", oidc.MaxIssuer))
	case subject == "" || len(subject) > oidc.MaxSubject:
		return "", fault.New(fault.Usage, fmt.Sprintf("a subject has 1 to %d bytes", oidc.MaxSubject)).WithHint("it is the claim sub of the provider's tokens, not a name or an address")
	}
	return issuer, nil
}
