package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/outbox"
	"github.com/lightweb/lightweb/engine/vocab"
)

// auditRecord is an action that a client dispatched. Refusals of one action with the same token
// and the same outcome within an hour share a record.
type auditRecord struct {
	At          time.Time       `json:"at"`
	TokenID     string          `json:"tokenId,omitempty"`
	Action      string          `json:"action"`
	Params      json.RawMessage `json:"params"`
	Outcome     string          `json:"outcome"`
	Times       int             `json:"times"`
	ActivityURI vocab.ID        `json:"activityUri,omitempty"`
}

// auditPage is a page of audit records.
type auditPage struct {
	Items []auditRecord `json:"items"`
	Next  string        `json:"next,omitempty"`
}

const (
	usualAudits = 50
	mostAudits  = 200
)

// getAudit lists the actions that the user's clients dispatched, the newest first.
func (s *clientAPI) getAudit(a *answer, r *http.Request, _ httprouter.Params) error {
	t, err := s.authorize(a, r, instance.ScopeRead)
	if err != nil {
		return err
	}
	q, err := readQuery(r, "action", "outcome", "limit", "cursor")
	if err != nil {
		return err
	}
	f := user.AuditFilter{Action: q.Get("action"), Outcome: q.Get("outcome")}
	if f.Action != "" && !slices.Contains(outbox.Actions(), f.Action) {
		return fault.New(fault.Invalid, "there is no such action").WithCode("bad_query")
	}
	limit, err := limitOf(q, usualAudits, mostAudits)
	if err != nil {
		return err
	}
	scope := t.User.String() + "/audit/" + f.Action + "/" + f.Outcome
	after, err := feed.DecodeCursor(scope, q.Get("cursor"))
	if err != nil {
		return err
	}
	var found []user.AuditRecord
	err = s.owners.Read(r.Context(), t.User, func(ctx context.Context, tx *user.Tx) (err error) {
		found, err = tx.Audits.List(ctx, f, after, limit+1)
		return err
	})
	if err != nil {
		return fmt.Errorf("read audit: %w", err)
	}
	page := auditPage{Items: []auditRecord{}}
	found, page.Next = cutRows(found, limit, scope, func(r user.AuditRecord) user.Place { return user.Place{At: r.At, ID: r.ID} })
	for _, record := range found {
		page.Items = append(page.Items, auditRecordOf(record))
	}
	linkNext(a, r, q, page.Next)
	return a.sendJSON(r, page)
}

func auditRecordOf(r user.AuditRecord) auditRecord {
	shown := auditRecord{At: r.At, Action: r.Action, Params: r.Params, Outcome: r.Outcome, Times: r.Times, ActivityURI: r.Activity}
	if r.Token != uuid.Nil {
		shown.TokenID = r.Token.String()
	}
	return shown
}
