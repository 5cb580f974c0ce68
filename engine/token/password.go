package token

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"github.com/lightweb/lightweb/engine/fault"
)

// Bounds of a password: leastPassword in characters, MostPassword in bytes.
const (
	leastPassword = 8
	MostPassword  = 1024
)

// costs are the costs of one hashing by argon2id.
type costs struct {
	memory uint32 // KiB
	passes uint32
	lanes  uint8
}

// used holds the costs of new hashes, which are the least that OWASP recommends. most holds the
// greatest costs at which a stored hash is still computed. There is such a limit because another
// program may have written the hash.
var (
	used = costs{memory: 19 << 10, passes: 2, lanes: 1}
	most = costs{memory: 64 << 10, passes: 10, lanes: 4}
)

const (
	saltLength = 16
	keyLength  = 32
)

// hash is the stored form of a password.
type hash struct {
	costs
	salt, key []byte
}

// CheckPassword refuses a password that is too short or too long, is not UTF-8, or contains
// control characters. It refuses a line break, too, because that most likely belongs to the file
// from which the password was read.
func CheckPassword(password string) error {
	switch {
	case !utf8.ValidString(password) || strings.ContainsFunc(password, unicode.IsControl):
		return fault.New(fault.Unprocessable, "a password is UTF-8 without line breaks and other control characters").WithCode("bad_password")
	case utf8.RuneCountInString(password) < leastPassword:
		return fault.New(fault.Unprocessable, fmt.Sprintf("a password has at least %d characters", leastPassword)).WithCode("bad_password")
	case len(password) > MostPassword:
		return fault.New(fault.Unprocessable, "a password has at most 1,024 bytes").WithCode("bad_password")
	}
	return nil
}

// HashPassword returns the hash of a password in the form that is stored, the PHC form:
// $argon2id$v=19$m=…,t=…,p=…$salt$key.
func HashPassword(password string) string {
	h := hash{costs: used, salt: newSalt()}
	h.key = h.derive(password, keyLength)
	return fmt.Sprintf("$argon2id$v=%d$%s$%s$%s", argon2.Version, h.costs, encoding.EncodeToString(h.salt), encoding.EncodeToString(h.key))
}

var encoding = base64.RawStdEncoding.Strict()

func newSalt() []byte {
	salt := make([]byte, saltLength)
	_, _ = rand.Read(salt) // crypto/rand never fails
	return salt
}

func (c costs) String() string { return fmt.Sprintf("m=%d,t=%d,p=%d", c.memory, c.passes, c.lanes) }

// derive computes a key of length bytes from the password.
func (h hash) derive(password string, length int) []byte {
	return argon2.IDKey([]byte(password), h.salt, h.passes, h.memory, h.lanes, uint32(length))
}

// parseHash reads a hash in the form that HashPassword writes. The hash may have other costs.
func parseHash(stored string) (h hash, ok bool) {
	parts := strings.Split(stored, "$")
	if len(parts) != 6 || strings.ContainsAny(stored, "\r\n") || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return hash{}, false
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &h.memory, &h.passes, &h.lanes); err != nil || h.String() != parts[3] || !h.isBearable() {
		return hash{}, false
	}
	var err error
	if h.salt, err = encoding.DecodeString(parts[4]); err != nil || len(h.salt) < 8 || len(h.salt) > 64 {
		return hash{}, false
	}
	h.key, err = encoding.DecodeString(parts[5])
	return h, err == nil && len(h.key) >= 16 && len(h.key) <= 64
}

// isBearable reports whether argon2id can be computed with these costs, and none of them is above
// its limit in the variable most.
func (c costs) isBearable() bool {
	return c.passes >= 1 && c.lanes >= 1 && c.memory >= 8*uint32(c.lanes) && c.memory <= most.memory && c.passes <= most.passes && c.lanes <= most.lanes
}

// matches reports whether a password is the stored one, and whether the stored hash has other
// costs than new hashes. If stored is not a hash, matches does the same work, and both answers
// are false.
func matches(stored, password string) (right, outdated bool) {
	h, ok := parseHash(stored)
	if !ok {
		h = hash{costs: used, salt: newSalt(), key: make([]byte, keyLength)}
	}
	same := subtle.ConstantTimeCompare(h.derive(password, len(h.key)), h.key) == 1
	return same && ok, h.costs != used
}
