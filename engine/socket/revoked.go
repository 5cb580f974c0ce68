package socket

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/vocab"
)

// CheckTokens ends the sockets whose token is not valid any more, or whose session Redis has lost.
// If the tokens or sessions cannot be checked, their sockets stay until the next time.
func (h *Hub) CheckTokens(ctx context.Context) {
	byToken := map[uuid.UUID][]*Socket{}
	var ofSessions []*Socket
	for _, t := range h.listTails() {
		for _, s := range t.listSockets() {
			byToken[s.request.Token] = append(byToken[s.request.Token], s)
			if s.request.Session != "" {
				ofSessions = append(ofSessions, s)
			}
		}
	}
	if len(byToken) == 0 {
		return
	}
	h.endInvalidTokens(ctx, byToken)
	h.endLostSessions(ctx, ofSessions)
}

func (h *Hub) endInvalidTokens(ctx context.Context, byToken map[uuid.UUID][]*Socket) {
	ids := make([]uuid.UUID, 0, len(byToken))
	for id := range byToken {
		ids = append(ids, id)
	}
	within, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	valid, err := h.Tokens.ListValid(within, ids, h.Now())
	if err != nil {
		if ctx.Err() == nil {
			h.Log.WarnContext(ctx, "tokens of sockets not looked up", "err", err)
		}
		return
	}
	for _, id := range valid {
		delete(byToken, id)
	}
	for _, sockets := range byToken {
		for _, s := range sockets {
			s.End(Revoked)
		}
	}
}

// endLostSessions ends the sockets whose sessions do not exist any more. The end of a session
// also ends its sockets. So the sessions that are missing here were lost with Redis, or have
// expired.
func (h *Hub) endLostSessions(ctx context.Context, sockets []*Socket) {
	for some := range slices.Chunk(sockets, together) {
		keys := make([]keyspace.UserKey, len(some))
		for n, s := range some {
			keys[n] = keyspace.UserKey{User: s.request.User, Name: s.request.Session}
		}
		texts, err := h.Streams.TextsOf(ctx, keys)
		if err != nil {
			return // package keyspace logs once that Redis is away
		}
		for n, s := range some {
			if texts[n] == "" {
				s.End(Revoked)
			}
		}
	}
}

// EndSessions ends the sockets of these sessions of a user.
func (h *Hub) EndSessions(u vocab.Username, sessions ...string) {
	h.endSockets(u, func(r Request) bool { return slices.Contains(sessions, r.Session) })
}

// EndAllSessions ends all sockets that sessions of a user opened.
func (h *Hub) EndAllSessions(u vocab.Username) {
	h.endSockets(u, func(r Request) bool { return r.Session != "" })
}

func (h *Hub) endSockets(u vocab.Username, isMeant func(Request) bool) {
	t := h.tailOf(u)
	if t == nil {
		return
	}
	for _, s := range t.listSockets() {
		if isMeant(s.request) {
			s.End(Revoked)
		}
	}
}
