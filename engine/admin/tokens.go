package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	dbinstance "github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/token"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Tokens are the API tokens of users.
type Tokens struct{ in *instance.Instance }

// Token is an API token without its secret.
type Token = dbinstance.Token

// CheckScopes refuses a text that is not a scope.
func CheckScopes(scopes []string) error {
	for _, s := range scopes {
		if !slices.Contains(dbinstance.Scopes(), s) {
			return fault.New(fault.Usage, fmt.Sprintf("%.40q is not a scope", s)).WithHint("scopes are " + strings.Join(dbinstance.Scopes(), ", "))
		}
	}
	return nil
}

// Create returns a new token and its secret. The secret is not stored. Scopes are read, write,
// admin and llm. With a ttl of zero the token does not expire.
func (ts Tokens) Create(ctx context.Context, u vocab.Username, name string, scopes []string, ttl time.Duration) (Token, string, error) {
	row, err := ts.in.DB.Instance.Users.Find(ctx, u)
	if err != nil {
		return Token{}, "", err
	}
	if row.State != dbinstance.UserActive {
		return Token{}, "", fault.New(fault.NoUser, fmt.Sprintf("the user %q is %s", u, row.State)).WithHint("lightweb user list")
	}
	if err := CheckScopes(scopes); err != nil {
		return Token{}, "", err
	}
	secret, digest := token.New(token.API, u)
	t := Token{ID: uuid.Must(uuid.NewV7()), User: u, Name: name, Scopes: scopes, CreatedAt: ts.in.Now().UTC().Truncate(time.Second)}
	if ttl > 0 {
		at := t.CreatedAt.Add(ttl)
		t.ExpiresAt = &at
	}
	if err := ts.in.DB.Instance.Tokens.Add(ctx, t, digest); err != nil {
		return Token{}, "", err
	}
	return t, secret, nil
}

// List returns the tokens of u, the oldest first. The fault is NoUser when the user does not
// exist.
func (ts Tokens) List(ctx context.Context, u vocab.Username) ([]Token, error) {
	if _, err := ts.in.DB.Instance.Users.FindUndeleted(ctx, u); err != nil {
		return nil, err
	}
	tokens, err := ts.in.DB.Instance.Tokens.List(ctx, u)
	return append([]Token{}, tokens...), err // without tokens the list is empty, not nil
}

// Revoke ends a token immediately, in a serving engine too. The fault is NotFound when u has no
// such token.
func (ts Tokens) Revoke(ctx context.Context, u vocab.Username, id string) error {
	if _, err := ts.in.DB.Instance.Users.FindUndeleted(ctx, u); err != nil {
		return err
	}
	parsed, err := uuid.Parse(id)
	if err != nil {
		return fault.New(fault.Invalid, fmt.Sprintf("%.64q is not the id of a token", id)).WithHint("lightweb user token list " + u.String())
	}
	return ts.in.DB.Instance.Tokens.Remove(ctx, u, parsed)
}
