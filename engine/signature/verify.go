package signature

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rsa"
	"strings"
)

// Verify checks the claim with the public key that KeyID names, an *rsa.PublicKey or
// ed25519.PublicKey. The type of the key decides the family of algorithms. An algorithm that the
// request names is refused if it is not of that family.
func (c Claim) Verify(key crypto.PublicKey) error {
	return First(&against{Claim: c, key: key}, keyChecks)
}

// Examine runs the checks of Verify without stopping at the first failure. Without a key, or
// without a base, no check can run.
func (c Claim) Examine(key crypto.PublicKey) []Finding {
	if key == nil || len(c.Bases) == 0 {
		return None(keyChecks)
	}
	return All(&against{Claim: c, key: key}, keyChecks)
}

// against is a claim with the key that verifies it.
type against struct {
	Claim
	key        crypto.PublicKey
	family     string   // the prefix of the names of the key's algorithms
	algorithms []string // algorithms by which the signature may have been made
}

var keyChecks = []Check[*against]{
	{"strength", nil, (*against).readKey},
	{"agreement", []string{"strength"}, (*against).checkAgreement},
	{"verified", []string{"strength"}, (*against).checkSignature},
}

func (a *against) readKey() error {
	switch k := a.key.(type) {
	case *rsa.PublicKey:
		if err := checkRSA(k); err != nil {
			return refuse("weak_key", "the key is not an RSA key of 2048 to 8192 bits with a safe exponent")
		}
		a.family, a.algorithms = "rsa", []string{rsaSHA256}
		if a.Dialect == Cavage {
			a.algorithms = []string{rsaSHA256, rsaSHA512}
		}
	case ed25519.PublicKey:
		if err := checkEd25519(k); err != nil {
			return refuse("weak_key", "the key is not a safe Ed25519 key")
		}
		a.family, a.algorithms = edwards, []string{edwards}
	default:
		return refuse("unknown_key_type", "the key is neither an RSA nor an Ed25519 key")
	}
	return nil
}

// checkAgreement refuses a named algorithm that does not fit the key. If the algorithm fits,
// checkSignature tries only this algorithm in RFC 9421, but all algorithms of the key in
// draft-cavage.
func (a *against) checkAgreement() error {
	if a.Algorithm == "" || a.Algorithm == "hs2019" {
		return nil
	}
	if !strings.HasPrefix(a.Algorithm, a.family) {
		return refuse("algorithm_mismatch", "the algorithm of the signature is not one of its key")
	}
	if a.Dialect == RFC9421 {
		a.algorithms = []string{a.Algorithm}
	}
	return nil
}

func (a *against) checkSignature() error {
	for _, base := range a.Bases {
		for _, algorithm := range a.algorithms {
			if isSignature(algorithm, a.key, base, a.signature) {
				return nil
			}
		}
	}
	return refuse("bad_signature", "the signature does not verify with its key")
}
