package admin

import (
	"context"

	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Configs are the configuration files of users. A serving engine applies a change within a
// second.
type Configs struct{ in *instance.Instance }

// Find returns the configuration that applies to a user: the members that the user's file has,
// and defaults for the rest. The fault is NoUser when the user does not exist, and Config when
// the file is broken.
func (cs Configs) Find(ctx context.Context, u vocab.Username) (registry.User, error) {
	if _, err := cs.in.DB.Instance.Users.FindUndeleted(ctx, u); err != nil {
		return registry.User{}, err
	}
	if err := cs.in.Registry.Problem(u); err != nil {
		return registry.User{}, err
	}
	return cs.in.Registry.User(u), nil
}

// Set sets one member to the value that a person wrote. The fault is Invalid for an unknown key
// and for a value that is not accepted, and NoUser when the user does not exist or is being
// deleted.
func (cs Configs) Set(ctx context.Context, u vocab.Username, key, value string) error {
	if err := checkStays(ctx, cs.in, u); err != nil {
		return err
	}
	return cs.in.Registry.SetMember(u, key, value)
}

// Read returns the content of a user's file for a later Replace, whether or not it can be used.
// It returns nothing if there is no file. The fault is NoUser when the user does not exist or is
// being deleted.
func (cs Configs) Read(ctx context.Context, u vocab.Username) ([]byte, error) {
	if err := checkStays(ctx, cs.in, u); err != nil {
		return nil, err
	}
	return cs.in.Registry.ReadUser(u)
}

// Replace replaces the content of a user's file. The parameter before is the content that the
// caller has read, and after is the new content. The fault is Invalid when the new content cannot
// be used, Conflict when the file has changed since the caller read it, and NoUser when the user
// does not exist or is being deleted.
func (cs Configs) Replace(ctx context.Context, u vocab.Username, before, after []byte) error {
	if err := checkStays(ctx, cs.in, u); err != nil {
		return err
	}
	return cs.in.Registry.ReplaceUser(u, before, after)
}

// CheckedConfig says whether the file of a user can be used.
type CheckedConfig struct {
	User    vocab.Username `json:"user"`
	File    string         `json:"file"`
	Valid   bool           `json:"valid"`
	Problem string         `json:"problem,omitempty"` // why the file cannot be used
}

// Check checks the files of the named users, or of all users. A user without a file has the
// defaults.
func (cs Configs) Check(ctx context.Context, named []vocab.Username, all bool) ([]CheckedConfig, error) {
	users, err := chooseUsers(ctx, cs.in, named, all)
	if err != nil {
		return nil, err
	}
	checked := make([]CheckedConfig, len(users))
	for i, u := range users {
		checked[i] = CheckedConfig{User: u, File: cs.in.Registry.File(u), Valid: true}
		if err := cs.in.Registry.Problem(u); err != nil {
			checked[i].Valid, checked[i].Problem = false, err.Error()
		}
	}
	return checked, nil
}
