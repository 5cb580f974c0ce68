package server_test

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
)

// wantProblem fails unless another server is refused with this status and this type of problem.
func (r response) wantProblem(t *testing.T, status int, kind string) response {
	t.Helper()
	if r.want(t, status); !strings.Contains(string(r.body), `/problems/`+kind+`"`) {
		t.Errorf("the answer is %s, want the problem %s", r.body, kind)
	}
	return r
}

// publish publishes key packages for an actor's phone. The last one is that of last resort.
func (k *talk) publish(as string, devices ...*mlstest.Device) (ids []uuid.UUID) {
	k.Helper()
	var packages []any
	for n, d := range devices {
		packages = append(packages, map[string]any{"deviceId": "phone", "content": d.Package, "lastResort": n == len(devices)-1})
	}
	var made struct{ Items []struct{ ID uuid.UUID } }
	k.post(as, "/api/keypackages", map[string]any{"keyPackages": packages}).want(k.T, 201).decode(k.T, &made)
	for _, p := range made.Items {
		ids = append(ids, p.ID)
	}
	return ids
}

// Row 20: the answers to claims, from the first package to none.
func TestRow20KeyPackagesAreAnsweredByTheirState(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	him := string(k.local.ID(k.bob))
	old := mlstest.NewDeviceUntil(him, start.AddDate(0, 0, -2), start.AddDate(0, 0, -1))
	k.post(him, "/api/keypackages", map[string]any{"keyPackages": []any{map[string]any{"deviceId": "phone", "content": old.Package}}}).wantCode(t, 422, "bad_key_package")
	k.post(him, "/api/keypackages", map[string]any{}).wantCode(t, 422, "invalid_parameter")
	k.post(him, "/api/conversations", map[string]any{}).wantCode(t, 422, "invalid_parameter")
	devices := []*mlstest.Device{mlstest.NewDevice(him, start), mlstest.NewDevice(him, start), mlstest.NewDevice(him, start)}
	ids := k.publish(him, devices...)
	claim := func() response { return k.send("/users/bob/keyPackages/claim", "{}", k.signedWith(k.carolKey, "{}")) }
	claimed := func() string { t.Helper(); return claim().want(t, 200).doc(t).Subs("items")[0].Text("content") }
	claim().wantProblem(t, 403, "claim-refused") // a stranger
	k.relate(k.bob, user.Following, user.Accepted, k.carol.ID, start)
	if first, second := claimed(), claimed(); first == second {
		t.Error("one package is claimed twice")
	}
	last := claimed()
	if again := claimed(); again != last {
		t.Error("the package of last resort is claimed once")
	}
	var own struct {
		Items []struct {
			ID         uuid.UUID
			LastResort bool
		}
	}
	k.get("/api/keypackages", bearerToken(k.tokens[him])).want(t, 200).decode(t, &own)
	if len(own.Items) != 1 || own.Items[0].ID != ids[2] || !own.Items[0].LastResort {
		t.Errorf("after the claims bob has %+v, want that of last resort with its mark", own)
	}
	path := "/api/keypackages/" + ids[2].String()
	k.ask(http.MethodDelete, path, bearerToken(k.tokens[him])).want(t, 204)
	claim().wantProblem(t, 404, "no-key-package")
	var many []*mlstest.Device
	for range 25 {
		many = append(many, mlstest.NewDevice(him, start))
	}
	k.publish(him, many...)
	for range 18 {
		claimed()
	}
	if got := claim().wantProblem(t, 429, "claim-limit"); got.Header.Get("Retry-After") == "" {
		t.Error("the 21st claim of a day is not told when to come again")
	}
}

// Rows 20 and 21: a Welcome is leased to its recipient's device until that confirms it. A device
// that has crashed gets it again. Nobody else confirms it. With the key package it is invalid.
func TestRow21AWelcomeWaitsForItsRecipientsDevice(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	me, bob := k.device.Identity, bearerToken(k.tokens[string(k.local.ID(k.bob))])
	laptop, tablet := mlstest.NewDevice(me, start), mlstest.NewDevice(me, start)
	ids := k.publish(me, laptop, tablet)
	k.add(laptop)
	k.add(mlstest.NewDevice(string(k.carol.ID), start))
	d := dbtest.SQL(t, k.store, k.alice)
	if _, err := d.ExecContext(t.Context(), `UPDATE mls_welcomes SET content = decode(repeat('00', 20480), 'hex')`); err != nil {
		t.Fatal(err)
	}
	waiting := func() (ids []uuid.UUID) {
		t.Helper()
		var list struct {
			Items []struct {
				ID           uuid.UUID
				Conversation string
			}
		}
		k.get("/api/welcomes", bearerToken(k.tokens[me])).want(t, 200).decode(t, &list)
		for _, w := range list.Items {
			if ids = append(ids, w.ID); !strings.HasSuffix(w.Conversation, k.id.String()) {
				t.Errorf("the Welcome is to %s", w.Conversation)
			}
		}
		return ids
	}
	confirm := func(id uuid.UUID, as asking) response { return k.send("/api/welcomes/"+id.String()+"/confirm", "", as) }
	release := k.server.HoldAnswers(netip.MustParseAddr("192.0.2.1"))               // without room for large answers, a leased Welcome is still handed out
	k.ask(http.MethodHead, "/api/welcomes", bearerToken(k.tokens[me])).want(t, 200) // hands out nothing
	first := waiting()
	release()
	if len(first) != 1 || len(waiting()) != 0 {
		t.Fatalf("%d Welcomes are handed out, want 1, once", len(first))
	}
	if _, err := d.ExecContext(t.Context(), `UPDATE mls_welcomes SET leased_until = $1 WHERE id = $2`, start.Add(-1), first[0]); err != nil { // the device has crashed
		t.Fatal(err)
	}
	if again := waiting(); !slices.Equal(again, first) {
		t.Errorf("after the lease %v wait, want %v", again, first)
	}
	var carols uuid.UUID
	if err := d.QueryRowContext(t.Context(), `SELECT id FROM mls_welcomes WHERE recipient_uri = $1`, string(k.carol.ID)).Scan(&carols); err != nil {
		t.Fatal(err)
	}
	confirm(carols, bearerToken(k.tokens[me])).wantCode(t, 403, "not_recipient")
	confirm(first[0], bob).wantCode(t, 404, "no_welcome") // bob's database has none
	for range 2 {
		confirm(first[0], bearerToken(k.tokens[me])).want(t, 204)
	}
	k.add(tablet)
	second := waiting()
	k.ask(http.MethodDelete, "/api/keypackages/"+ids[1].String(), bearerToken(k.tokens[me])).want(t, 204)
	if len(second) != 1 || len(waiting()) != 0 {
		t.Fatalf("%d Welcomes wait, want 1, and none once its key package is revoked", len(second))
	}
	confirm(second[0], bearerToken(k.tokens[me])).wantCode(t, 410, "welcome_invalid")
	var states []string
	rows, err := d.QueryContext(t.Context(), `SELECT state FROM mls_welcomes ORDER BY created_at, state`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var state string
		if err := rows.Scan(&state); err != nil {
			t.Fatal(err)
		}
		states = append(states, state)
	}
	if slices.Sort(states); rows.Err() != nil || !slices.Equal(states, []string{"available", "consumed", "invalid"}) {
		t.Errorf("the Welcomes are %q, want carol's available, the laptop's consumed, the tablet's invalid", states)
	}
}
