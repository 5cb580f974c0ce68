package server

import (
	"errors"
	"net/http"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/token"
	"github.com/lightweb/lightweb/engine/vocab"
)

// postLogin makes a session for a client that sends a user's password.
func (s *clientAPI) postLogin(a *answer, r *http.Request) error {
	t := attempt{client: s.clientOf(r)}
	name, password, err := s.logins.readPasswords(a, r, t.payer(), "username", "password")
	if err != nil {
		return err
	}
	t.user, _ = vocab.ParseUsername(name) // a name that is no username has no password
	t.password = password
	p, err := s.logins.check(r.Context(), t)
	if errors.Is(err, errWrong) {
		a.Header().Set("WWW-Authenticate", "Bearer") // RFC 9110 §15.5.2
	}
	if err != nil {
		return err
	}
	return s.sendSession(a, r, t.user, p.Digest, instance.PasswordScopes(), http.StatusCreated)
}

// postPassword changes the password of the user. It requires the current password, so that a
// stolen token alone does not give access to the account for good.
func (s *clientAPI) postPassword(a *answer, r *http.Request, _ httprouter.Params) error {
	a.setCache(cachePrivate)
	by, err := s.authorize(a, r, instance.ScopeWrite)
	if err != nil {
		return err
	}
	if _, err := readQuery(r); err != nil {
		return err
	}
	t := attempt{client: s.clientOf(r), user: by.User}
	current, next, err := s.logins.readPasswords(a, r, t.payer(), "current", "new")
	if err != nil {
		return err
	}
	if err := token.CheckPassword(next); err != nil {
		return fault.Of(err).At("/new")
	}
	t.password = current
	p, err := s.logins.check(r.Context(), t)
	if errors.Is(err, errWrong) { // the answer is not 401, because 401 would refuse the token
		return fault.New(fault.Forbidden, "the current password is another one, or there is none").WithCode("wrong_password").At("/current").AsLogged()
	}
	if err != nil {
		return err
	}
	hash, err := s.logins.hash(r.Context(), policy.NameAddress(t.client), next)
	if err == nil {
		err = s.logins.passwords.Replace(r.Context(), by.User, p.ID, instance.NewPassword(hash))
	}
	if err == nil {
		a.WriteHeader(http.StatusNoContent)
	}
	return err
}
