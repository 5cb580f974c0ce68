package db

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// What a token can be for.
const (
	ScopeRead  = "read"
	ScopeWrite = "write"
	ScopeAdmin = "admin"
	ScopeLLM   = "llm" // of the LLM engine, which is not trusted like its user
)

// Scopes are all that a token can be for.
func Scopes() []string { return []string{ScopeRead, ScopeWrite, ScopeAdmin, ScopeLLM} }

// Token is what is stored of an API token: never its secret, only a digest of it.
type Token struct {
	ID         uuid.UUID
	User       vocab.Username
	Name       string
	Scopes     []string
	CreatedAt  time.Time
	LastUsedAt *time.Time // to the hour; nil: never
	ExpiresAt  *time.Time // nil: never
}

const tokenColumns = `id, username, name, scopes, created_at, last_used_at, expires_at`

// AddToken stores a token under the SHA-256 of its secret.
func (c *Cluster) AddToken(ctx context.Context, t Token, digest [32]byte) error {
	_, err := c.instance.Exec(ctx, `INSERT INTO tokens (id, digest, username, name, scopes, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		t.ID, digest[:], t.User, t.Name, t.Scopes, t.CreatedAt, t.ExpiresAt)
	return postgres.Fault("store token", err)
}

// FindToken returns the token with this digest, if it has not expired and its user is active; the fault is
// Unauthenticated. The look-up by a digest leaks nothing about the secret through its timing.
func (c *Cluster) FindToken(ctx context.Context, digest [32]byte, now time.Time) (Token, error) {
	rows, err := c.instance.Query(ctx, `
		WITH found AS (
			SELECT `+tokenColumns+` FROM tokens WHERE digest = $1 AND (expires_at IS NULL OR expires_at > $2::timestamptz)
				AND EXISTS (SELECT FROM users WHERE users.username = tokens.username AND state = 'active')
		), used AS (
			UPDATE tokens SET last_used_at = $2 FROM found
			WHERE tokens.id = found.id AND (found.last_used_at IS NULL OR found.last_used_at <= $2 - interval '1 hour')
		)
		SELECT * FROM found`, digest[:], now)
	if err != nil {
		return Token{}, postgres.Fault("find token", err)
	}
	t, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Token])
	if postgres.IsNoRows(err) {
		return Token{}, fault.New(fault.Unauthenticated, "the token is not valid").WithCode("invalid_token")
	}
	return t, postgres.Fault("find token", err)
}

// Tokens returns the tokens of u, the oldest first.
func (c *Cluster) Tokens(ctx context.Context, u vocab.Username) ([]Token, error) {
	rows, err := c.instance.Query(ctx, `SELECT `+tokenColumns+` FROM tokens WHERE username = $1 ORDER BY created_at, id`, u)
	if err != nil {
		return nil, postgres.Fault("list tokens", err)
	}
	tokens, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Token])
	return tokens, postgres.Fault("list tokens", err)
}

// RemoveToken revokes a token at once; the fault is NotFound when u has no such token.
func (c *Cluster) RemoveToken(ctx context.Context, u vocab.Username, id uuid.UUID) error {
	tag, err := c.instance.Exec(ctx, `DELETE FROM tokens WHERE username = $1 AND id = $2`, u, id)
	if err != nil {
		return postgres.Fault("revoke token", err)
	}
	if tag.RowsAffected() == 0 {
		return fault.New(fault.NotFound, "the user has no such token").WithHint("lightweb user token list " + u.String())
	}
	return nil
}
