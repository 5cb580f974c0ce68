package registry

import "testing"

func TestAnOldPermissionForStrangersHoldsForGood(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]Strangers{
		``: RequestStrangers,
		`{"messaging":{"allow_insecure_dm":true}}`:                        AllowStrangers,
		`{"messaging":{"allow_insecure_dm":true,"strangers":"requests"}}`: AllowStrangers,
		`{"messaging":{"allow_insecure_dm":false}}`:                       RequestStrangers,
		`{"messaging":{"strangers":"drop"}}`:                              DropStrangers,
	} {
		c, err := decodeUser([]byte(file))
		if err != nil || c.Messaging.TakesStrangers() != want {
			t.Errorf("%s is %q, %v; want %q", file, c.Messaging.TakesStrangers(), err, want)
		}
	}
	if _, err := decodeUser([]byte(`{"messaging":{"strangers":"perhaps"}}`)); err == nil {
		t.Error("a word that means nothing is taken")
	}
}
