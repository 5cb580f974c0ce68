package instance

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The scopes of a token.
const (
	ScopeRead  = "read"
	ScopeWrite = "write"
	ScopeAdmin = "admin"
	ScopeLLM   = "llm" // for the LLM engine, which is trusted less than the user
)

// Scopes returns all scopes that a token can have.
func Scopes() []string { return []string{ScopeRead, ScopeWrite, ScopeAdmin, ScopeLLM} }

// Tokens are the API tokens of all users.
type Tokens struct {
	on      conns
	lookups *tokenLookups
}

// Token is a stored API token. The secret of a token is not stored, only a digest of it.
type Token struct {
	ID         uuid.UUID      `json:"id"`
	User       vocab.Username `db:"username" json:"user"`
	Name       string         `json:"name,omitempty"`
	Scopes     []string       `json:"scopes"`
	CreatedAt  time.Time      `json:"created_at"`
	LastUsedAt *time.Time     `json:"last_used_at,omitempty"` // to the hour; nil: never
	ExpiresAt  *time.Time     `json:"expires_at,omitempty"`   // nil: never
}

// Has reports whether the token has a scope. ScopeAdmin includes ScopeWrite.
func (t Token) Has(scope string) bool {
	return slices.Contains(t.Scopes, scope) || scope == ScopeWrite && slices.Contains(t.Scopes, ScopeAdmin)
}

const tokenColumns = `id, username, name, scopes, created_at, last_used_at, expires_at`

// Add stores a token under the SHA-256 of its secret.
func (s Tokens) Add(ctx context.Context, t Token, digest [32]byte) error {
	_, err := s.on.Exec(ctx, `INSERT INTO tokens (id, digest, username, name, scopes, created_at, expires_at)
		VALUES (@id, @digest, @user, @name, @scopes, @created, @expires)`,
		pgx.NamedArgs{"id": t.ID, "digest": digest[:], "user": t.User, "name": t.Name, "scopes": t.Scopes, "created": t.CreatedAt, "expires": t.ExpiresAt})
	return postgres.Fault("store token", err)
}

// Find returns the token with this digest. The fault is Unauthenticated when there is no such
// token, when the token has expired, or when its user is not active. Find also stores, at most
// once an hour, that the token is used. The time that a look-up by digest takes reveals nothing
// about the secret.
func (s Tokens) Find(ctx context.Context, digest [32]byte, now time.Time) (Token, error) {
	t, err := s.lookups.find(ctx, digest)
	if err != nil {
		return Token{}, err
	}
	if t == nil || t.ExpiresAt != nil && !t.ExpiresAt.After(now) {
		return Token{}, fault.New(fault.Unauthenticated, "the token is not valid").WithCode("invalid_token")
	}
	if hourAgo := now.Add(-time.Hour); t.LastUsedAt == nil || !t.LastUsedAt.After(hourAgo) {
		_, err = s.on.Exec(ctx, `UPDATE tokens SET last_used_at = $2 WHERE id = $1 AND (last_used_at IS NULL OR last_used_at <= $3)`, t.ID, now, hourAgo)
	}
	return *t, postgres.Fault("note use of token", err)
}

// ListValid returns those of the tokens that exist, have not expired, and belong to an active user.
func (s Tokens) ListValid(ctx context.Context, ids []uuid.UUID, now time.Time) ([]uuid.UUID, error) {
	return postgres.CollectColumn[uuid.UUID](ctx, s.on, "list valid tokens", `SELECT id FROM tokens JOIN users USING (username)
		WHERE id = ANY($1) AND (expires_at IS NULL OR expires_at > $2::timestamptz) AND state = 'active'`, ids, now)
}

// List returns the tokens of u, the oldest first.
func (s Tokens) List(ctx context.Context, u vocab.Username) ([]Token, error) {
	return postgres.Collect[Token](ctx, s.on, "list tokens", `SELECT `+tokenColumns+` FROM tokens WHERE username = $1 ORDER BY created_at, id`, u)
}

// Remove revokes a token with immediate effect. The fault is NotFound when u has no such token.
func (s Tokens) Remove(ctx context.Context, u vocab.Username, id uuid.UUID) error {
	tag, err := s.on.Exec(ctx, `DELETE FROM tokens WHERE username = $1 AND id = $2`, u, id)
	if err != nil {
		return postgres.Fault("revoke token", err)
	}
	if tag.RowsAffected() == 0 {
		return fault.New(fault.NotFound, "the user has no such token").WithHint("lightweb user token list " + u.String())
	}
	return nil
}
