package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Users are the users of the instance.
type Users struct{ in *instance.Instance }

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

func (us Users) describe(row db.User) User {
	return User{Name: row.Name, Actor: us.in.Local.ID(row.Name), Handle: us.in.Local.Handle(row.Name), State: row.State, Database: row.Database,
		SchemaVersion: row.SchemaVersion, Keys: us.in.Keys.Kinds(row.Name), KeysDir: us.in.Keys.Dir(row.Name), CreatedAt: row.CreatedAt}
}

// NewUser describes a user to create.
type NewUser struct {
	Name        vocab.Username
	DisplayName string
	Token       bool // make a token with scopes read and write too
}

// Create makes a user whole: name taken, keys, profile, database, published. What an earlier call
// left half-made is completed; for a whole user it returns the user and fault.Conflict, for a
// deleted one fault.Conflict alone. The token is empty unless asked for. A serving engine knows
// the user at once.
func (us Users) Create(ctx context.Context, n NewUser) (u User, token string, err error) {
	if err := us.in.MakeKeys(ctx); err != nil {
		return User{}, "", err
	}
	row, err := us.in.DB.ReserveUser(ctx, n.Name)
	if err != nil {
		return User{}, "", err
	}
	switch row.State {
	case db.UserCreating:
	case db.UserDeleted:
		return User{}, "", fault.New(fault.Conflict, fmt.Sprintf("the name %q belonged to a deleted user and is not used again", n.Name)).WithHint("take another name")
	default:
		return us.describe(row), "", fault.New(fault.Conflict, fmt.Sprintf("the user %q exists already", n.Name)).WithHint("lightweb user show " + n.Name.String())
	}
	made := us.makeUser(ctx, n)
	if made != nil && fault.KindOf(made) != fault.Conflict {
		return User{}, "", fmt.Errorf("create user %s: %w", n.Name, made)
	}
	if u, err = us.Find(ctx, n.Name); err != nil || made != nil { // of two who make the same user at once, one is told that it exists
		return u, "", errors.Join(made, err)
	}
	if n.Token {
		_, token, err = Tokens{us.in}.Create(ctx, n.Name, "", []string{db.ScopeRead, db.ScopeWrite}, 0)
	}
	return u, token, err
}

// makeUser makes what a user consists of. Each part is left as it is when an earlier call made it.
func (us Users) makeUser(ctx context.Context, n NewUser) error {
	if err := us.in.Keys.Create(n.Name); err != nil {
		return fmt.Errorf("make keys: %w", err)
	}
	if n.DisplayName != "" {
		if err := us.in.Registry.UpdateUser(n.Name, func(c *registry.User) { c.Profile.Name = n.DisplayName }); err != nil {
			return err
		}
	}
	if err := us.in.DB.CreateUserDatabase(ctx, n.Name); err != nil {
		return err
	}
	return us.in.DB.ActivateUser(ctx, n.Name)
}

// List returns every user, deleted ones too, by name.
func (us Users) List(ctx context.Context) ([]User, error) {
	rows, err := us.in.DB.Users(ctx)
	if err != nil {
		return nil, err
	}
	users := make([]User, len(rows))
	for i, r := range rows {
		users[i] = us.describe(r)
	}
	return users, nil
}

// Find returns one user; the fault is NoUser when there is none.
func (us Users) Find(ctx context.Context, name vocab.Username) (User, error) {
	row, err := us.in.DB.User(ctx, name)
	if err != nil {
		return User{}, err
	}
	u := us.describe(row)
	if err := us.in.Registry.Problem(name); err != nil {
		u.Refused = err.Error()
	}
	return u, nil
}
