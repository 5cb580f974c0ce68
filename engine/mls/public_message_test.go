package mls

import (
	"errors"
	"slices"
	"testing"
)

// publicGroup returns the group as its host has parsed it. alice's devices are at leaves 0 and 2.
func publicGroup(t *testing.T, d *device) *GroupInfo {
	t.Helper()
	g, err := ParseGroupInfo(d.groupInfo(t, 0, extension(extensionRatchetTree, d.tree(t))))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestCommitShowsSenderAndProposals(t *testing.T) {
	t.Parallel()
	for suite := CipherSuite(1); suite <= 3; suite++ {
		d := newDevice(t, suite, 1)
		added := d.keyPackage(t, d.draft())
		content := commit(d.path(t, 2), proposal(ProposalAdd, added), proposal(ProposalRemove, uint32(1<<32-1)), join(uint8(byReference), vector([]byte("ref"))))
		m, err := ParsePublicMessage(d.publicMessage(t, memberAt(2), ContentCommit, content))
		if err != nil {
			t.Fatal(err)
		}
		if m.Sender != (Sender{SenderMember, 2}) || m.References != 1 || m.Path == nil || string(m.Path.Identity) != alice {
			t.Errorf("suite %d: %+v", suite, m)
		}
		if len(m.Proposals) != 2 || m.Proposals[0].Type != ProposalAdd || m.Proposals[1].Type != ProposalRemove || m.Proposals[1].Removed != 1<<32-1 {
			t.Fatalf("suite %d: proposals %+v", suite, m.Proposals)
		}
		if err := m.Proposals[0].KeyPackage.Check(alice, now, days84); err != nil {
			t.Errorf("suite %d: the package of Add: %v", suite, err)
		}
		if err := m.Verify(publicGroup(t, d)); err != nil {
			t.Errorf("suite %d: %v", suite, err)
		}
	}
}

func TestCommitWithoutPath(t *testing.T) {
	t.Parallel()
	d := newDevice(t, 1, 1)
	m, err := ParsePublicMessage(d.publicMessage(t, memberAt(0), ContentCommit, commit(nil)))
	if err != nil || m.Path != nil || len(m.Proposals) != 0 {
		t.Errorf("%+v, %v; want a commit of nothing without a path", m, err)
	}
}

func TestEachTypeOfProposalIsNamed(t *testing.T) {
	t.Parallel()
	d := newDevice(t, 1, 1)
	p := d.draft()
	p.source = join(uint8(leafOfUpdate))
	for kind, content := range map[ProposalType][]byte{
		ProposalAdd:                    d.keyPackage(t, d.draft()),
		ProposalUpdate:                 d.leaf(t, p),
		ProposalRemove:                 join(uint32(1)),
		ProposalPreSharedKey:           join(uint8(resumptionKey), uint8(1), vector(groupID), uint64(6), vector([]byte("nonce"))),
		ProposalReInit:                 join(vector(groupID), uint16(mls10), uint16(1), vector()),
		ProposalExternalInit:           vector(d.leafKey),
		ProposalGroupContextExtensions: vector(extension(5, nil)),
	} {
		m, err := ParsePublicMessage(d.publicMessage(t, memberAt(0), ContentProposal, join(uint16(kind), content)))
		if err != nil || len(m.Proposals) != 1 || m.Proposals[0].Type != kind {
			t.Fatalf("proposal %d: %+v, %v", kind, m, err)
		}
		if got := m.Proposals[0]; (got.KeyPackage != nil) != (kind == ProposalAdd) || (got.Leaf != nil) != (kind == ProposalUpdate) {
			t.Errorf("proposal %d: %+v", kind, got)
		}
	}
}

func TestParsePublicMessageRefuses(t *testing.T) {
	t.Parallel()
	d := newDevice(t, 1, 1)
	remove := proposal(ProposalRemove, uint32(1))
	joiner := join(uint8(SenderNewMemberCommit))
	for _, c := range []struct {
		name    string
		sender  []byte
		kind    ContentType
		content []byte
		want    error
	}{
		{"as many proposals as a group may need", memberAt(0), ContentCommit, commit(nil, slices.Repeat(remove, maxProposals)), nil},
		{"a proposal more", memberAt(0), ContentCommit, commit(nil, slices.Repeat(remove, maxProposals+1)), ErrTooMany},
		{"a reference more", memberAt(0), ContentCommit, commit(nil, slices.Repeat(remove, maxProposals), join(uint8(byReference), vector())), ErrTooMany},
		{"a proposal of an unknown type", memberAt(0), ContentCommit, commit(nil, proposal(0x0a0a)), ErrProposal},
		{"neither value nor reference", memberAt(0), ContentCommit, commit(nil, []byte{3}), ErrProposal},
		{"a pre-shared key of an unknown kind", memberAt(0), ContentProposal, join(uint16(ProposalPreSharedKey), uint8(3)), ErrProposal},
		{"a path to the root of a whole group", memberAt(0), ContentCommit, commit(d.path(t, maxPath)), nil},
		{"a longer path", memberAt(0), ContentCommit, commit(d.path(t, maxPath+1)), ErrTooMany},
		{"a path that is half there", memberAt(0), ContentCommit, join(vector(), uint8(2)), ErrOptional},
		{"a path with the leaf of a key package", memberAt(0), ContentCommit, join(vector(), uint8(1), d.leaf(t, d.draft()), vector()), ErrLeafSource},
		{"an update with the leaf of a path", memberAt(0), ContentProposal, join(uint16(ProposalUpdate), d.commitLeaf(t)), ErrLeafSource},
		{"a joiner's proposal", joiner, ContentProposal, remove[1:], ErrSender},
		{"a joiner's words", joiner, ContentApplication, vector([]byte("hi")), ErrSender},
		{"a stranger's commit", join(uint8(SenderExternal), uint32(0)), ContentCommit, commit(nil), ErrSender},
		{"a stranger's proposal", join(uint8(SenderExternal), uint32(0)), ContentProposal, remove[1:], nil},
		{"a proposal to let one in, of itself", join(uint8(SenderNewMemberProposal)), ContentProposal, remove[1:], nil},
	} {
		m, err := ParsePublicMessage(d.publicMessage(t, c.sender, c.kind, c.content))
		if !errors.Is(err, c.want) || (m == nil) != (err != nil) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	if _, err := ParsePublicMessage(privateMessage(ContentCommit)); !errors.Is(err, ErrWireFormat) {
		t.Errorf("a PrivateMessage: %v, want %v", err, ErrWireFormat)
	}
}

func TestVerifyRefusesOthersThanTheSender(t *testing.T) {
	t.Parallel()
	d, other := newDevice(t, 1, 1), newDevice(t, 1, 2)
	good := func() *PublicMessage {
		return parsePublic(t, d.publicMessage(t, memberAt(0), ContentCommit, commit(nil)))
	}
	for _, c := range []struct {
		name    string
		message *PublicMessage
		alter   func(*GroupInfo)
		want    error
	}{
		{"the member itself", good(), func(*GroupInfo) {}, nil},
		{"another epoch", good(), func(g *GroupInfo) { g.Epoch++ }, ErrGroup},
		{"another group", good(), func(g *GroupInfo) { g.GroupID = []byte("urn:uuid:other") }, ErrGroup},
		{"another state of the group", good(), func(g *GroupInfo) { g.context = slices.Concat(g.context, []byte{0}) }, ErrSignature},
		{"without the tree", good(), func(g *GroupInfo) { g.Members = nil }, ErrMember},
		{"an unsupported suite", good(), func(g *GroupInfo) { g.Suite = 5 }, ErrSuite},
		{"in the name of another member", parsePublic(t, other.publicMessage(t, memberAt(2), ContentCommit, commit(nil))), func(*GroupInfo) {}, ErrSignature},
		{"a blank leaf", parsePublic(t, d.publicMessage(t, memberAt(1), ContentCommit, commit(nil))), func(*GroupInfo) {}, ErrMember},
		{"the last leaf there can be", parsePublic(t, d.publicMessage(t, memberAt(1<<32-1), ContentCommit, commit(nil))), func(*GroupInfo) {}, ErrMember},
		{"a joiner", parsePublic(t, other.publicMessage(t, join(uint8(SenderNewMemberCommit)), ContentCommit, commit(other.path(t, 1)))), func(*GroupInfo) {}, nil},
		{"a joiner with the leaf of another", parsePublic(t, other.publicMessage(t, join(uint8(SenderNewMemberCommit)), ContentCommit, commit(d.path(t, 1)))), func(*GroupInfo) {}, ErrSignature},
		{"a joiner without a leaf", parsePublic(t, other.publicMessage(t, join(uint8(SenderNewMemberCommit)), ContentCommit, commit(nil))), func(*GroupInfo) {}, ErrMember},
		{"a stranger", parsePublic(t, d.publicMessage(t, join(uint8(SenderExternal), uint32(0)), ContentProposal, join(uint16(ProposalRemove), uint32(0)))), func(*GroupInfo) {}, ErrMember},
	} {
		g := publicGroup(t, d)
		c.alter(g)
		if err := c.message.Verify(g); !errors.Is(err, c.want) {
			t.Errorf("%s: Verify = %v, want %v", c.name, err, c.want)
		}
	}
}

func parsePublic(t *testing.T, message []byte) *PublicMessage {
	t.Helper()
	m, err := ParsePublicMessage(message)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
