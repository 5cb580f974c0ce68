package user_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/lightweb/lightweb/db/user"
)

// Audit records are listed newest first. Of records with the same time, the last written comes
// first.
func TestTheAuditIsReadPageByPage(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	token := uuid.New()
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		if err := tx.Audits.Add(ctx, user.Audit{At: now, Token: token, Action: "Follow", Params: []byte(`{"actorUri": "x"}`), Outcome: "ok", Activity: bob}); err != nil {
			return err
		}
		for n := range 3 {
			if err := tx.Audits.Add(ctx, user.Audit{At: now.Add(time.Hour), Action: "Like", Params: []byte(fmt.Sprintf(`{"n": %d}`, n)), Outcome: "ok"}); err != nil {
				return err
			}
		}
		return tx.Audits.AddRefusal(ctx, user.Audit{At: now.Add(2 * time.Hour), Action: "Like", Params: []byte(`{}`), Outcome: "invalid", Times: 7})
	})
	list := func(f user.AuditFilter) (all []string) {
		t.Helper()
		for after := (*user.Place)(nil); ; {
			var page []user.AuditRecord
			err := c.Read(t.Context(), u, func(ctx context.Context, tx *user.Tx) (err error) {
				page, err = tx.Audits.List(ctx, f, after, 2)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range page {
				all = append(all, fmt.Sprintf("%s %s %s %d by token: %t, %s", r.Action, r.Params, r.Outcome, r.Times, r.Token == token, r.Activity))
				after = &user.Place{At: r.At, ID: r.ID}
			}
			if len(page) < 2 {
				return all
			}
		}
	}
	refusal, follow := `Like {} invalid 7 by token: false, `, `Follow {"actorUri": "x"} ok 1 by token: true, `+string(bob)
	like := func(n int) string { return fmt.Sprintf(`Like {"n": %d} ok 1 by token: false, `, n) }
	for _, tt := range []struct {
		name   string
		filter user.AuditFilter
		want   []string
	}{
		{"all", user.AuditFilter{}, []string{refusal, like(2), like(1), like(0), follow}},
		{"one action", user.AuditFilter{Action: "Follow"}, []string{follow}},
		{"one outcome", user.AuditFilter{Outcome: "ok", Action: "Like"}, []string{like(2), like(1), like(0)}},
		{"since", user.AuditFilter{Since: now.Add(90 * time.Minute)}, []string{refusal}},
		{"none", user.AuditFilter{Outcome: "gone"}, nil},
	} {
		if d := cmp.Diff(tt.want, list(tt.filter)); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}
