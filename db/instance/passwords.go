package instance

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// passwordName is the name of a token that stands for a password.
const passwordName = "password"

// Passwords are the passwords of all users. A password is stored as a token without a secret. When
// a user signs in, a session is made from that token. The session has the scopes of the token, and
// ends when the password is removed or replaced.
type Passwords struct{ on conns }

// Password is a stored password.
type Password struct {
	ID     uuid.UUID
	Digest [32]byte // a random number, not the digest of a secret; sessions are made from it
	Hash   string   // in PHC form
}

// NewPassword returns a new password with this hash. No sessions belong to it yet.
func NewPassword(hash string) Password {
	p := Password{ID: uuid.Must(uuid.NewV7()), Hash: hash}
	_, _ = rand.Read(p.Digest[:]) // crypto/rand never fails
	return p
}

// PasswordScopes returns the scopes of a session whose user has signed in by password or with an
// OpenID identity.
func PasswordScopes() []string { return []string{ScopeRead, ScopeWrite} }

// arguments returns the named arguments of the queries below.
func (p Password) arguments(u vocab.Username) pgx.NamedArgs {
	return pgx.NamedArgs{"id": p.ID, "digest": p.Digest[:], "user": u, "name": passwordName, "scopes": PasswordScopes(), "hash": p.Hash}
}

// Set stores the password of u, and replaces an earlier one. The fault is NoUser when there is no
// such user, or when the user is deleted or being deleted.
func (s Passwords) Set(ctx context.Context, u vocab.Username, p Password) error {
	tag, err := s.on.Exec(ctx, `INSERT INTO tokens (id, digest, username, name, scopes, password)
		SELECT @id, @digest, username, @name, @scopes, @hash FROM users WHERE username = @user AND state IN ('creating', 'active', 'suspended')
		ON CONFLICT (username) WHERE password IS NOT NULL DO UPDATE
		SET id = EXCLUDED.id, digest = EXCLUDED.digest, password = EXCLUDED.password, created_at = EXCLUDED.created_at, last_used_at = NULL`, p.arguments(u))
	if err == nil && tag.RowsAffected() == 0 {
		return fault.New(fault.NoUser, fmt.Sprintf("there is no user %q who could have a password", u)).WithHint("lightweb user list")
	}
	return postgres.Fault("store password", err)
}

// Replace stores p in place of the password whose id is the parameter old. The fault is Conflict
// when u has another password by now, or has no password.
func (s Passwords) Replace(ctx context.Context, u vocab.Username, old uuid.UUID, p Password) error {
	args := p.arguments(u)
	args["old"] = old
	tag, err := s.on.Exec(ctx, `UPDATE tokens SET id = @id, digest = @digest, password = @hash, created_at = now(), last_used_at = NULL
		WHERE username = @user AND id = @old AND password IS NOT NULL`, args)
	if err == nil && tag.RowsAffected() == 0 {
		return fault.New(fault.Conflict, "the password was changed meanwhile").WithCode("changed_meanwhile")
	}
	return postgres.Fault("replace password", err)
}

// SetHash stores another hash of the same password, whose sessions remain valid. It changes
// nothing when the password whose id is the parameter id was replaced or removed.
func (s Passwords) SetHash(ctx context.Context, id uuid.UUID, hash string) error {
	_, err := s.on.Exec(ctx, `UPDATE tokens SET password = $2 WHERE id = $1 AND password IS NOT NULL`, id, hash)
	return postgres.Fault("store hash of password", err)
}

// Find returns the password of u; nil when u has none, is not active, or does not exist.
func (s Passwords) Find(ctx context.Context, u vocab.Username) (*Password, error) {
	type row struct {
		ID     uuid.UUID
		Digest []byte
		Hash   string
	}
	found, err := postgres.First[row](ctx, s.on, "find password", `SELECT id, digest, password AS hash FROM tokens JOIN users USING (username)
		WHERE username = $1 AND password IS NOT NULL AND state = 'active'`, u)
	if err != nil || found == nil || len(found.Digest) != 32 {
		return nil, err
	}
	return &Password{found.ID, [32]byte(found.Digest), found.Hash}, nil
}

// Has reports whether u has a password, whether or not u is active.
func (s Passwords) Has(ctx context.Context, u vocab.Username) (has bool, err error) {
	err = s.on.QueryRow(ctx, `SELECT EXISTS (SELECT FROM tokens WHERE username = $1 AND password IS NOT NULL)`, u).Scan(&has)
	return has, postgres.Fault("look for password", err)
}

// Remove removes the password of u; the fault is NotFound when there is none.
func (s Passwords) Remove(ctx context.Context, u vocab.Username) error {
	tag, err := s.on.Exec(ctx, `DELETE FROM tokens WHERE username = $1 AND password IS NOT NULL`, u)
	if err == nil && tag.RowsAffected() == 0 {
		return fault.New(fault.NotFound, fmt.Sprintf("the user %q has no password", u)).WithHint("lightweb user passwd " + u.String())
	}
	return postgres.Fault("remove password", err)
}
