package server

import (
	"context"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/socket"
	"github.com/lightweb/lightweb/engine/token"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	// sessionIdle is how long a session lasts without a request.
	sessionIdle = 30 * 24 * time.Hour

	// maxSessions is how many sessions a user has: one more ends the oldest.
	maxSessions = 100
)

// sessions are kept in Redis alone: when it loses them, programs show their token or password
// again. A session is a digest of its token, which is looked up with every request: it may do what
// the token may, and ends with it. A password is a token, too.
type sessions struct {
	redis   *keyspace.Store
	sockets *socket.Hub
}

// The keys of a user's sessions. The list of them stays: sessions in use outlive any time that it
// could have.
const sessionList = "sessions"

func sessionKey(digest [32]byte) string { return "session:" + hex.EncodeToString(digest[:]) }

// begin makes a session of a token, and returns its secret.
func (s sessions) begin(ctx context.Context, u vocab.Username, tokenDigest [32]byte) (secret string, err error) {
	secret, digest := token.New(token.Session, u)
	of, key := s.redis.Of(u), sessionKey(digest)
	ended, err := of.Enlist(ctx, sessionList, key, maxSessions)
	if err == nil && len(ended) > 0 {
		_, err = of.Delete(ctx, ended...)
		s.sockets.EndSessions(u, ended...)
	}
	if err == nil {
		err = of.SetTexts(ctx, []keyspace.Text{{Key: key, Value: hex.EncodeToString(tokenDigest[:]), While: sessionIdle}})
	}
	if err != nil { // it does not answer, or has no room
		err = fault.Wrap(fault.Unavailable, "no session can be kept now", err)
	}
	return secret, err
}

// use returns the digest of the token that a session was made of. The fault is Unauthenticated for
// a session that there is not, Unavailable when Redis does not answer.
func (s sessions) use(ctx context.Context, u vocab.Username, digest [32]byte) (tokenDigest [32]byte, err error) {
	text, err := s.redis.Of(u).Use(ctx, sessionKey(digest), sessionIdle)
	if err != nil {
		return tokenDigest, err
	}
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(tokenDigest) {
		return tokenDigest, errInvalidToken
	}
	return [32]byte(b), nil
}

// end ends a session with its sockets, and reports whether there was one.
func (s sessions) end(ctx context.Context, u vocab.Username, digest [32]byte) (bool, error) {
	n, err := s.redis.Of(u).Delete(ctx, sessionKey(digest))
	s.sockets.EndSessions(u, sessionKey(digest))
	return n > 0, err
}

// endAll ends all sessions of a user with their sockets.
func (s sessions) endAll(ctx context.Context, u vocab.Username) error {
	of := s.redis.Of(u)
	g, err := of.Glance(ctx, nil, sessionList, 0, -1)
	if err == nil && len(g.Elements) > 0 {
		_, err = of.Delete(ctx, g.Elements...)
	}
	s.sockets.EndSessions(u, g.Elements...)
	return err
}

// madeSession is the answer to who begins a session.
type madeSession struct {
	Session     string   `json:"session"` // shown this once
	Scopes      []string `json:"scopes"`
	IdleSeconds int      `json:"idleSeconds"` // without a request, after which it ends
}

// postSession makes a session, of the token that the request carries or of a password in its body.
func (s *clientAPI) postSession(a *answer, r *http.Request, _ httprouter.Params) error {
	a.setCache(cachePrivate)
	if _, err := readQuery(r); err != nil {
		return err
	}
	if _, given := bearerToken(r); !given && r.ContentLength != 0 {
		return s.postLogin(a, r)
	}
	t, err := s.authenticate(a, r)
	if err != nil {
		return err
	}
	secret, _ := bearerToken(r) // it holds
	kind, u, digest, err := token.Parse(secret)
	if err != nil {
		return err
	}
	if kind != token.API {
		return fault.New(fault.Forbidden, "a session is made of a token, not of another session").WithCode("not_a_token")
	}
	return s.sendSession(a, r, u, digest, t.Scopes, http.StatusCreated)
}

// sendSession makes a session of a token, a password or an identity, and shows it.
func (s *clientAPI) sendSession(a *answer, r *http.Request, u vocab.Username, digest [32]byte, scopes []string, status int) error {
	session, err := s.sessions.begin(r.Context(), u, digest)
	if err != nil {
		return err
	}
	body, err := vocab.Marshal(madeSession{session, scopes, int(sessionIdle.Seconds())})
	if err == nil {
		a.send(status, apiJSON, body)
	}
	return err
}

// deleteSession ends the session of the request, or every one of its user.
func (s *clientAPI) deleteSession(a *answer, r *http.Request, _ httprouter.Params) error {
	a.setCache(cachePrivate)
	q, err := readQuery(r, "everywhere")
	if err != nil {
		return err
	}
	everywhere := q.Get("everywhere") == "true"
	if q.Has("everywhere") && !everywhere {
		return fault.New(fault.Invalid, "everywhere is true or left out").WithCode("bad_query")
	}
	secret, _ := bearerToken(r)
	kind, u, digest, err := token.Parse(secret)
	if err != nil {
		return s.refuseToken(a, err)
	}
	if kind != token.Session {
		return fault.New(fault.Forbidden, "only a session is ended here: a token ends when its user revokes it").WithCode("not_a_session")
	}
	if everywhere {
		err = s.endEverywhere(a, r, u)
	} else {
		err = s.endSession(a, r, u, digest)
	}
	if err == nil {
		a.WriteHeader(http.StatusNoContent)
	}
	return err
}

func (s *clientAPI) endSession(a *answer, r *http.Request, u vocab.Username, digest [32]byte) error {
	existed, err := s.sessions.end(r.Context(), u, digest)
	if err == nil && !existed {
		err = errInvalidToken
	}
	return s.refuseToken(a, err)
}

// endEverywhere ends all sessions of the user. One that only reads does not end others.
func (s *clientAPI) endEverywhere(a *answer, r *http.Request, u vocab.Username) error {
	if _, err := s.authorize(a, r, instance.ScopeWrite, instance.ScopeAdmin); err != nil {
		return err
	}
	return s.sessions.endAll(r.Context(), u)
}

// sessionOf returns the key of the session of a request, and nothing for a request with a token.
func sessionOf(r *http.Request) string {
	secret, _ := bearerToken(r)
	kind, _, digest, err := token.Parse(secret)
	if err != nil || kind != token.Session {
		return ""
	}
	return sessionKey(digest)
}

// tokenOf returns the token that a secret is or was made of.
func (s *access) tokenOf(ctx context.Context, secret string) (instance.Token, error) {
	kind, u, digest, err := token.Parse(secret)
	if err == nil && kind == token.Session {
		digest, err = s.sessions.use(ctx, u, digest)
	}
	if err != nil {
		return instance.Token{}, err
	}
	t, err := s.store.Instance.Tokens.Find(ctx, digest, s.now())
	if err == nil && t.User != u {
		return instance.Token{}, errInvalidToken
	}
	return t, err
}

// errInvalidToken refuses what is not a token or session, or none any more.
var errInvalidToken = fault.New(fault.Unauthenticated, "the token is not valid").WithCode("invalid_token")
