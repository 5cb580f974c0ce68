package server_test

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
)

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
