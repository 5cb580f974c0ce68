package vocab

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/lightweb/lightweb/engine/fault"
)

// MaxSynchronized is the greatest number of followers on one server that are compared and listed
// (FEP-8fcf). A longer list is not sent at all, because the other server would end the follows
// that are missing in a partial list.
const MaxSynchronized = 10_000

// maxSynchronization is the greatest length of the header field that is read, in bytes. It has
// room for two ids, a digest, and parameters that this engine does not know.
const maxSynchronization = 4 << 10

// FollowersDigest is the digest of a set of actors (FEP-8fcf, partial follower collection digest):
// the exclusive or of the SHA-256 digests of the actors' ids, each in the form that its server
// writes. The digest does not depend on the order in which the ids are added.
type FollowersDigest [sha256.Size]byte

// Add adds an id in its written form. The id must not be in the set yet.
func (d *FollowersDigest) Add(written string) {
	for i, b := range sha256.Sum256([]byte(written)) {
		d[i] ^= b
	}
}

// DigestOf returns the digest of a set of ids.
func DigestOf(ids ...ID) (d FollowersDigest) {
	for _, id := range ids {
		d.Add(string(id))
	}
	return d
}

// Synchronization is the header field Collection-Synchronization. It describes the set of an
// actor's followers on the receiver's server (FEP-8fcf).
type Synchronization struct {
	Collection ID // the actor's followers
	URL        ID // the list of those followers that are on the receiver's server
	Digest     FollowersDigest
}

// String returns the value of the field.
func (s Synchronization) String() string {
	return `collectionId="` + string(s.Collection) + `", url="` + string(s.URL) + `", digest="` + hex.EncodeToString(s.Digest[:]) + `"`
}

// ParseSynchronization reads the value of the field. The value must have at most 4 KiB and the
// three parameters that Synchronization has. All parameters must be in quotes, and none may occur
// twice. The caller must verify the result before trusting it.
func ParseSynchronization(field string) (Synchronization, error) {
	malformed := fault.New(fault.Invalid, "Collection-Synchronization is malformed")
	if len(field) > maxSynchronization {
		return Synchronization{}, malformed
	}
	params := map[string]string{}
	for rest, more := field, true; more; {
		name, after, ok := strings.Cut(rest, `="`)
		name = strings.Trim(name, " \t")
		value, after, closed := strings.Cut(after, `"`)
		if _, twice := params[name]; twice || !ok || !closed || !isParameterName(name) || strings.ContainsFunc(value, isUnsafeInURI) {
			return Synchronization{}, malformed
		}
		params[name] = value
		after = strings.Trim(after, " \t")
		if rest, more = strings.CutPrefix(after, ","); !more && after != "" {
			return Synchronization{}, malformed
		}
	}
	var s Synchronization
	var err error
	if s.Collection, err = ParseID(params["collectionId"]); err != nil {
		return Synchronization{}, malformed
	}
	if s.URL, err = ParseID(params["url"]); err != nil {
		return Synchronization{}, malformed
	}
	digest, err := hex.DecodeString(params["digest"])
	if err != nil || len(digest) != len(s.Digest) {
		return Synchronization{}, malformed
	}
	copy(s.Digest[:], digest)
	return s, nil
}

func isParameterName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	})
}
