package vocab

import (
	"database/sql/driver"
	"fmt"
	"regexp"

	"github.com/lightweb/lightweb/engine/fault"
)

// Username is the valid name of a local user. Only ParseUsername makes one, because the name
// becomes part of database names, of keys and of paths. The zero Username is the name of no user.
type Username struct{ name string }

var usernameForm = regexp.MustCompile(`^[a-z0-9_]{1,30}$`)

// reserved are names that no user may have, because they could be mistaken for parts of the
// engine.
var reserved = map[string]bool{
	"actor": true, "admin": true, "api": true, "inbox": true, "outbox": true, "instance": true, "lightweb": true,
	"nodeinfo": true, "root": true, "system": true, "template": true, "users": true, "ws": true, "well_known": true,
}

// ParseUsername returns s as a username. It must consist of 1 to 30 characters of a-z, 0-9 and
// _, and must not be reserved.
func ParseUsername(s string) (Username, error) {
	if !usernameForm.MatchString(s) {
		return Username{}, fault.New(fault.Invalid, fmt.Sprintf("%.40q is not a username: 1 to 30 of a-z, 0-9 and _ are taken", s))
	}
	if reserved[s] {
		return Username{}, fault.New(fault.Invalid, fmt.Sprintf("the username %q is reserved", s))
	}
	return Username{s}, nil
}

func (u Username) String() string { return u.name }

// IsZero reports whether u is the zero Username.
func (u Username) IsZero() bool { return u.name == "" }

// MarshalText returns the name, for JSON and logs.
func (u Username) MarshalText() ([]byte, error) { return []byte(u.name), nil }

// UnmarshalText sets u to the username in b, and refuses a name that ParseUsername refuses.
func (u *Username) UnmarshalText(b []byte) error {
	p, err := ParseUsername(string(b))
	if err != nil {
		return err
	}
	*u = p
	return nil
}

// Value returns the name as a parameter of a query.
func (u Username) Value() (driver.Value, error) { return u.name, nil }

// Scan reads a username from the database, and refuses a name that ParseUsername refuses.
func (u *Username) Scan(v any) error {
	s, ok := v.(string)
	if !ok {
		return fmt.Errorf("scan username from %T", v)
	}
	p, err := ParseUsername(s)
	if err != nil {
		return fmt.Errorf("scan username: %w", err)
	}
	*u = p
	return nil
}
