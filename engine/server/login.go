package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/token"
	"github.com/lightweb/lightweb/engine/vocab"
)

// logins checks passwords. An attempt costs the same work, counts towards the same limits and is
// refused in the same words, whether or not a user has the name, has a password, or is active.
type logins struct {
	passwords instance.Passwords
	hasher    *token.Hasher
	bodies    *policy.Pool
	turns     *policy.Pool          // limits the passwords that are being hashed or wait to be hashed
	clients   *policy.Limiter       // limits the attempts of each client
	names     *policy.SharedLimiter // limits the attempts at each name
	places    *places
	lines     *policy.SharedLimiter
	outcomes  *prometheus.CounterVec
	log       *slog.Logger
}

func newLogins(d Deps) *logins {
	hashings := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "lightweb_password_hashings_total",
		Help: "Passwords hashed, to check or to store them.",
	})
	outcomes := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "lightweb_logins_total",
		Help: "Attempts to sign in, by outcome: right, wrong, limited, failed.",
	}, []string{"outcome"})
	d.Metrics.MustRegister(hashings, outcomes)
	return &logins{d.Store.Instance.Passwords, token.NewHasher(hashings), newBodies(policy.LoginBodies, maxLogin), policy.Hashings.NewPool(),
		policy.Logins.Limiter(d.Now), policy.NameLogins.Shared(d.Now), newPlaces(mostPlaces), policy.LoginLines.Shared(d.Now), outcomes, d.Log}
}

// attempt is one try at a password.
type attempt struct {
	client   netip.Prefix
	user     vocab.Username // zero if no user can have the name
	password string
}

func (t attempt) payer() string { return policy.NameAddress(t.client) }

// errWrong is the one answer to every wrong attempt. The log has the attempt already.
var errWrong = fault.New(fault.Unauthenticated, "the username or the password is wrong").WithCode("wrong_credentials").AsLogged()

// check returns the user's password if the attempt is right. The fault is errWrong if the attempt
// is wrong, and RateLimited, Unavailable or Busy if the password was not checked.
func (l *logins) check(ctx context.Context, t attempt) (*instance.Password, error) {
	p, err := l.try(ctx, t)
	outcome := "right"
	switch {
	case errors.Is(err, errWrong):
		outcome = "wrong"
	case fault.KindOf(err) == fault.RateLimited:
		outcome = "limited"
	case err != nil:
		outcome = "failed"
	}
	l.outcomes.WithLabelValues(outcome).Inc()
	l.write(ctx, t, p, err)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// write logs an attempt that was right or wrong, unless it has logged too many lately. If p is
// nil, no user can sign in by the name. Then write does not log the name, because people sometimes
// type their password into the field for the name.
func (l *logins) write(ctx context.Context, t attempt, p *instance.Password, err error) {
	if err != nil && !errors.Is(err, errWrong) {
		return // refuse logs it like any other refusal
	}
	if ok, _ := l.lines.Allow("", t.payer(), 0); !ok {
		return
	}
	log := l.log.With("address", t.client.Addr(), "right", err == nil)
	if p != nil {
		log = log.With("user", t.user)
	}
	log.InfoContext(ctx, "login")
}

// try does the work of check, except for counting and logging. If there is a stored password for
// the name, try returns that password even if the error is errWrong.
func (l *logins) try(ctx context.Context, t attempt) (*instance.Password, error) {
	if ok, after := l.clients.Allow(t.payer()); !ok {
		return nil, errTooManyLogins.After(after)
	}
	if ok, after := l.names.Allow(t.user.String(), t.payer(), l.places.keptFrom(t)); !ok {
		return nil, errTooManyLogins.After(after)
	}
	p, err := l.passwords.Find(ctx, t.user)
	if err != nil {
		return nil, err
	}
	stored := ""
	if p != nil {
		stored = p.Hash
	}
	right, outdated := false, false
	err = l.inTurn(t.payer(), func() (err error) {
		right, outdated, err = l.hasher.Verify(ctx, stored, t.password)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case !right:
		return p, errWrong
	}
	l.places.add(t)
	if outdated {
		err = l.renewHash(ctx, t, p)
	}
	return p, err
}

var errTooManyLogins = fault.New(fault.RateLimited, "there were too many attempts to sign in").WithCode("rate_limited")

// renewHash stores a new hash of a right password. The new hash has the costs that this program
// uses now.
func (l *logins) renewHash(ctx context.Context, t attempt, p *instance.Password) error {
	hash, err := l.hash(ctx, t.payer(), t.password)
	if err != nil {
		return err
	}
	return l.passwords.SetHash(ctx, p.ID, hash)
}

// hash returns the hash of a password, as it is stored.
func (l *logins) hash(ctx context.Context, payer, password string) (hash string, err error) {
	err = l.inTurn(payer, func() (err error) {
		hash, err = l.hasher.Hash(ctx, password)
		return err
	})
	return hash, err
}

// inTurn runs work that needs the hasher. It refuses the work if too many others wait for the
// hasher already.
func (l *logins) inTurn(payer string, work func() error) error {
	if !l.turns.Take(payer, 1) {
		return fault.New(fault.Unavailable, "too many passwords are checked at once").After(10 * time.Second)
	}
	defer l.turns.Give(payer, 1)
	return work()
}

// maxLogin limits the bytes of the body of a request with passwords. It leaves room for the
// escape of each character.
const maxLogin = 16 << 10

// readPasswords reads a body that is a JSON object with exactly two members, which are texts. The
// parameters one and other are the names of the members. A refusal quotes nothing of the body,
// because refusals are logged.
func (l *logins) readPasswords(a *answer, r *http.Request, payer, one, other string) (first, second string, err error) {
	body, err := readJSON(a, r, l.bodies, payer, maxLogin)
	if err != nil {
		return "", "", err
	}
	d, err := vocab.ParseDoc(body)
	if err != nil {
		return "", "", fault.New(fault.Invalid, "the body is no JSON object").WithCode("bad_body")
	}
	first, isText := d[one].(string)
	second, isTextToo := d[other].(string)
	if !isText || !isTextToo || len(d) != 2 {
		return "", "", fault.New(fault.Unprocessable, "the body has "+one+" and "+other+", which are texts, and nothing else").WithCode("invalid_parameter")
	}
	return first, second, nil
}
