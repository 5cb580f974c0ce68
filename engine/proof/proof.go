// Package proof signs and verifies documents: object integrity proofs (FEP-8b32) of the
// cryptosuite eddsa-jcs-2022; pure functions, no network, no storage.
//
// Verifying has two halves, because the key has to be found between them. Parse refuses everything
// that the document alone can get wrong; the caller decides whose key the proof names, and
// Proof.Verify does the mathematics. Every refusal is fault.Unauthenticated, with a code that
// names the check that failed.
package proof

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"

	"github.com/mr-tron/base58"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	kind    = "DataIntegrityProof"
	suite   = "eddsa-jcs-2022"
	purpose = "assertionMethod"

	// ahead is how far the clock of a proof's author may be ahead of ours.
	ahead = time.Hour
	// maxEncoded is how long a signature can be in base58, in bytes.
	maxEncoded = 88
)

// Sign returns d with a proof by the Ed25519 key that peers find under the id method, in place of
// any that it has. The @context of d should have the terms of proofs.
func Sign(d vocab.Doc, method vocab.ID, key crypto.Signer, now time.Time) (vocab.Doc, error) {
	if _, ok := key.Public().(ed25519.PublicKey); !ok {
		return nil, errors.New("sign document: the key is not an Ed25519 key")
	}
	// Some peers write the options anew before they hash them: whole seconds, and no more options
	// than these, look the same everywhere.
	options := vocab.Doc{"type": kind, "cryptosuite": suite, "verificationMethod": string(method), "proofPurpose": purpose,
		"created": now.UTC().Format(time.RFC3339)}
	if context := d["@context"]; context != nil {
		options["@context"] = context
	}
	covered, err := hashParts(d, options)
	if err != nil {
		return nil, fmt.Errorf("sign document: %w", err)
	}
	value, err := key.Sign(rand.Reader, covered, crypto.Hash(0))
	if err != nil {
		return nil, fmt.Errorf("sign document: %w", err)
	}
	options["proofValue"] = "z" + base58.Encode(value)
	signed := maps.Clone(d)
	signed["proof"] = options
	return signed, nil
}

// hashParts returns the bytes that are signed: the hash of the options, then the hash of the
// document without its proof and its Linked Data signature, which is made after the proof.
func hashParts(d, options vocab.Doc) ([]byte, error) {
	options, d = maps.Clone(options), maps.Clone(d)
	delete(options, "proofValue")
	delete(d, "proof")
	delete(d, "signature")
	var both []byte
	for _, part := range []vocab.Doc{options, d} {
		form, err := part.Canonical()
		if err != nil {
			return nil, err
		}
		digest := sha256.Sum256(form)
		both = append(both, digest[:]...)
	}
	return both, nil
}

// Proof is the proof that a document carries, parsed and found worth verifying: nothing in it is
// trusted yet.
type Proof struct {
	Method vocab.ID // the id of the key; the caller finds out whose key it is

	covered, value []byte
}

// Parse returns the proof of d, nil when it has none, or one that this engine cannot verify: of
// another cryptosuite, or by a key that is not on the web (FEP-8b32 has those ignored). A proof
// that is malformed, has expired or was made later than an hour from now is refused, as are
// several, and one with an option that binds it to something unknown to this engine.
func Parse(d vocab.Doc, now time.Time) (*Proof, error) {
	if d["proof"] == nil {
		return nil, nil
	}
	o := d.Sub("proof")
	if o == nil {
		return nil, refuseProof("proof_not_one", "there must be one proof, and it an object")
	}
	if t := o.Text("type"); t != "" && t != kind {
		return nil, nil
	}
	for _, name := range []string{"type", "cryptosuite", "verificationMethod"} {
		if o.Text(name) == "" {
			return nil, refuseProof("proof_malformed", "a proof needs a "+name)
		}
	}
	method, err := vocab.ParseID(o.Text("verificationMethod"))
	if err != nil || o.Text("cryptosuite") != suite {
		return nil, nil
	}
	if err := checkOptions(d, o, now); err != nil {
		return nil, err
	}
	value, err := valueOf(o)
	if err != nil {
		return nil, err
	}
	covered, err := hashParts(d, o)
	if err != nil {
		return nil, fault.Wrap(fault.Unauthenticated, "the proof covers a document that has no canonical form", err).WithCode("proof_form")
	}
	return &Proof{method, covered, value}, nil
}

func valueOf(o vocab.Doc) ([]byte, error) {
	encoded, ok := strings.CutPrefix(o.Text("proofValue"), "z")
	if ok && len(encoded) <= maxEncoded {
		if value, err := base58.Decode(encoded); err == nil && len(value) == ed25519.SignatureSize {
			return value, nil
		}
	}
	return nil, refuseProof("proof_value", "the proofValue is no signature in base58btc")
}

// checkOptions refuses a proof by its options: all of them are signed, known or not.
func checkOptions(d, o vocab.Doc, now time.Time) error {
	if o["proofPurpose"] != purpose {
		return refuseProof("proof_purpose", "the proofPurpose must be assertionMethod")
	}
	created, err := time.Parse(time.RFC3339, o.Text("created"))
	if err != nil || created.After(now.Add(ahead)) {
		return refuseProof("proof_created", "a proof needs the time when it was created, and not one to come")
	}
	if o["expires"] != nil {
		if expires, err := time.Parse(time.RFC3339, o.Text("expires")); err != nil || !expires.After(now) {
			return refuseProof("proof_expired", "the proof has expired")
		}
	}
	for _, name := range []string{"domain", "challenge", "previousProof"} {
		if _, there := o[name]; there {
			return refuseProof("proof_bound", "a proof with a "+name+" is not taken")
		}
	}
	// A context that was added later could give the words another meaning for those who process
	// it.
	if context := o["@context"]; context != nil && !reflect.DeepEqual(context, d["@context"]) {
		return refuseProof("proof_context", "the @context is not the one that the proof covers")
	}
	return nil
}

// Verify returns nil if the key made the proof. Keys of small order, which prove anything, are
// refused where keys are parsed.
func (p *Proof) Verify(key ed25519.PublicKey) error {
	if len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, p.covered, p.value) {
		return refuseProof("proof_wrong", "the proof does not hold")
	}
	return nil
}

func refuseProof(code, public string) error {
	return fault.New(fault.Unauthenticated, public).WithCode(code)
}
