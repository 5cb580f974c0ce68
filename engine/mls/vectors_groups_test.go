package mls

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The official files, and why three of them are not played. Whoever plays them needs secrets, or
// computes parents of a tree: a client, not a delivery service.
var officialFiles = map[string]string{
	"crypto-basics": "", "deserialization": "", "key-schedule": "", "message-protection": "", "messages": "", "passive-client-handling-commit": "",
	"passive-client-random": "", "passive-client-welcome": "", "transcript-hashes": "", "tree-operations": "", "tree-validation": "", "treekem": "", "welcome": "",
	"psk_secret": "pre-shared keys", "secret-tree": "keys and nonces of messages", "tree-math": "places of parents",
}

// Row 29: each official file is played as far as the codec reads it. docs/conversations.md names
// those that are not, with the reason.
func TestRow29EveryOfficialFileIsPlayedOrNamed(t *testing.T) {
	t.Parallel()
	if !hasVectors(t) {
		t.Skipf("the vectors of RFC 9420 are not in %s; LIGHTWEB_VECTORS says where they are", vectorsDir())
	}
	files, err := filepath.Glob(filepath.Join(vectorsDir(), "*.json.gz"))
	if err != nil || len(files) != len(officialFiles) {
		t.Errorf("there are %d files, %v; want %d", len(files), err, len(officialFiles))
	}
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	tests := read("vectors_test.go") + strings.SplitN(read("vectors_groups_test.go"), "func Test", 3)[2]
	page := read("../../docs/conversations.md")
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json.gz")
		reason, known := officialFiles[name]
		isPlayed := regexp.MustCompile(`"` + name + `"[,)}]`).MatchString(tests) // no tag, and no key of a map
		if !known || isPlayed != (reason == "") {
			t.Errorf("%s is played: %v; want a test or a reason", name, isPlayed)
		}
		if reason != "" && !strings.Contains(page, "| `"+name+"` | "+reason+" |") {
			t.Errorf("the page does not say that %s is about %s", name, reason)
		}
	}
}

// The codec finds group, epoch and the end of each group context.
func TestOfficialGroupContextsAreReadToTheirEnd(t *testing.T) {
	t.Parallel()
	for i, v := range readVectors[struct {
		Suite   CipherSuite `json:"cipher_suite"`
		GroupID hexBytes    `json:"group_id"`
		Epochs  []struct {
			Context    hexBytes `json:"group_context"`
			TreeHash   hexBytes `json:"tree_hash"`
			Transcript hexBytes `json:"confirmed_transcript_hash"`
		}
	}](t, "key-schedule") {
		for n, e := range v.Epochs {
			r := reader{rest: e.Context}
			suite, id, epoch := r.readGroup()
			tree, transcript := r.readVector(), r.readVector()
			r.skipExtensions()
			if err := r.finish(); err != nil || suite != v.Suite || !bytes.Equal(id, v.GroupID) || epoch != uint64(n) || !bytes.Equal(tree, e.TreeHash) || !bytes.Equal(transcript, e.Transcript) {
				t.Errorf("%d, epoch %d: suite %d, group %x, epoch %d, %v", i, n, suite, id, epoch, err)
			}
			if !bytes.Equal(groupContext(suite, id, epoch, tree, transcript), e.Context) {
				t.Errorf("%d, epoch %d: the tests write another context", i, n)
			}
		}
	}
}

// A transcript hash covers the bytes of a commit up to its signature. It shows that the codec cuts
// a commit where the others do.
func TestOfficialCommitsAreCutAsTheirTranscriptsSay(t *testing.T) {
	t.Parallel()
	for i, v := range readVectors[struct {
		Suite   CipherSuite `json:"cipher_suite"`
		Content hexBytes    `json:"authenticated_content"`
		Before  hexBytes    `json:"interim_transcript_hash_before"`
		After   hexBytes    `json:"confirmed_transcript_hash_after"`
	}](t, "transcript-hashes") {
		message := join(uint16(mls10), []byte(v.Content), vector()) // without a membership_tag
		m, err := ParsePublicMessage(message)
		if err != nil || m.ContentType != ContentCommit {
			t.Errorf("%d: %+v, %v", i, m, err)
			continue
		}
		if v.Suite > 3 {
			continue // with another hash
		}
		input := slices.Concat(v.Before, m.signed[2:], vector(m.signature))
		if got := sha256.Sum256(input); !bytes.Equal(got[:], v.After) {
			t.Errorf("%d: the transcript hash is %x, want %x", i, got, v.After)
		}
	}
}

// verifyLeaf checks the signature of a leaf in a tree (§7.2).
func verifyLeaf(s CipherSuite, group []byte, m Member) error {
	signed := m.signed
	if m.source != leafOfKeyPackage {
		signed = binary.BigEndian.AppendUint32(slices.Concat(signed, vector(group)), m.Index)
	}
	return s.verify(m.SignatureKey, "LeafNodeTBS", m.signature, signed)
}

func readOfficialTree(t *testing.T, tree []byte) []Member {
	t.Helper()
	r := reader{rest: tree}
	members := r.readTree()
	if err := r.finish(); err != nil {
		t.Fatalf("a tree of %d bytes: %v", len(tree), err)
	}
	return members
}

// Each leaf is signed for its place in its group.
func TestOfficialLeavesAreSigned(t *testing.T) {
	t.Parallel()
	checked := map[leafSource]int{}
	for i, v := range readVectors[struct {
		Suite   CipherSuite `json:"cipher_suite"`
		Tree    hexBytes    `json:"tree"`
		GroupID hexBytes    `json:"group_id"`
	}](t, "tree-validation") {
		for _, m := range readOfficialTree(t, v.Tree) {
			if v.Suite > 3 {
				continue
			}
			checked[m.source]++
			if err := verifyLeaf(v.Suite, v.GroupID, m); err != nil {
				t.Errorf("%d, leaf %d: %v", i, m.Index, err)
			}
		}
	}
	if len(checked) < 2 {
		t.Errorf("leaves of each source: %v", checked)
	}
}

// An update path ends where it should, and its leaf is signed for the place of its sender.
func TestOfficialUpdatePathsAreReadToTheirEnd(t *testing.T) {
	t.Parallel()
	for i, v := range readVectors[struct {
		Suite   CipherSuite `json:"cipher_suite"`
		GroupID hexBytes    `json:"group_id"`
		Tree    hexBytes    `json:"ratchet_tree"`
		Paths   []struct {
			Sender uint32   `json:"sender"`
			Path   hexBytes `json:"update_path"`
		} `json:"update_paths"`
		Private []struct{ Index uint32 } `json:"leaves_private"`
	}](t, "treekem") {
		members := readOfficialTree(t, v.Tree)
		for _, p := range v.Private {
			if !slices.ContainsFunc(members, func(m Member) bool { return m.Index == p.Index }) {
				t.Errorf("%d: no member is at %d", i, p.Index)
			}
		}
		for _, p := range v.Paths {
			r := reader{rest: p.Path}
			leaf := r.readPath()
			if err := r.finish(); err != nil {
				t.Errorf("%d, path of %d: %v", i, p.Sender, err)
				continue
			}
			if v.Suite > 3 {
				continue
			}
			if err := verifyLeaf(v.Suite, v.GroupID, Member{p.Sender, *leaf}); err != nil {
				t.Errorf("%d, path of %d: %v", i, p.Sender, err)
			}
			if err := verifyLeaf(v.Suite, v.GroupID, Member{p.Sender + 1, *leaf}); err == nil {
				t.Errorf("%d: the path of %d is signed for another place", i, p.Sender)
			}
		}
	}
}

// A proposal makes the members after it of those before.
func TestOfficialProposalsMakeTheNextMembers(t *testing.T) {
	t.Parallel()
	kinds := map[ProposalType]bool{}
	for i, v := range readVectors[struct {
		Proposal hexBytes `json:"proposal"`
		Sender   uint32   `json:"proposal_sender"`
		Before   hexBytes `json:"tree_before"`
		After    hexBytes `json:"tree_after"`
	}](t, "tree-operations") {
		var m PublicMessage
		r := reader{rest: v.Proposal}
		if m.readProposal(&r); r.finish() != nil {
			t.Fatalf("%d: %v", i, r.err)
		}
		members, p := readOfficialTree(t, v.Before), m.Proposals[0]
		kinds[p.Type] = true
		switch p.Type {
		case ProposalAdd: // at the first blank leaf
			place := uint32(0)
			for slices.ContainsFunc(members, func(m Member) bool { return m.Index == place }) {
				place++
			}
			members = append(members, Member{place, p.KeyPackage.Leaf})
		case ProposalUpdate:
			members = append(slices.DeleteFunc(members, func(m Member) bool { return m.Index == v.Sender }), Member{v.Sender, *p.Leaf})
		case ProposalRemove:
			members = slices.DeleteFunc(members, func(m Member) bool { return m.Index == p.Removed })
		}
		slices.SortFunc(members, func(a, b Member) int { return int(a.Index) - int(b.Index) })
		if got := readOfficialTree(t, v.After); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", members) {
			t.Errorf("%d: after the proposal the members are %+v, want %+v", i, got, members)
		}
	}
	if len(kinds) != 3 {
		t.Errorf("proposals of the types %v", kinds)
	}
}

// Groups that grow and shrink over hundreds of epochs: each message is of the epoch in which it
// was made, and each commit names the proposals before it.
func TestOfficialGroupsAreFollowedThroughTheirEpochs(t *testing.T) {
	t.Parallel()
	type vector struct {
		Tree   hexBytes `json:"ratchet_tree"`
		Epochs []struct {
			Proposals []hexBytes
			Commit    hexBytes
		}
	}
	commits := 0
	for _, name := range []string{"passive-client-handling-commit", "passive-client-random"} {
		for i, v := range readVectors[vector](t, name) {
			if v.Tree != nil {
				readOfficialTree(t, v.Tree)
			}
			var first *PublicMessage
			for n, e := range v.Epochs {
				for k, message := range append(slices.Clone(e.Proposals), e.Commit) {
					m, err := ParsePublicMessage(message)
					if err != nil {
						t.Fatalf("%s %d, epoch %d: %v", name, i, n, err)
					}
					if first == nil {
						first = m
					}
					want := ContentProposal
					if k == len(e.Proposals) {
						want = ContentCommit
						commits++
					}
					if m.Epoch != first.Epoch+uint64(n) || !bytes.Equal(m.GroupID, first.GroupID) || m.ContentType != want {
						t.Errorf("%s %d, epoch %d: the header is %+v", name, i, n, m.Header)
					}
					if want == ContentCommit && m.References != len(e.Proposals) {
						t.Errorf("%s %d, epoch %d: %d references to %d proposals", name, i, n, m.References, len(e.Proposals))
					}
				}
			}
		}
	}
	if commits < 300 {
		t.Errorf("%d commits", commits)
	}
}

// Nothing of a PrivateMessage can be read but its header.
func TestOfficialPrivateMessagesTellTheirGroup(t *testing.T) {
	t.Parallel()
	for _, v := range readVectors[struct {
		GroupID     hexBytes `json:"group_id"`
		Epoch       uint64   `json:"epoch"`
		Proposal    hexBytes `json:"proposal_priv"`
		Commit      hexBytes `json:"commit_priv"`
		Application hexBytes `json:"application_priv"`
	}](t, "message-protection") {
		for want, message := range map[ContentType]hexBytes{ContentProposal: v.Proposal, ContentCommit: v.Commit, ContentApplication: v.Application} {
			h, err := ReadHeader(message)
			if err != nil || h.WireFormat != FormatPrivateMessage || h.ContentType != want || h.Epoch != v.Epoch || !bytes.Equal(h.GroupID, v.GroupID) {
				t.Errorf("%+v, %v; want content %d of epoch %d of %x", h, err, want, v.Epoch, v.GroupID)
			}
		}
	}
}
