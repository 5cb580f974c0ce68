package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	dbinstance "github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Users has the operator's tasks for the users of the instance.
type Users struct{ in *instance.Instance }

// User is a local user in the form that commands show.
type User struct {
	Name          vocab.Username `json:"user"`
	Actor         vocab.ID       `json:"actor"`
	Handle        string         `json:"handle"` // @alice@example.org
	State         string         `json:"state"`  // active, creating, suspended, deleting, deleted
	Database      string         `json:"database"`
	SchemaVersion int            `json:"schema_version"`
	Keys          []string       `json:"keys"` // "ed25519", "rsa"
	KeysDir       string         `json:"keys_dir"`
	CreatedAt     time.Time      `json:"created_at"`
	HasPassword   *bool          `json:"has_password,omitempty"` // only from Find
	Refused       string         `json:"config_error,omitempty"` // why the configuration cannot be used; only from Find
}

// describeUser returns the row with the facts that the user's files add.
func (us Users) describeUser(row dbinstance.User) User {
	return User{Name: row.Name, Actor: us.in.Local.ID(row.Name), Handle: us.in.Local.Handle(row.Name), State: row.State, Database: row.Database,
		SchemaVersion: row.SchemaVersion, Keys: us.in.Keys.Kinds(row.Name), KeysDir: us.in.Keys.Dir(row.Name), CreatedAt: row.CreatedAt}
}

// NewUser describes a user to create.
type NewUser struct {
	Name        vocab.Username
	DisplayName string
	Token       bool   // also make a token with the scopes read and write
	Password    string // empty for none
}

func (n NewUser) setName(c *registry.User) error {
	c.Profile.Name = n.DisplayName
	return nil
}

// Create makes a user. It reserves the name, makes keys, profile, database and password, and
// activates the user. It completes a user that an earlier call left half-made. If the user is
// complete already, Create returns the user and fault.Conflict. If the user was deleted, it
// returns only fault.Conflict. The token is empty unless n.Token is true. A serving engine
// accepts the user immediately.
func (us Users) Create(ctx context.Context, n NewUser) (u User, token string, err error) {
	if err := us.in.MakeKeys(ctx); err != nil {
		return User{}, "", err
	}
	if n.DisplayName != "" { // nothing of the user may be there when the name is refused
		if err := us.in.Registry.CheckUpdate(n.Name, n.setName); err != nil {
			return User{}, "", fmt.Errorf("create user %s: %w", n.Name, err)
		}
	}
	row, err := us.in.DB.Instance.Users.Reserve(ctx, n.Name)
	if err != nil {
		return User{}, "", err
	}
	switch row.State {
	case dbinstance.UserCreating:
	case dbinstance.UserDeleting, dbinstance.UserDeleted:
		return User{}, "", fault.New(fault.Conflict, fmt.Sprintf("the name %q belonged to a deleted user and is not used again", n.Name)).WithHint("take another name")
	default:
		return us.describeUser(row), "", fault.New(fault.Conflict, fmt.Sprintf("the user %q exists already", n.Name)).WithHint("lightweb user show " + n.Name.String())
	}
	made := us.makeUser(ctx, n)
	if made != nil && fault.KindOf(made) != fault.Conflict {
		return User{}, "", fmt.Errorf("create user %s: %w", n.Name, made)
	}
	if u, err = us.Find(ctx, n.Name); err != nil || made != nil { // another process may have made the same user in the meantime
		return u, "", errors.Join(made, err)
	}
	if n.Token {
		_, token, err = Tokens(us).Create(ctx, n.Name, "", []string{dbinstance.ScopeRead, dbinstance.ScopeWrite}, 0)
	}
	return u, token, err
}

// makeUser makes the parts of a user. Parts that an earlier call made stay as they are.
func (us Users) makeUser(ctx context.Context, n NewUser) error {
	if err := us.in.Keys.Create(n.Name); err != nil {
		return fmt.Errorf("make keys: %w", err)
	}
	if err := us.in.Registry.CreateUser(n.Name); err != nil {
		return fmt.Errorf("write config.json: %w", err)
	}
	if n.DisplayName != "" {
		if err := us.in.Registry.UpdateUser(n.Name, n.setName); err != nil {
			return err
		}
	}
	if err := us.in.DB.CreateUserDatabase(ctx, n.Name); err != nil {
		return err
	}
	if n.Password != "" {
		if err := Passwords(us).Set(ctx, n.Name, n.Password); err != nil {
			return err
		}
	}
	// No server has fetched the profile yet, so only later changes are announced to followers.
	if err := us.in.DB.Instance.Users.SetToldProfile(ctx, n.Name, us.in.Local.ProfileDigest(n.Name)); err != nil {
		return err
	}
	return us.in.DB.Instance.Users.Activate(ctx, n.Name)
}

// List returns all users by name, including deleted ones.
func (us Users) List(ctx context.Context) ([]User, error) {
	rows, err := us.in.DB.Instance.Users.All(ctx)
	if err != nil {
		return nil, err
	}
	users := make([]User, len(rows))
	for i, r := range rows {
		users[i] = us.describeUser(r)
	}
	return users, nil
}

// Find returns a user. The fault is NoUser when the user does not exist.
func (us Users) Find(ctx context.Context, name vocab.Username) (User, error) {
	row, err := us.in.DB.Instance.Users.Find(ctx, name)
	if err != nil {
		return User{}, err
	}
	u := us.describeUser(row)
	has, err := us.in.DB.Instance.Passwords.Has(ctx, name)
	if err != nil {
		return User{}, err
	}
	u.HasPassword = &has
	if err := us.in.Registry.Problem(name); err != nil {
		u.Refused = err.Error()
	}
	return u, nil
}
