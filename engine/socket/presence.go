package socket

import (
	"cmp"
	"context"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/vocab"
)

// presenceKey is the key of the state of a user who is present. The key expires after
// presenceTime. Without Redis every user is offline. After Redis has lost its keys, a user is
// offline until a client of the user shows that it is connected.
const presenceKey = "presence"

// setPresence stores the state that the client says, and shows the state of the user.
func (s *Socket) setPresence(ctx context.Context, state string) error {
	switch state {
	case online, away, offline:
	default:
		return fault.New(fault.Invalid, "the state is online, away or offline").WithCode("bad_frame")
	}
	s.tail.showing.Lock()
	defer s.tail.showing.Unlock()
	return s.showPresence(ctx, s.tail.setState(s, state))
}

// showPresence stores the state of the user, and sends it to those users with open sockets who
// may see it. It sends nothing when the engine shuts down, because every socket closes then. The
// caller holds the tail's mutex showing.
func (s *Socket) showPresence(ctx context.Context, state string) (err error) {
	u := s.request.User
	if state == offline {
		_, err = s.hub.Streams.Of(u).Delete(ctx, presenceKey)
	} else {
		err = s.storePresent(ctx, state)
	}
	if err == nil && !s.hub.isClosing() {
		err = s.hub.tellPresence(ctx, u, state)
	}
	if err == nil {
		s.tail.shown = state
	}
	return err
}

// storePresent stores the state of a user who is present.
func (s *Socket) storePresent(ctx context.Context, state string) error {
	return s.hub.Streams.Of(s.request.User).SetTexts(ctx, []keyspace.Text{{Key: presenceKey, Value: state, While: presenceTime}})
}

// tellPresence sends the state of a user to those users with open sockets who may see it.
func (h *Hub) tellPresence(ctx context.Context, u vocab.Username, state string) error {
	var others []vocab.Username
	for _, t := range h.listTails() {
		if t.user != u {
			others = append(others, t.user)
		}
	}
	if len(others) == 0 {
		return nil
	}
	viewers, err := h.viewersAmong(ctx, u, others, seePresence)
	if err != nil {
		return err
	}
	d := h.newSignal(presence, u)
	d.State = state
	h.pushTo(viewers, d)
	return nil
}

// KeepPresent renews the presence that the client has stated. It is called as long as the client
// shows that it is connected. If Redis has lost the presence, or the presence expired while Redis
// did not answer, KeepPresent stores it again. If the presence could not be stored when the
// client stated it, KeepPresent also shows it.
func (s *Socket) KeepPresent(ctx context.Context) {
	if !s.tail.isPresent(s) {
		return
	}
	stored, err := s.hub.Streams.Of(s.request.User).Use(ctx, presenceKey, presenceTime)
	if stored != "" || err != nil {
		return // without Redis the user is offline
	}
	s.tail.showing.Lock()
	defer s.tail.showing.Unlock()
	switch state := s.tail.findState(); state {
	case offline:
	case s.tail.shown:
		_ = s.storePresent(ctx, state) // if it fails, the next call stores it
	default: // the state could not be stored when the client said it
		_ = s.showPresence(ctx, state) // if it fails, the next call shows it
	}
}

// endPresence is called when a socket closes. If the state of the user now differs from the state
// that was last shown, endPresence shows the new state to those who may see it.
func (s *Socket) endPresence() {
	s.tail.showing.Lock()
	defer s.tail.showing.Unlock()
	after := s.tail.setState(s, offline)
	if after == cmp.Or(s.tail.shown, offline) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), signalTime)
	defer cancel()
	if err := s.showPresence(ctx, after); err != nil {
		s.hub.Log.WarnContext(ctx, "users are not told that one has left", "user", s.request.User, "err", err)
	}
}

// presentFrames returns the first presence frames of a socket. They tell the presence of those
// other users who let the user see it.
func (s *Socket) presentFrames(ctx context.Context) (frames []Frame) {
	if s.request.Assistant {
		return nil
	}
	var present []vocab.Username
	for _, t := range s.hub.listTails() {
		if t.user != s.request.User && t.findState() != offline {
			present = append(present, t.user)
		}
	}
	if len(present) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, signalTime)
	defer cancel()
	shown, err := s.shownAmong(ctx, present)
	if err != nil {
		s.hub.Log.WarnContext(ctx, "a program is not told who is there", "user", s.request.User, "err", err)
		return nil
	}
	keys := make([]keyspace.UserKey, len(shown))
	for n, u := range shown {
		keys[n] = keyspace.UserKey{User: u, Name: presenceKey}
	}
	states, err := s.hub.Streams.TextsOf(ctx, keys)
	if err != nil {
		return nil // without Redis everybody is offline
	}
	for n, u := range shown {
		if states[n] == "" {
			continue // offline
		}
		d := s.hub.newSignal(presence, u)
		d.State = states[n]
		frames = append(frames, newDocFrame(presence, d))
	}
	return frames
}

// shownAmong returns the candidates whose presence the socket's user may see. The rules of these
// users decide. shownAmong reads only the rules of users to which the
// socket's user has a relationship.
func (s *Socket) shownAmong(ctx context.Context, candidates []vocab.Username) (shown []vocab.Username, err error) {
	ties, err := s.hub.tiesTo(ctx, s.request.User, candidates)
	if err != nil {
		return nil, err
	}
	for _, u := range candidates {
		if len(ties[s.hub.Local.ID(u)]) == 0 {
			continue
		}
		viewers, err := s.hub.viewersAmong(ctx, u, []vocab.Username{s.request.User}, seePresence)
		if err != nil {
			return nil, err
		}
		if len(viewers) > 0 {
			shown = append(shown, u)
		}
	}
	return shown, nil
}

// setState stores the state that a socket's client says. It returns the state of the user after
// that.
func (t *tail) setState(s *Socket, state string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.state = state
	return t.presentState()
}

func (t *tail) isPresent(s *Socket) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return s.state == online || s.state == away
}

func (t *tail) findState() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.presentState()
}

// presentState returns the state of the user. It is online if any client says so, otherwise away if
// any client says so, and otherwise offline. The caller holds mu.
func (t *tail) presentState() string {
	state := offline
	for s := range t.sockets {
		switch s.state {
		case online:
			return online
		case away:
			state = away
		}
	}
	return state
}
