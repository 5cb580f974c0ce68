package engine_test

import (
	"net/http"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// Row 29: devices of suite 2, with uncompressed signature keys, hold conversations between two
// servers. Each of the two begins one, adds the other's device, and removes it in the end. The
// collection that everybody sees has no package of this suite: it is claimed.
func TestRow29DevicesOfSuite2WithTSMLS(t *testing.T) {
	t.Parallel()
	devices := enginetest.StartDevices(t)
	a, b := enginetest.StartTwo(t)
	alice, carol := a.CreateUser(t, "alice"), b.CreateUser(t, "carol")
	makeFriends(t, alice, carol)
	hers, others := devices.MakeP256(t, alice.ID, false), devices.MakeP256(t, carol.ID, false)
	expectRefusedKey(t, alice, devices.MakeP256(t, alice.ID, true))
	for _, isCarols := range []bool{false, true} {
		from := &seat{user: alice, device: hers, name: "alice's", known: map[string]bool{}}
		to := &seat{user: carol, device: others, name: "carol's", known: map[string]bool{}}
		if isCarols {
			from, to = to, from
		}
		r := &room{seats: []*seat{from, to}}
		from.begin(t)
		to.publish(t)
		if shown := publicPackages(t, to.user); len(shown) != 0 {
			t.Errorf("%d key packages of suite 2 are shown to everybody", len(shown))
		}
		claimed := claimPackage(t, from.user, to.user.ID)
		if claimed.Ciphersuite != "MLS_128_DHKEMP256_AES128GCM_SHA256_P256" {
			t.Errorf("the key package is of %q", claimed.Ciphersuite)
		}
		added, _ := from.commit(t, map[string]any{"add": []string{claimed.Content}})
		to.join(t)
		r.allHear(t, added.Seq)
		expectAgreement(t, r.seats...)
		for _, tell := range []func(*testing.T){r.allTalk, r.allCommitAtOnce, r.anotherOrder, r.oneIsRemoved} {
			tell(t)
		}
	}
}

// expectRefusedKey checks that a key package and a group of a device with a compressed key are
// refused: others could not verify its signatures.
func expectRefusedKey(t *testing.T, u *enginetest.User, d *enginetest.Device) {
	t.Helper()
	var made struct{ Content, GroupInfo string }
	d.Call(t, "keyPackage", map[string]any{}, &made)
	d.Call(t, "create", map[string]any{"group": "urn:uuid:6b1e6d2c-3c76-4a0e-8f0a-52d1b7f5f9d0"}, &made)
	packages := []any{map[string]any{"deviceId": "old", "content": made.Content}}
	if got := u.Ask(t, http.MethodPost, "/api/keypackages", map[string]any{"keyPackages": packages}); !isRefused(got, http.StatusUnprocessableEntity, "bad_key_package") {
		t.Errorf("a key package with a compressed key is answered %d %s", got.Status, got.Body)
	}
	if got := u.Ask(t, http.MethodPost, "/api/conversations", map[string]any{"groupInfo": made.GroupInfo}); got.Status/100 != 4 {
		t.Errorf("a group with a compressed key is answered %d %s", got.Status, got.Body)
	}
}
