package instance

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	identityName = "oidc" // the name of a token that stands for an identity

	// MostIdentities limits how many identities a user may have.
	MostIdentities = 10
)

// Identities are the accounts at OpenID providers with which users sign in. An identity is stored
// as a token without a secret, like a password.
type Identities struct{ on conns }

// Identity is an account at a provider that is linked to a user.
type Identity struct {
	User      vocab.Username `db:"username" json:"user"`
	Issuer    string         `json:"issuer"`
	Subject   string         `json:"subject"`
	CreatedAt time.Time      `json:"linked_at"`
}

// Link lets u sign in with an identity. If the identity is linked to u already, Link changes
// nothing. The fault is NoUser when u does not exist, or is neither active nor suspended. It is
// Conflict when the identity is linked to another user, or when u has MostIdentities already.
func (s Identities) Link(ctx context.Context, u vocab.Username, issuer, subject string) error {
	var digest [32]byte
	_, _ = rand.Read(digest[:]) // crypto/rand never fails
	linked := false
	err := s.on.inTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := lockUser(ctx, tx, u); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `INSERT INTO tokens (id, digest, username, name, scopes, oidc_issuer, oidc_subject)
			SELECT @id, @digest, username, @name, @scopes, @issuer, @subject FROM users WHERE username = @user AND state IN ('active', 'suspended')
				AND (SELECT count(*) FROM tokens WHERE username = @user AND oidc_subject IS NOT NULL) < @most
			ON CONFLICT (oidc_issuer, oidc_subject) WHERE oidc_subject IS NOT NULL DO NOTHING`, pgx.NamedArgs{"id": uuid.Must(uuid.NewV7()), "digest": digest[:],
			"user": u, "name": identityName, "scopes": PasswordScopes(), "issuer": issuer, "subject": subject, "most": MostIdentities})
		linked = err == nil && tag.RowsAffected() > 0
		return err
	})
	if err != nil || linked {
		return postgres.Fault("link identity", err)
	}
	return s.explainUnlinked(ctx, u, issuer, subject)
}

// lockUser locks the row of u until the end of tx. Every transaction that limits the number of
// rows of a user takes this lock first. So it counts all rows that earlier transactions have
// added.
func lockUser(ctx context.Context, tx pgx.Tx, u vocab.Username) error {
	_, err := tx.Exec(ctx, `SELECT FROM users WHERE username = $1 FOR NO KEY UPDATE`, u)
	return err
}

// explainUnlinked returns the fault that says why Link stored nothing, or nil if the identity is
// linked to u already.
func (s Identities) explainUnlinked(ctx context.Context, u vocab.Username, issuer, subject string) error {
	type row struct{ State, Holder string }
	found, err := postgres.First[row](ctx, s.on, "look for identity", `SELECT state,
			coalesce((SELECT t.username FROM tokens t WHERE t.oidc_issuer = $2 AND t.oidc_subject = $3), '') AS holder
		FROM users WHERE username = $1 AND state IN ('active', 'suspended')`, u, issuer, subject)
	switch {
	case err != nil:
		return err
	case found == nil:
		return fault.New(fault.NoUser, fmt.Sprintf("there is no user %q who could sign in", u)).WithHint("lightweb user list")
	case found.Holder == u.String():
		return nil
	case found.Holder != "":
		return fault.New(fault.Conflict, "the identity is linked to "+found.Holder).WithHint("lightweb user link-oidc " + found.Holder + " --list")
	}
	return fault.New(fault.Conflict, fmt.Sprintf("%s has %d identities, the most there may be", u, MostIdentities)).WithHint("remove one: --remove")
}

// Find returns the active user who signs in with an identity, and the digest from which the
// user's sessions are made. The result "found" is false when there is no such user.
func (s Identities) Find(ctx context.Context, issuer, subject string) (u vocab.Username, digest [32]byte, found bool, err error) {
	type row struct {
		Username vocab.Username
		Digest   []byte
	}
	r, err := postgres.First[row](ctx, s.on, "find identity", `SELECT username, digest FROM tokens JOIN users USING (username)
		WHERE oidc_issuer = $1 AND oidc_subject = $2 AND state = 'active'`, issuer, subject)
	if err != nil || r == nil || len(r.Digest) != len(digest) {
		return u, digest, false, err
	}
	return r.Username, [32]byte(r.Digest), true, nil
}

// List returns the identities of u, the oldest first.
func (s Identities) List(ctx context.Context, u vocab.Username) ([]Identity, error) {
	return postgres.Collect[Identity](ctx, s.on, "list identities", `SELECT username, oidc_issuer AS issuer, oidc_subject AS subject, created_at
		FROM tokens WHERE username = $1 AND oidc_subject IS NOT NULL ORDER BY created_at, id`, u)
}

// Unlink removes an identity from u, and ends the sessions that were made with it. The fault is
// NotFound when the identity is not linked to u.
func (s Identities) Unlink(ctx context.Context, u vocab.Username, issuer, subject string) error {
	tag, err := s.on.Exec(ctx, `DELETE FROM tokens WHERE username = $1 AND oidc_issuer = $2 AND oidc_subject = $3`, u, issuer, subject)
	if err == nil && tag.RowsAffected() == 0 {
		return fault.New(fault.NotFound, fmt.Sprintf("the identity is not linked to %s", u)).WithHint("lightweb user link-oidc " + u.String() + " --list")
	}
	return postgres.Fault("unlink identity", err)
}
