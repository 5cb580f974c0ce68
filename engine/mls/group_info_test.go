package mls

import (
	"errors"
	"slices"
	"testing"
)

func TestGroupInfoShowsTheMembers(t *testing.T) {
	t.Parallel()
	for suite := CipherSuite(1); suite <= 3; suite++ {
		d := newDevice(t, suite, 1)
		g, err := ParseGroupInfo(d.groupInfo(t, 2, extension(1, nil), extension(extensionExternalPub, d.leafKey), extension(extensionRatchetTree, d.tree(t))))
		if err != nil {
			t.Fatal(err)
		}
		if g.Suite != suite || string(g.GroupID) != string(groupID) || g.Epoch != 7 || g.Signer != 2 || !g.HasExternalPub {
			t.Errorf("suite %d: %+v", suite, g)
		}
		if len(g.Members) != 2 || g.Members[0].Index != 0 || g.Members[1].Index != 2 || string(g.Members[1].Identity) != alice {
			t.Errorf("suite %d: members %+v", suite, g.Members)
		}
		if err := g.Verify(); err != nil {
			t.Errorf("suite %d: %v", suite, err)
		}
	}
}

func TestGroupInfoIsSignedByAMember(t *testing.T) {
	t.Parallel()
	d, other := newDevice(t, 1, 1), newDevice(t, 1, 2)
	tree := extension(extensionRatchetTree, d.tree(t))
	for _, c := range []struct {
		name    string
		message []byte
		want    error
	}{
		{"somebody else", other.groupInfo(t, 0, tree), ErrSignature},
		{"a blank leaf", d.groupInfo(t, 1, tree), ErrMember},
		{"the last leaf there can be", d.groupInfo(t, 1<<32-1, tree), ErrMember},
		{"without the tree", d.groupInfo(t, 0), ErrMember},
	} {
		g, err := ParseGroupInfo(c.message)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if err := g.Verify(); !errors.Is(err, c.want) {
			t.Errorf("%s: Verify = %v, want %v", c.name, err, c.want)
		}
	}
}

func TestGroupInfoWithMalformedExtensions(t *testing.T) {
	t.Parallel()
	d := newDevice(t, 1, 1)
	blank, member := []byte{0}, join(uint8(1), uint8(nodeLeaf), d.leaf(t, d.draft()))
	parent := join(uint8(1), uint8(nodeParent), vector(d.leafKey), vector(), vector())
	tree := func(nodes ...[]byte) []byte { return extension(extensionRatchetTree, vector(nodes...)) }
	for _, c := range []struct {
		name       string
		extensions []byte
		want       error
	}{
		{"one member", tree(member), nil},
		{"as many leaves as a group may have", tree(slices.Repeat(blank, 2*(MaxMembers-1)), member), nil},
		{"a leaf more", tree(slices.Repeat(blank, 2*MaxMembers), member), ErrTooMany},
		{"two trees", join(tree(member), tree(member)), ErrExtension},
		{"two external keys", join(extension(extensionExternalPub, nil), extension(extensionExternalPub, nil)), ErrExtension},
		{"a tree and a byte", extension(extensionRatchetTree, join(vector(member), uint8(0))), ErrTrailing},
		{"no node", tree(), ErrTree},
		{"a blank end", tree(member, blank), ErrTree},
		{"a parent in the place of a leaf", tree(parent, blank, member), ErrTree},
		{"a leaf in the place of a parent", tree(member, member, member), ErrTree},
		{"a node of an unknown kind", tree([]byte{1, 3}), ErrTree},
		{"a node that is half there", tree([]byte{2}), ErrOptional},
		{"leaves that are no whole numbers", tree(member, join(uint8(1), uint8(nodeParent), vector(), vector(), vector([]byte{1, 2, 3})), member), ErrTruncated},
		{"nine bytes: a leaf of four gigabytes", extension(extensionRatchetTree, []byte{8, 1, 1, 0xbf, 0xff, 0xff, 0xff, 0, 0}), ErrTruncated},
		{"nine bytes: a tree of a gigabyte", extension(extensionRatchetTree, []byte{0xbf, 0xff, 0xff, 0xff, 1, 1, 0, 0, 0}), ErrTruncated},
	} {
		g, err := ParseGroupInfo(d.groupInfo(t, 0, c.extensions))
		if !errors.Is(err, c.want) || (g == nil) != (err != nil) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}
