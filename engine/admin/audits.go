package admin

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/outbox"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Audits are the records of the actions that users' clients dispatched.
type Audits struct{ in *instance.Instance }

// AuditChoice selects records of a user. All conditions must hold.
type AuditChoice struct {
	user.AuditFilter
	User  vocab.Username
	Limit int
}

// Audit is the record of a dispatched action, or a common record of all refusals of one action
// within an hour.
type Audit struct {
	At       time.Time       `json:"at"`
	Token    string          `json:"token,omitempty"`      // the id of the token
	Name     string          `json:"token_name,omitempty"` // empty when the token has no name, or was revoked
	Action   string          `json:"action"`               // empty if the client named an action that does not exist
	Params   json.RawMessage `json:"params"`
	Outcome  string          `json:"outcome"`
	Times    int             `json:"times"`
	Activity vocab.ID        `json:"activity,omitempty"`
}

// ActionNames returns the names of all actions, in order.
func ActionNames() []string { return outbox.Actions() }

// List returns the newest records of a user. The fault is NoUser when the user does not exist.
func (as Audits) List(ctx context.Context, c AuditChoice) ([]Audit, error) {
	names, err := as.nameTokens(ctx, c.User)
	if err != nil {
		return nil, err
	}
	var found []user.AuditRecord
	err = as.in.DB.Read(ctx, c.User, func(ctx context.Context, tx *user.Tx) (err error) {
		found, err = tx.Audits.List(ctx, c.AuditFilter, nil, c.Limit)
		return err
	})
	all := make([]Audit, len(found))
	for n, r := range found {
		all[n] = describeAudit(r)
		all[n].Name = names[r.Token]
	}
	return all, err
}

// nameTokens returns the names of the user's current tokens, by id.
func (as Audits) nameTokens(ctx context.Context, u vocab.Username) (map[uuid.UUID]string, error) {
	tokens, err := Tokens(as).List(ctx, u)
	names := map[uuid.UUID]string{}
	for _, t := range tokens {
		names[t.ID] = t.Name
	}
	return names, err
}

// describeAudit returns the row in the form that commands show.
func describeAudit(r user.AuditRecord) Audit {
	a := Audit{At: r.At, Action: r.Action, Params: r.Params, Outcome: r.Outcome, Times: r.Times, Activity: r.Activity}
	if r.Token != uuid.Nil {
		a.Token = r.Token.String()
	}
	return a
}
