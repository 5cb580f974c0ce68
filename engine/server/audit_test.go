package server_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/lightweb/lightweb/db/user"
)

func TestTheAuditIsShownToItsUser(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := uuid.New()
	f.write(f.alice, func(ctx context.Context, tx *user.Tx) error {
		for _, a := range []user.Audit{{At: start, Token: token, Action: "Follow", Outcome: "ok", Activity: "https://x.example/1"}, {At: start, Action: "Like", Outcome: "ok"}} {
			a.Params = []byte(`{"actorUri":"y"}`)
			if err := tx.Audits.Add(ctx, a); err != nil {
				return err
			}
		}
		return tx.Audits.AddRefusal(ctx, user.Audit{At: start.Add(time.Hour), Action: "Like", Params: []byte(`{}`), Outcome: "blocked", Times: 2})
	})
	type record struct {
		TokenID, Action, Outcome, ActivityURI string
		Params                                map[string]string
		Times                                 int
	}
	type page struct {
		Items []record
		Next  string
	}
	read := bearerToken(f.token(f.alice, "read"))
	follow := record{token.String(), "Follow", "ok", "https://x.example/1", map[string]string{"actorUri": "y"}, 1}
	like := record{"", "Like", "ok", "", map[string]string{"actorUri": "y"}, 1}
	refused := record{"", "Like", "blocked", "", map[string]string{}, 2}
	for query, want := range map[string][]record{"": {refused, like, follow}, "&action=Like": {refused, like}, "&action=Like&outcome=ok": {like}, "&outcome=gone": nil} {
		var got []record
		for next := ""; ; {
			var p page
			r := f.get("/api/audit?limit=1"+query+next, read).want(t, 200)
			r.decode(t, &p)
			if link := r.Header.Get("Link"); strings.Contains(link, "cursor=") != (p.Next != "") {
				t.Errorf("the next page of %q is %q, and the link %q", query, p.Next, link)
			}
			if got = append(got, p.Items...); p.Next == "" {
				break
			}
			next = "&cursor=" + p.Next
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", query, d)
		}
	}
	var p page
	f.get("/api/audit?limit=1", read).want(t, 200).decode(t, &p)
	for _, wrong := range []string{"?action=Explode", "?limit=0", "?limit=201", "?cursor=x", "?x=1", "?action=Like&cursor=" + p.Next} {
		f.get("/api/audit"+wrong, read).want(t, 400)
	}
	if f.get("/api/audit", bearerToken(f.token(f.bob, "read"))).want(t, 200).decode(t, &p); len(p.Items) != 0 {
		t.Errorf("bob, who did nothing, is shown %+v", p.Items)
	}
	f.get("/api/audit", bearerToken(f.token(f.alice, "llm"))).want(t, 403)
	f.get("/api/audit").want(t, 401)
}
