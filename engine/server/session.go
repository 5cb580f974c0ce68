package server

import (
	"context"
	"encoding/hex"
	"net/http"
	"slices"
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
	// sessionIdle is the lifetime of a session without a request.
	sessionIdle = 30 * 24 * time.Hour

	// maxSessions limits the sessions with write access of one user. The same limit applies
	// separately to sessions that only read, and to those of LLM engines. A new session beyond
	// the limit ends the oldest one of its kind.
	maxSessions = 100
)

// sessions are stored in Redis only. If Redis loses them, clients send their token or password
// again. A session stores the digest of the token that it was made of, and each request with the
// session looks that token up. So the session has the permissions of the token, and ends when the
// token ends. A password or an OpenID identity counts as such a token, too.
type sessions struct {
	redis   *keyspace.Store
	sockets *socket.Hub
}

// Keys of the lists of a user's sessions. The lists do not expire, because a session that is in
// use can outlive any time after which a list could expire. There are three lists, so that a token
// that may do less cannot make so many sessions that it displaces sessions that may do more.
const (
	sessionList   = "sessions"
	readingList   = "sessions:reading"
	assistantList = "sessions:llm"
)

// sessionLists are the keys of all lists of a user's sessions.
func sessionLists() []string { return []string{sessionList, readingList, assistantList} }

func listOf(scopes []string) string {
	if slices.Contains(scopes, instance.ScopeWrite) || slices.Contains(scopes, instance.ScopeAdmin) {
		return sessionList
	}
	if slices.Contains(scopes, instance.ScopeRead) {
		return readingList
	}
	return assistantList
}

func sessionKey(digest [32]byte) string { return "session:" + hex.EncodeToString(digest[:]) }

// begin makes a session of the token with the given digest and scopes, and returns the session's
// secret.
func (s sessions) begin(ctx context.Context, u vocab.Username, tokenDigest [32]byte, scopes []string) (secret string, err error) {
	secret, digest := token.New(token.Session, u)
	of, key := s.redis.Of(u), sessionKey(digest)
	// The key is stored first, and then the element of the list, because an element without a
	// key counts as an expired session.
	err = of.SetTexts(ctx, []keyspace.Text{{Key: key, Value: hex.EncodeToString(tokenDigest[:]), While: sessionIdle}})
	if err == nil {
		err = s.enlist(ctx, u, listOf(scopes), key)
	}
	if err != nil { // Redis does not answer, or has no room
		err = fault.Wrap(fault.Unavailable, "no session can be kept now", err)
	}
	return secret, err
}

// enlist adds a session to a list of the user's sessions, and ends the oldest ones beyond the
// limit. Sessions that expired do not count.
func (s sessions) enlist(ctx context.Context, u vocab.Username, list, key string) error {
	of := s.redis.Of(u)
	g, err := of.Glance(ctx, nil, list, -1)
	if err != nil {
		return err
	}
	if len(g.Elements) >= maxSessions {
		if err := dropExpired(ctx, of, list, g.Elements); err != nil {
			return err
		}
	}
	ended, err := of.Enlist(ctx, list, key, maxSessions)
	if err == nil && len(ended) > 0 {
		_, err = of.Delist(ctx, []string{list}, ended...)
		s.sockets.EndSessions(u, ended...)
	}
	return err
}

// dropExpired removes from a list those of the sessions whose keys expired.
func dropExpired(ctx context.Context, of keyspace.Space, list string, keys []string) error {
	texts, err := of.Texts(ctx, keys)
	if err != nil {
		return err
	}
	var expired []string
	for n, text := range texts {
		if text == "" {
			expired = append(expired, keys[n])
		}
	}
	if len(expired) == 0 {
		return nil
	}
	_, err = of.Delist(ctx, []string{list}, expired...)
	return err
}

// use returns the digest of the token that a session was made of. The fault is Unauthenticated
// if there is no such session, and Unavailable if Redis does not answer.
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

// check returns an error if there is no session with this key, or Redis does not answer.
func (s sessions) check(ctx context.Context, u vocab.Username, key string) error {
	texts, err := s.redis.Of(u).Texts(ctx, []string{key})
	if err == nil && texts[0] == "" {
		return errInvalidToken
	}
	return err
}

// end ends a session and its sockets. It reports whether there was such a session.
func (s sessions) end(ctx context.Context, u vocab.Username, digest [32]byte) (bool, error) {
	n, err := s.redis.Of(u).Delist(ctx, sessionLists(), sessionKey(digest))
	s.sockets.EndSessions(u, sessionKey(digest))
	return n > 0, err
}

// endAll ends all sessions of a user, and the sockets of all sessions, also of those that Redis
// has lost.
func (s sessions) endAll(ctx context.Context, u vocab.Username) error {
	defer s.sockets.EndAllSessions(u) // after the keys: a session without a key opens no other socket
	of := s.redis.Of(u)
	for _, list := range sessionLists() {
		g, err := of.Glance(ctx, nil, list, -1)
		if err == nil && len(g.Elements) > 0 {
			_, err = of.Delist(ctx, []string{list}, g.Elements...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// madeSession is the answer to a request for a session.
type madeSession struct {
	Session     string   `json:"session"` // shown only once
	Scopes      []string `json:"scopes"`
	IdleSeconds int      `json:"idleSeconds"` // the session ends after that time without a request
}

// postSession makes a session of the token that the request carries, or of a password in its
// body.
func (s *clientAPI) postSession(a *answer, r *http.Request, _ httprouter.Params) error {
	a.setCache(cachePrivate)
	if _, err := readQuery(r); err != nil {
		return err
	}
	if _, given := bearerToken(r); !given && r.ContentLength != 0 {
		return s.postLogin(a, r)
	}
	t, err := s.admitToken(a, r)
	if err != nil {
		return err
	}
	secret, _ := bearerToken(r) // admitToken found it valid
	kind, u, digest, err := token.Parse(secret)
	if err != nil {
		return err
	}
	if kind != token.API {
		return fault.New(fault.Forbidden, "a session is made of a token, not of another session").WithCode("not_a_token")
	}
	return s.sendSession(a, r, u, digest, t.Scopes, http.StatusCreated)
}

// admitToken returns the token of the request if it is valid. A token that is not valid counts as
// an attempt at a password from that address. Valid tokens do not count, because many programs
// behind one address may exchange theirs, but an address beyond its budget exchanges none.
func (s *clientAPI) admitToken(a *answer, r *http.Request) (instance.Token, error) {
	payer := attempt{client: s.clientOf(r)}.payer()
	if ok, after := s.logins.clients.Ready(payer); !ok {
		s.logins.outcomes.WithLabelValues("limited").Inc()
		return instance.Token{}, errTooManyLogins.After(after)
	}
	t, err := s.authenticate(a, r)
	if fault.KindOf(err) == fault.Unauthenticated {
		s.logins.clients.Spend(payer, 1)
		s.logins.outcomes.WithLabelValues("wrong").Inc()
	}
	return t, err
}

// sendSession makes a session of a token, a password or an identity, and answers with it.
func (s *clientAPI) sendSession(a *answer, r *http.Request, u vocab.Username, digest [32]byte, scopes []string, status int) error {
	session, err := s.sessions.begin(r.Context(), u, digest, scopes)
	if err != nil {
		return err
	}
	body, err := vocab.Marshal(madeSession{session, scopes, int(sessionIdle.Seconds())})
	if err == nil {
		a.send(status, apiJSON, body)
	}
	return err
}

// deleteSession ends the session of the request, or all sessions of its user.
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

// endEverywhere ends all sessions of the user. A session that only reads may not do that.
func (s *clientAPI) endEverywhere(a *answer, r *http.Request, u vocab.Username) error {
	if _, err := s.authorize(a, r, instance.ScopeWrite); err != nil {
		return err
	}
	return s.sessions.endAll(r.Context(), u)
}

// sessionOf returns the key of the request's session, or an empty text if the request carries a
// token.
func sessionOf(r *http.Request) string {
	secret, _ := bearerToken(r)
	kind, _, digest, err := token.Parse(secret)
	if err != nil || kind != token.Session {
		return ""
	}
	return sessionKey(digest)
}

// tokenOf returns the token that a secret belongs to. For the secret of a session it returns the
// token that the session was made of.
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

// errInvalidToken refuses a secret that belongs to no token or session, or to one that has
// ended.
var errInvalidToken = fault.New(fault.Unauthenticated, "the token is not valid").WithCode("invalid_token")
