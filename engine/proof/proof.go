// Package proof signs and verifies documents with object integrity proofs (FEP-8b32) of the
// cryptosuite eddsa-jcs-2022. Its functions use neither network nor storage.
//
// Verifying has two halves, because the caller must find the key between them. Parse makes all
// checks that need only the document. The caller finds the key that the proof names, and the
// owner of that key. Proof.Verify then checks the signature with the key. Every refusal is
// fault.Unauthenticated, with a code that names the failed check.
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

	// ahead is the longest time by which the clock of a proof's author may be ahead of this
	// server's clock.
	ahead = time.Hour
	// maxEncoded is the greatest length of a signature in base58, in bytes.
	maxEncoded = 88
)

// Sign returns a copy of d with a proof by key, which is an Ed25519 key. Peers find its public
// half under the id in method. The proof replaces any proof that d has. The @context of d should
// define the terms of proofs.
func Sign(d vocab.Doc, method vocab.ID, key crypto.Signer, now time.Time) (vocab.Doc, error) {
	if _, ok := key.Public().(ed25519.PublicKey); !ok {
		return nil, errors.New("sign document: the key is not an Ed25519 key")
	}
	// Some peers encode the options again before they hash them. With whole seconds and only
	// these options, every encoder gets the same bytes.
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
// document. The document is hashed without its proof. It is also hashed without its Linked Data
// signature, because that signature is added after the proof.
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

// Proof is the proof of a document. Parse has made its checks, but the signature is not verified
// yet, so nothing in the proof can be trusted.
type Proof struct {
	Method  vocab.ID  // the id of the key; the caller finds out which actor owns the key
	Created time.Time // the signer's time of creation; at most an hour in the future

	covered, value []byte
}

// Parse returns the proof of d, or nil if d has none. It also returns nil for a proof that this
// engine cannot verify, because FEP-8b32 says to ignore such a proof. Such a proof has another
// type or cryptosuite, or names a key that is not on the web. Parse refuses a proof that is
// malformed, has expired, was created more than an hour after now, has another purpose than
// assertionMethod, or covers another @context than that of d. It also refuses a document without
// a canonical form, a document with several proofs, and a proof with an option (domain,
// challenge, previousProof) that this engine cannot check.
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
	created, err := checkOptions(d, o, now)
	if err != nil {
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
	return &Proof{method, created, covered, value}, nil
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

// checkOptions returns the time at which a proof was created. It refuses a proof with options
// that are missing, wrong or not supported. The signature covers all options, even those that
// checkOptions does not look at.
func checkOptions(d, o vocab.Doc, now time.Time) (created time.Time, err error) {
	if o["proofPurpose"] != purpose {
		return created, refuseProof("proof_purpose", "the proofPurpose must be assertionMethod")
	}
	created, err = time.Parse(time.RFC3339, o.Text("created"))
	if err != nil || created.After(now.Add(ahead)) {
		return created, refuseProof("proof_created", "a proof needs the time when it was created, and not one to come")
	}
	if o["expires"] != nil {
		if expires, err := time.Parse(time.RFC3339, o.Text("expires")); err != nil || !expires.After(now) {
			return created, refuseProof("proof_expired", "the proof has expired")
		}
	}
	for _, name := range []string{"domain", "challenge", "previousProof"} {
		if _, there := o[name]; there {
			return created, refuseProof("proof_bound", "a proof with a "+name+" is not taken")
		}
	}
	// A context that was added later could change the meaning of the terms for readers that
	// process it.
	if context := o["@context"]; context != nil && !reflect.DeepEqual(context, d["@context"]) {
		return created, refuseProof("proof_context", "the @context is not the one that the proof covers")
	}
	return created, nil
}

// Verify returns nil if the proof was made with key. For a key of small order, any proof can be
// forged. Verify does not check for such keys, because the parsers of keys refuse them.
func (p *Proof) Verify(key ed25519.PublicKey) error {
	if len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, p.covered, p.value) {
		return refuseProof("proof_wrong", "the proof does not hold")
	}
	return nil
}

func refuseProof(code, public string) error {
	return fault.New(fault.Unauthenticated, public).WithCode(code)
}
