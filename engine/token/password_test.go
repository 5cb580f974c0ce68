package token

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/crypto/argon2"

	"github.com/lightweb/lightweb/engine/fault"
)

// hashWith returns a hash with the given costs, such as an older lightweb or another program made
// it.
func hashWith(password string, c costs) string {
	h := hash{costs: c, salt: []byte("0123456789abcdef")}
	b64 := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$%s$%s$%s", argon2.Version, c, b64(h.salt), b64(h.derive(password, keyLength)))
}

func TestAPasswordIsKnownByItsHash(t *testing.T) {
	t.Parallel()
	const password = "correct horse battery staple ünï"
	stored := HashPassword(password)
	if !strings.HasPrefix(stored, "$argon2id$v=19$m=19456,t=2,p=1$") || stored == HashPassword(password) {
		t.Errorf("the hash is %s, want PHC form with a salt of its own", stored)
	}
	for _, tt := range []struct {
		stored, password string
		right, outdated  bool
	}{
		{stored, password, true, false},
		{stored, password + " ", false, false},
		{stored, "", false, false},
		{stored, password[:len(password)-1], false, false},
		{hashWith(password, costs{memory: 64, passes: 1, lanes: 2}), password, true, true},
		{hashWith(password, costs{memory: 64, passes: 1, lanes: 2}), "another password", false, true},
	} {
		if right, outdated := matches(tt.stored, tt.password); right != tt.right || outdated != tt.outdated {
			t.Errorf("%q with %s is %t, outdated %t", tt.password, tt.stored, right, outdated)
		}
	}
}

// The hash comes from the tests of the reference implementation (phc-winner-argon2, test.c).
func TestHashesOfOtherProgramsAreRead(t *testing.T) {
	t.Parallel()
	if right, outdated := matches("$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc", "password"); !right || !outdated {
		t.Errorf("its password is right: %t, outdated: %t", right, outdated)
	}
}

// A backup may contain any hash. A malformed hash matches no password, and neither does a hash
// with excessive costs.
func TestWhatIsNoHashIsNoPassword(t *testing.T) {
	t.Parallel()
	good := hashWith("a password", costs{memory: 64, passes: 1, lanes: 1})
	for _, stored := range []string{"", "a password", "$", "$$$$$", good[1:], good + "$", strings.Replace(good, "argon2id", "argon2i", 1), strings.Replace(good, "v=19", "v=16", 1),
		strings.Replace(good, "m=64", "m=4194304", 1), strings.Replace(good, "m=64", "m=0", 1), strings.Replace(good, "m=64", "m=064", 1), strings.Replace(good, "m=64", "m=7", 1),
		strings.Replace(good, "t=1", "t=0", 1), strings.Replace(good, "t=1", "t=11", 1), strings.Replace(good, "p=1", "p=0", 1), strings.Replace(good, "p=1", "p=5", 1),
		strings.Replace(good, "p=1", "p=1,x=1", 1), "$argon2id$v=19$m=64,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$", "$argon2id$v=19$m=64,t=1,p=1$$MDEyMzQ1Njc4OWFiY2RlZg", good + "=", good + "\n"} {
		if _, ok := parseHash(stored); ok {
			t.Errorf("%q is read as a hash", stored)
		}
	}
	if right, _ := matches("", ""); right {
		t.Error("where nothing is stored, nothing is right")
	}
	if right, outdated := matches(strings.Replace(good, "m=64", "m=4194304", 1), "a password"); right || outdated {
		t.Error("what is no hash is a password")
	}
}

func TestPasswordsHaveALength(t *testing.T) {
	t.Parallel()
	for password, good := range map[string]bool{
		"": false, "seven77": false, "eight888": true, "üüüüüüü": false, "üüüüüüüü": true, strings.Repeat("x", 1024): true, strings.Repeat("x", 1025): false,
		"two\nlines of it": false, "a\x00password": false, "a\xffpassword": false, "        ": true,
	} {
		if err := CheckPassword(password); (err == nil) != good || err != nil && fault.KindOf(err) != fault.Unprocessable {
			t.Errorf("CheckPassword(%.20q) = %v, want good: %t", password, err, good)
		}
	}
}

// Two passwords are hashed at the same time. Other requests wait for their turn, unless they are
// cancelled first.
func TestFewPasswordsAreHashedAtATime(t *testing.T) {
	t.Parallel()
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "x"})
	h := NewHasher(counter)
	begun, end := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			if err := h.run(t.Context(), func() { begun <- struct{}{}; <-end }); err != nil {
				t.Error(err)
			}
		})
	}
	for range atOnce {
		<-begun
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := h.Verify(over, "", "x"); fault.KindOf(err) != fault.Busy || fault.Of(err).RetryAfter == 0 {
		t.Errorf("a third at once is answered %v, want Busy", err)
	}
	if n := testutil.ToFloat64(counter); n != atOnce {
		t.Errorf("%v were hashed, want %d", n, atOnce)
	}
	close(end)
	for range 6 {
		all.Go(func() {
			stored, err := h.Hash(t.Context(), "a password")
			if err != nil {
				t.Error(err)
			}
			if right, _, err := h.Verify(t.Context(), stored, "a password"); !right || err != nil {
				t.Error(right, err)
			}
		})
	}
	all.Wait()
	if n := testutil.ToFloat64(counter); n != atOnce+12 {
		t.Errorf("%v were hashed, want %d", n, atOnce+12)
	}
}
