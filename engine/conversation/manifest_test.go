package conversation

import "testing"

func TestManifestOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		objectType string
		want       Manifest
	}{
		{"Note", Manifest{}},
		{"Article", Manifest{Reviewable: true}},
		{"Product", Manifest{Reviewable: true}},
		{"ChatMessage", Manifest{Encryption: EncryptionRequired}},
		{"PrivateMessage", Manifest{Encryption: EncryptionRequired}},
		{"KeyPackage", Manifest{Encryption: EncryptionRequired}},
		{"NobodyKnowsThis", Manifest{}},
	} {
		if got := ManifestOf(c.objectType); got != c.want {
			t.Errorf("ManifestOf(%q) = %+v, want %+v", c.objectType, got, c.want)
		}
	}
}
