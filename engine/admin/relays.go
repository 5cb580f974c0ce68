package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Relays are the relays that the instance subscribes to.
type Relays struct{ in *instance.Instance }

// Relay is a server that passes public posts on, and how it stands with this one.
type Relay struct {
	Actor     vocab.ID  `json:"actor"`
	Inbox     vocab.ID  `json:"inbox"`
	Style     string    `json:"style"` // mastodon or litepub
	State     string    `json:"state"` // pending, accepted or rejected
	Follow    vocab.ID  `json:"follow"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

func describeRelay(r db.Relay) Relay {
	return Relay{Actor: r.Actor, Inbox: r.Inbox, Style: r.Style, State: r.State, Follow: r.Follow, CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC()}
}

// List returns the relays, by their actors' ids.
func (rs Relays) List(ctx context.Context) ([]Relay, error) {
	found, err := rs.in.DB.Relays(ctx)
	all := make([]Relay, len(found))
	for i, r := range found {
		all[i] = describeRelay(r)
	}
	return all, err
}

// RelayStyles are the styles that Add takes.
var RelayStyles = []string{db.RelayMastodon, db.RelayLitePub}

// Add subscribes to the relay with that actor or inbox: it is kept as pending, and its server is
// sent a Follow by the instance actor. An empty style is guessed: an actor is followed itself, at
// an inbox everybody is. One that is pending or was rejected is sent a Follow again. When the
// Follow cannot be sent, what was kept is returned with the fault, which is that of asking another
// server; the fault is Conflict for a relay that has accepted, Invalid for this server, Forbidden
// for one that the policy refuses.
func (rs Relays) Add(ctx context.Context, address, style string) (Relay, error) {
	if style != "" && !slices.Contains(RelayStyles, style) {
		return Relay{}, fault.New(fault.Usage, fmt.Sprintf("%.40q is no style of relays", style)).WithHint("--style is " + strings.Join(RelayStyles, " or "))
	}
	id, err := rs.parseAddress(address)
	if err != nil {
		return Relay{}, err
	}
	r, err := rs.lookUp(ctx, id)
	if err != nil {
		return Relay{}, err
	}
	if style != "" {
		r.Style = style
	}
	before, err := rs.in.DB.Relay(ctx, r.Actor)
	if err != nil {
		return Relay{}, err
	}
	now := rs.in.Now().UTC().Truncate(time.Microsecond)
	r.State, r.Follow, r.CreatedAt, r.UpdatedAt = db.Pending, rs.in.Relays.NewFollowID(), now, now
	if before != nil {
		same := before.Inbox == r.Inbox && before.Style == r.Style
		if same && before.State == db.Accepted {
			return describeRelay(*before), fault.New(fault.Conflict, fmt.Sprintf("the relay %s has accepted this server", r.Actor)).WithHint("lightweb relay list")
		}
		if same && before.State == db.Pending { // an answer to the Follow that was sent may be on its way
			r.Follow = before.Follow
		}
		r.CreatedAt = before.CreatedAt
	}
	if err := rs.in.DB.SaveRelay(ctx, r, now); err != nil {
		return Relay{}, err
	}
	if err := rs.in.Relays.Send(ctx, r, rs.in.Relays.FollowActivity(r)); err != nil {
		if fault.Of(err) == nil {
			return describeRelay(r), err
		}
		return describeRelay(r), fault.Wrap(fault.KindOf(err), fmt.Sprintf("send Follow to %s: %s", r.Inbox, fault.Public(err)), err).
			WithHint("the relay stays pending: the same command sends the Follow again")
	}
	if sent, err := rs.in.DB.Relay(ctx, r.Actor); err == nil && sent != nil { // it may have answered at once
		r = *sent
	}
	return describeRelay(r), nil
}

// parseAddress reads what names a relay, which must be another server that the policy lets be
// contacted.
func (rs Relays) parseAddress(address string) (vocab.ID, error) {
	id, err := vocab.ParseID(address)
	if err != nil {
		return "", err
	}
	if id.Host() == rs.in.Local.Host() {
		return "", fault.New(fault.Invalid, fmt.Sprintf("%s is this server", id))
	}
	return id.Canonical(), rs.in.Gate.Check(id.Host())
}

// lookUp asks the relay's server for its actor, who is there or named after the inbox, and tells
// the style.
func (rs Relays) lookUp(ctx context.Context, id vocab.ID) (db.Relay, error) {
	base, isInbox := strings.CutSuffix(string(id), "/inbox")
	if !isInbox {
		a, err := rs.in.Actors.Fresh(ctx, id)
		if err != nil {
			return db.Relay{}, err
		}
		if a.Inbox == "" {
			return db.Relay{}, fault.New(fault.Protocol, fmt.Sprintf("%s has no inbox", a.ID))
		}
		return db.Relay{Actor: a.ID.Canonical(), Inbox: a.Inbox, Style: db.RelayLitePub}, rs.in.Gate.Check(a.Inbox.Host())
	}
	var failed error
	for _, at := range []string{base + "/actor", id.Origin() + "/actor", base, id.Origin() + "/relay"} {
		if at == id.Origin() {
			continue
		}
		a, err := rs.in.Actors.Fresh(ctx, vocab.ID(at))
		switch {
		case err == nil && (a.Inbox.Same(id) || a.SharedInbox.Same(id)):
			return db.Relay{Actor: a.ID.Canonical(), Inbox: id, Style: db.RelayMastodon}, nil
		case err == nil:
			err = fault.New(fault.Protocol, fmt.Sprintf("%s has another inbox than %s", a.ID, id))
		}
		if kind := fault.KindOf(err); failed == nil || fault.KindOf(failed) == fault.NotFound && kind != fault.NotFound {
			failed = err
		}
		if kind := fault.KindOf(err); kind != fault.NotFound && kind != fault.Gone && kind != fault.Protocol {
			break // it would be no better at another address
		}
	}
	return db.Relay{}, fault.Wrap(fault.KindOf(failed), fmt.Sprintf("the actor of the relay with the inbox %s was not found", id), failed).
		WithHint("name the actor: lightweb relay add ACTOR --style mastodon")
}

// RelayRemoval says what became of Remove.
type RelayRemoval struct {
	Relay
	Undone  bool   `json:"undone"`            // the relay's server was told
	Problem string `json:"problem,omitempty"` // why not
}

// Remove ends the subscription to the relay with that actor or inbox: its server is sent the Undo
// of the Follow, and whatever becomes of that, the relay is forgotten. The fault is NotFound when
// there is no such relay.
func (rs Relays) Remove(ctx context.Context, address string) (RelayRemoval, error) {
	all, err := rs.in.DB.Relays(ctx)
	if err != nil {
		return RelayRemoval{}, err
	}
	id := vocab.IDOf(address)
	n := slices.IndexFunc(all, func(r db.Relay) bool { return r.Actor.Same(id) })
	if n < 0 {
		n = slices.IndexFunc(all, func(r db.Relay) bool { return r.Inbox.Same(id) })
	}
	if n < 0 {
		return RelayRemoval{}, fault.New(fault.NotFound, fmt.Sprintf("there is no relay %.200q", address)).WithHint("lightweb relay list")
	}
	r := all[n]
	removal := RelayRemoval{Relay: describeRelay(r), Undone: true}
	if err := rs.in.Relays.Send(ctx, r, rs.in.Relays.UndoActivity(r)); err != nil {
		if ctx.Err() != nil {
			return RelayRemoval{}, err
		}
		removal.Undone, removal.Problem = false, fault.Public(err)
		rs.in.Log.DebugContext(ctx, "relay not told", "actor", r.Actor, "err", err)
	}
	_, err = rs.in.DB.RemoveRelay(ctx, r.Actor)
	return removal, err
}
