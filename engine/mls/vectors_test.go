package mls

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// hexBytes holds bytes that the official vectors contain as hexadecimal digits.
type hexBytes []byte

func (h *hexBytes) UnmarshalText(text []byte) (err error) {
	*h, err = hex.DecodeString(string(text))
	return err
}

// vectorsDir returns the folder of the official vectors.
func vectorsDir() string {
	if root := os.Getenv("LIGHTWEB_VECTORS"); root != "" {
		return filepath.Join(root, "mls")
	}
	return "../../../shared/vectors/mls"
}

// hasVectors reports whether the official vectors are present. If they are missing, and
// LIGHTWEB_VECTORS or LIGHTWEB_TEST_ALL requires them, it fails the test.
func hasVectors(t testing.TB) bool {
	t.Helper()
	_, err := os.Stat(vectorsDir())
	if err != nil && (os.Getenv("LIGHTWEB_VECTORS") != "" || os.Getenv("LIGHTWEB_TEST_ALL") == "1") {
		t.Fatalf("the vectors of RFC 9420 are missing: %v", err)
	}
	return err == nil
}

// readVectors reads one file of the official test vectors of RFC 9420.
func readVectors[V any](t testing.TB, name string) (vectors []V) {
	t.Helper()
	if !hasVectors(t) {
		t.Skipf("the vectors of RFC 9420 are not in %s; LIGHTWEB_VECTORS says where they are", vectorsDir())
	}
	file, err := os.Open(filepath.Join(vectorsDir(), name+".json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err == nil {
		err = json.NewDecoder(plain).Decode(&vectors)
	}
	if err != nil || len(vectors) == 0 {
		t.Fatalf("%d vectors in %s: %v", len(vectors), name, err)
	}
	return vectors
}

// messageVector holds a message of each kind, and parts of messages. A test client made them at
// random.
type messageVector struct {
	Welcome                hexBytes `json:"mls_welcome"`
	GroupInfo              hexBytes `json:"mls_group_info"`
	KeyPackage             hexBytes `json:"mls_key_package"`
	RatchetTree            hexBytes `json:"ratchet_tree"`
	Add                    hexBytes `json:"add_proposal"`
	Update                 hexBytes `json:"update_proposal"`
	Remove                 hexBytes `json:"remove_proposal"`
	PreSharedKey           hexBytes `json:"pre_shared_key_proposal"`
	ReInit                 hexBytes `json:"re_init_proposal"`
	ExternalInit           hexBytes `json:"external_init_proposal"`
	GroupContextExtensions hexBytes `json:"group_context_extensions_proposal"`
	Commit                 hexBytes `json:"commit"`
	PublicApplication      hexBytes `json:"public_message_application"`
	PublicProposal         hexBytes `json:"public_message_proposal"`
	PublicCommit           hexBytes `json:"public_message_commit"`
	Private                hexBytes `json:"private_message"`
}

// messages returns the complete messages of a vector. The keys are their kinds.
func (v *messageVector) messages() map[string][]byte {
	return map[string][]byte{
		"welcome": v.Welcome, "group info": v.GroupInfo, "key package": v.KeyPackage,
		"application": v.PublicApplication, "proposal": v.PublicProposal, "commit": v.PublicCommit, "private": v.Private,
	}
}

func TestOfficialMessagesAreReadToTheirEnd(t *testing.T) {
	t.Parallel()
	for i, v := range readVectors[messageVector](t, "messages") {
		for kind, message := range v.messages() {
			h, err := ReadHeader(message)
			if err != nil {
				t.Fatalf("%d, %s: ReadHeader: %v", i, kind, err)
			}
			if err := parseMessage(h, message); err != nil {
				t.Errorf("%d, %s: %v", i, kind, err)
			}
		}
	}
}

// parseMessage parses a message with the parser for h's format. It compares the parsed header with
// h.
func parseMessage(h Header, message []byte) error {
	switch h.WireFormat {
	case FormatPublicMessage:
		m, err := ParsePublicMessage(message)
		if err == nil && !sameHeader(m.Header, h) {
			err = fmt.Errorf("parsed %+v, its header is %+v", m.Header, h)
		}
		return err
	case FormatGroupInfo:
		g, err := ParseGroupInfo(message)
		if err == nil && (!bytes.Equal(g.GroupID, h.GroupID) || g.Epoch != h.Epoch) {
			err = fmt.Errorf("parsed group %x at %d, its header is %+v", g.GroupID, g.Epoch, h)
		}
		return err
	case FormatWelcome:
		_, err := ParseWelcome(message)
		return err
	case FormatKeyPackage:
		_, err := ParseKeyPackage(message)
		return err
	}
	return nil
}

func sameHeader(a, b Header) bool {
	return a.WireFormat == b.WireFormat && bytes.Equal(a.GroupID, b.GroupID) && a.Epoch == b.Epoch && a.ContentType == b.ContentType
}

// The vectors also contain parts of messages: proposals, a commit and a ratchet tree. The test
// reads each part to its end.
func TestOfficialPartsOfMessagesAreReadToTheirEnd(t *testing.T) {
	t.Parallel()
	for i, v := range readVectors[messageVector](t, "messages") {
		for _, c := range []struct {
			want     ProposalType
			proposal []byte
		}{
			{ProposalAdd, v.Add}, {ProposalUpdate, v.Update}, {ProposalRemove, v.Remove}, {ProposalPreSharedKey, v.PreSharedKey},
			{ProposalReInit, v.ReInit}, {ProposalExternalInit, v.ExternalInit},
			{ProposalGroupContextExtensions, v.GroupContextExtensions},
		} {
			var m PublicMessage
			r := reader{rest: append(binary.BigEndian.AppendUint16(nil, uint16(c.want)), c.proposal...)}
			m.readProposal(&r)
			if err := r.finish(); err != nil || m.Proposals[0].Type != c.want {
				t.Errorf("%d, proposal %d: %v", i, c.want, err)
			}
		}
		m := PublicMessage{Header: Header{ContentType: ContentCommit}}
		r := reader{rest: v.Commit}
		m.readContent(&r)
		if err := r.finish(); err != nil || len(m.Proposals)+m.References == 0 {
			t.Errorf("%d, commit: %d proposals, %d references, %v", i, len(m.Proposals), m.References, err)
		}
		r = reader{rest: v.RatchetTree}
		tree := reader{rest: r.rest}
		if members := tree.readTree(); tree.finish() != nil || len(members) == 0 {
			t.Errorf("%d, tree: %d members, %v", i, len(members), tree.err)
		}
	}
}

func TestOfficialLengths(t *testing.T) {
	t.Parallel()
	for _, v := range readVectors[struct {
		Header hexBytes `json:"vlbytes_header"`
		Length int      `json:"length"`
	}](t, "deserialization") {
		r := reader{rest: v.Header}
		if got := r.readLength(); r.finish() != nil || got != v.Length {
			t.Errorf("length %x = %d, %v; want %d", v.Header, got, r.err, v.Length)
		}
	}
}

// Of the basic operations, a delivery service needs only two: references and signatures.
func TestOfficialReferencesAndSignatures(t *testing.T) {
	t.Parallel()
	for _, v := range readVectors[struct {
		Suite CipherSuite `json:"cipher_suite"`
		Ref   struct {
			Label      string
			Out, Value hexBytes
		} `json:"ref_hash"`
		Sign struct {
			Label                   string
			Content, Pub, Signature hexBytes
		} `json:"sign_with_label"`
	}](t, "crypto-basics") {
		ref, refErr := v.Suite.hashReference(v.Ref.Label, v.Ref.Value)
		signErr := v.Suite.verify(v.Sign.Pub, v.Sign.Label, v.Sign.Signature, v.Sign.Content[:3], v.Sign.Content[3:])
		if v.Suite > 3 {
			if !errors.Is(refErr, ErrSuite) || !errors.Is(signErr, ErrSuite) {
				t.Errorf("suite %d: %v, %v; want it not supported", v.Suite, refErr, signErr)
			}
			continue
		}
		if refErr != nil || !bytes.Equal(ref, v.Ref.Out) {
			t.Errorf("suite %d: reference %x, %v; want %x", v.Suite, ref, refErr, v.Ref.Out)
		}
		if signErr != nil {
			t.Errorf("suite %d: %v", v.Suite, signErr)
		}
		if err := v.Suite.verify(v.Sign.Pub, v.Sign.Label, v.Sign.Signature, v.Sign.Content, []byte{0}); !errors.Is(err, ErrSignature) {
			t.Errorf("suite %d, another content: %v, want %v", v.Suite, err, ErrSignature)
		}
	}
}

// Each vector has a key package and a Welcome for that key package. The Welcome contains the key
// package's reference.
func TestOfficialWelcomesNameTheirKeyPackages(t *testing.T) {
	t.Parallel()
	type vector struct {
		Suite      CipherSuite `json:"cipher_suite"`
		KeyPackage hexBytes    `json:"key_package"`
		Welcome    hexBytes    `json:"welcome"`
	}
	checked := 0
	for _, name := range []string{"welcome", "passive-client-welcome", "passive-client-handling-commit", "passive-client-random"} {
		for i, v := range readVectors[vector](t, name) {
			k, err := ParseKeyPackage(v.KeyPackage)
			if err != nil || k.Suite != v.Suite {
				t.Fatalf("%s %d: key package %+v, %v", name, i, k, err)
			}
			w, err := ParseWelcome(v.Welcome)
			if err != nil || w.Suite != v.Suite {
				t.Fatalf("%s %d: welcome %+v, %v", name, i, w, err)
			}
			if v.Suite > 3 {
				if err := k.Check(string(k.Leaf.Identity), time.Now(), time.Hour); !errors.Is(err, ErrSuite) {
					t.Errorf("%s %d: suite %d: %v, want %v", name, i, v.Suite, err, ErrSuite)
				}
				continue
			}
			if checked++; k.checkSignatures() != nil {
				t.Errorf("%s %d: the signatures do not hold", name, i)
			}
			if ref, err := k.Reference(); err != nil || !containsBytes(w.KeyPackages, ref) {
				t.Errorf("%s %d: the welcome is for %x, the package is %x, %v", name, i, w.KeyPackages, ref, err)
			}
		}
	}
	if checked < 30 {
		t.Errorf("%d welcomes of supported suites", checked)
	}
}

func containsBytes(all [][]byte, want []byte) bool {
	for _, b := range all {
		if bytes.Equal(b, want) {
			return true
		}
	}
	return false
}

// protectionVector holds messages of the member at leaf 1, and the group context with which they
// are signed.
type protectionVector struct {
	Suite      CipherSuite `json:"cipher_suite"`
	GroupID    hexBytes    `json:"group_id"`
	Epoch      uint64      `json:"epoch"`
	TreeHash   hexBytes    `json:"tree_hash"`
	Transcript hexBytes    `json:"confirmed_transcript_hash"`
	Key        hexBytes    `json:"signature_pub"`
	Proposal   hexBytes    `json:"proposal_pub"`
	Commit     hexBytes    `json:"commit_pub"`
}

// group returns the state of the vector's group. The group has only the member who signs.
func (v *protectionVector) group() *GroupInfo {
	return &GroupInfo{
		Suite: v.Suite, GroupID: v.GroupID, Epoch: v.Epoch,
		Members: []Member{{Index: 1, LeafNode: LeafNode{SignatureKey: v.Key}}},
		context: groupContext(v.Suite, v.GroupID, v.Epoch, v.TreeHash, v.Transcript),
	}
}

func TestOfficialPublicMessagesAreSignedByTheirSender(t *testing.T) {
	t.Parallel()
	for _, v := range readVectors[protectionVector](t, "message-protection") {
		if v.Suite > 3 {
			continue
		}
		for _, message := range [][]byte{v.Proposal, v.Commit} {
			m, err := ParsePublicMessage(message)
			if err != nil {
				t.Fatalf("suite %d: %v", v.Suite, err)
			}
			if err := m.Verify(v.group()); err != nil {
				t.Errorf("suite %d: %v", v.Suite, err)
			}
			other := v.group()
			digest := sha256.Sum256(v.TreeHash)
			other.context = groupContext(v.Suite, v.GroupID, v.Epoch, digest[:], v.Transcript)
			if err := m.Verify(other); !errors.Is(err, ErrSignature) {
				t.Errorf("suite %d, another context: %v, want %v", v.Suite, err, ErrSignature)
			}
		}
	}
}

func TestOfficialTreesAreReadToTheirEnd(t *testing.T) {
	t.Parallel()
	for i, v := range readVectors[struct {
		Tree        hexBytes   `json:"tree"`
		Resolutions [][]uint32 `json:"resolutions"`
	}](t, "tree-validation") {
		r := reader{rest: v.Tree}
		members := r.readTree()
		if err := r.finish(); err != nil {
			t.Errorf("%d: %v", i, err)
		}
		var want []uint32 // a node resolves to itself unless it is blank (RFC 9420 §4.1.1)
		for place := 0; place < len(v.Resolutions); place += 2 {
			if len(v.Resolutions[place]) > 0 {
				want = append(want, uint32(place/2))
			}
		}
		var got []uint32
		for _, m := range members {
			got = append(got, m.Index)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%d: members at %v, want %v", i, got, want)
		}
	}
}
