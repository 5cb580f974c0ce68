package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/token"
	"github.com/lightweb/lightweb/engine/vocab"
)

// User is what the command line shows of a user.
type User struct {
	Name          vocab.Username `json:"user"`
	Actor         vocab.ID       `json:"actor"`
	Handle        string         `json:"handle"` // @alice@example.org
	State         string         `json:"state"`  // active, creating, suspended, deleted
	Database      string         `json:"database"`
	SchemaVersion int            `json:"schema_version"`
	Keys          []string       `json:"keys"` // "ed25519", "rsa"
	KeysDir       string         `json:"keys_dir"`
	CreatedAt     time.Time      `json:"created_at"`
	Refused       string         `json:"config_error,omitempty"` // why the configuration cannot be used as it is; of one user alone
}

func (e *Engine) user(row db.User) User {
	return User{Name: row.Name, Actor: e.in.Local.ID(row.Name), Handle: e.in.Local.Handle(row.Name), State: row.State, Database: row.Database,
		SchemaVersion: row.SchemaVersion, Keys: e.in.Keys.Kinds(row.Name), KeysDir: e.in.Keys.Dir(row.Name), CreatedAt: row.CreatedAt}
}

// NewUser is what CreateUser needs to know.
type NewUser struct {
	Name        vocab.Username
	DisplayName string
	Token       bool // make a token with scopes read and write too
}

// CreateUser makes a user whole: name taken, keys, profile, database, published. What an earlier call left half-made is
// completed; for a whole user it returns the user and fault.Conflict, for a deleted one fault.Conflict alone. The token
// is empty unless asked for. A serving engine knows the user at once.
func (e *Engine) CreateUser(ctx context.Context, n NewUser) (u User, token string, err error) {
	if err := e.in.MakeKeys(ctx); err != nil {
		return User{}, "", err
	}
	row, err := e.in.DB.ReserveUser(ctx, n.Name)
	if err != nil {
		return User{}, "", err
	}
	switch row.State {
	case db.UserCreating:
	case db.UserDeleted:
		return User{}, "", fault.New(fault.Conflict, fmt.Sprintf("the name %q belonged to a deleted user and is not used again", n.Name)).WithHint("take another name")
	default:
		return e.user(row), "", fault.New(fault.Conflict, fmt.Sprintf("the user %q exists already", n.Name)).WithHint("lightweb user show " + n.Name.String())
	}
	made := e.makeUser(ctx, n)
	if made != nil && fault.KindOf(made) != fault.Conflict {
		return User{}, "", fmt.Errorf("create user %s: %w", n.Name, made)
	}
	if u, err = e.User(ctx, n.Name); err != nil || made != nil { // of two who make the same user at once, one is told that it exists
		return u, "", errors.Join(made, err)
	}
	if n.Token {
		_, token, err = e.CreateToken(ctx, n.Name, "", []string{db.ScopeRead, db.ScopeWrite}, 0)
	}
	return u, token, err
}

// makeUser makes what a user consists of. Each part is left as it is when an earlier call made it.
func (e *Engine) makeUser(ctx context.Context, n NewUser) error {
	if err := e.in.Keys.Create(n.Name); err != nil {
		return fmt.Errorf("make keys: %w", err)
	}
	if n.DisplayName != "" {
		if err := e.in.Registry.UpdateUser(n.Name, func(c *registry.User) { c.Profile.Name = n.DisplayName }); err != nil {
			return err
		}
	}
	if err := e.in.DB.CreateUserDatabase(ctx, n.Name); err != nil {
		return err
	}
	return e.in.DB.ActivateUser(ctx, n.Name)
}

// Users returns every user, deleted ones too, by name.
func (e *Engine) Users(ctx context.Context) ([]User, error) {
	rows, err := e.in.DB.Users(ctx)
	if err != nil {
		return nil, err
	}
	users := make([]User, len(rows))
	for i, r := range rows {
		users[i] = e.user(r)
	}
	return users, nil
}

// User returns one user; the fault is NoUser when there is none.
func (e *Engine) User(ctx context.Context, name vocab.Username) (User, error) {
	row, err := e.in.DB.User(ctx, name)
	if err != nil {
		return User{}, err
	}
	u := e.user(row)
	if err := e.in.Registry.Problem(name); err != nil {
		u.Refused = err.Error()
	}
	return u, nil
}

// Token is an API token as it can be shown: never its secret.
type Token struct {
	ID         string         `json:"id"`
	User       vocab.Username `json:"user"`
	Name       string         `json:"name,omitempty"`
	Scopes     []string       `json:"scopes"`
	CreatedAt  time.Time      `json:"created_at"`
	LastUsedAt *time.Time     `json:"last_used_at,omitempty"` // to the hour
	ExpiresAt  *time.Time     `json:"expires_at,omitempty"`
}

func shownToken(t db.Token) Token {
	return Token{ID: t.ID.String(), User: t.User, Name: t.Name, Scopes: t.Scopes, CreatedAt: t.CreatedAt, LastUsedAt: t.LastUsedAt, ExpiresAt: t.ExpiresAt}
}

// CheckScopes refuses what is no scope of a token.
func CheckScopes(scopes []string) error {
	for _, s := range scopes {
		if !slices.Contains(db.Scopes(), s) {
			return fault.New(fault.Usage, fmt.Sprintf("%.40q is not a scope", s)).WithHint("scopes are " + strings.Join(db.Scopes(), ", "))
		}
	}
	return nil
}

// CreateToken returns a new token and its secret, which is not stored. Scopes are read, write, admin and llm; with a ttl
// of zero the token does not expire.
func (e *Engine) CreateToken(ctx context.Context, u vocab.Username, name string, scopes []string, ttl time.Duration) (Token, string, error) {
	row, err := e.in.DB.User(ctx, u)
	if err != nil {
		return Token{}, "", err
	}
	if row.State != db.UserActive {
		return Token{}, "", fault.New(fault.NoUser, fmt.Sprintf("the user %q is %s", u, row.State)).WithHint("lightweb user list")
	}
	if err := CheckScopes(scopes); err != nil {
		return Token{}, "", err
	}
	secret, digest := token.New(u)
	t := db.Token{ID: uuid.Must(uuid.NewV7()), User: u, Name: name, Scopes: scopes, CreatedAt: e.in.Now().UTC().Truncate(time.Second)}
	if ttl > 0 {
		at := t.CreatedAt.Add(ttl)
		t.ExpiresAt = &at
	}
	if err := e.in.DB.AddToken(ctx, t, digest); err != nil {
		return Token{}, "", err
	}
	return shownToken(t), secret, nil
}

// Tokens returns the tokens of u, the oldest first; the fault is NoUser when there is no such user.
func (e *Engine) Tokens(ctx context.Context, u vocab.Username) ([]Token, error) {
	if _, err := e.in.DB.User(ctx, u); err != nil {
		return nil, err
	}
	rows, err := e.in.DB.Tokens(ctx, u)
	if err != nil {
		return nil, err
	}
	tokens := make([]Token, len(rows))
	for i, r := range rows {
		tokens[i] = shownToken(r)
	}
	return tokens, nil
}

// RevokeToken ends a token at once, in a serving engine too; the fault is NotFound when u has no such token.
func (e *Engine) RevokeToken(ctx context.Context, u vocab.Username, id string) error {
	if _, err := e.in.DB.User(ctx, u); err != nil {
		return err
	}
	parsed, err := uuid.Parse(id)
	if err != nil {
		return fault.New(fault.Invalid, fmt.Sprintf("%.64q is not the id of a token", id)).WithHint("lightweb user token list " + u.String())
	}
	return e.in.DB.RemoveToken(ctx, u, parsed)
}
