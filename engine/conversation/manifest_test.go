package conversation

import (
	"slices"
	"testing"
)

func TestManifestOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		objectType             string
		encryption             Encryption
		liked, disliked, boost bool
	}{
		{"Note", EncryptionNone, true, false, true},
		{"Article", EncryptionNone, true, true, true},
		{"Product", EncryptionNone, true, true, true},
		{"ChatMessage", EncryptionRequired, false, false, false},
		{"PrivateMessage", EncryptionRequired, false, false, false},
		{"KeyPackage", EncryptionRequired, false, false, false},
		{"NobodyKnowsThis", EncryptionNone, true, false, true},
	} {
		m := ManifestOf(c.objectType)
		if m.Encryption != c.encryption || m.Takes("Like") != c.liked || m.Takes("Dislike") != c.disliked || m.Takes("Boost") != c.boost {
			t.Errorf("ManifestOf(%q) = %+v, want %+v", c.objectType, m, c)
		}
	}
}

func TestTypesTaking(t *testing.T) {
	t.Parallel()
	if got := TypesTaking("Dislike"); !slices.Equal(got, []string{"Article", "Audio", "Product", "Video"}) {
		t.Errorf("%q can be disliked", got)
	}
	for _, action := range []string{"Like", "Follow"} {
		if got := TypesTaking(action); got != nil {
			t.Errorf("%s is for %q alone", action, got)
		}
	}
}
