package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	dbinstance "github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Relays are the relays that the instance subscribes to.
type Relays struct{ in *instance.Instance }

// Relay is a relay, and the state of the subscription.
type Relay = dbinstance.Relay

// List returns the relays, sorted by the ids of their actors.
func (rs Relays) List(ctx context.Context) ([]Relay, error) {
	return rs.in.DB.Instance.Relays.All(ctx)
}

// RelayStyles are the styles that Add accepts.
var RelayStyles = []string{dbinstance.RelayMastodon, dbinstance.RelayLitePub}

// Add subscribes to the relay whose actor or inbox has the given address. It stores the relay as
// pending, and the instance actor sends a Follow. If the parameter style is empty, the style is
// LitePub for an actor, and Mastodon for an inbox. If a relay with the same inbox and style is
// pending, Add sends the same Follow again. If the Follow cannot be sent, Add returns the stored
// relay with the fault of the request. The fault is Conflict if a relay with the same inbox and
// style has accepted, Invalid for this server, and Forbidden for a relay that the policy refuses.
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
	before, err := rs.in.DB.Instance.Relays.Find(ctx, r.Actor)
	if err != nil {
		return Relay{}, err
	}
	now := rs.in.Now().UTC().Truncate(time.Microsecond)
	r.State, r.Follow, r.CreatedAt, r.UpdatedAt = dbinstance.RelayPending, rs.in.Relays.NewFollowID(), now, now
	if before != nil {
		same := before.Inbox == r.Inbox && before.Style == r.Style
		if same && before.State == dbinstance.RelayAccepted {
			return *before, fault.New(fault.Conflict, fmt.Sprintf("the relay %s has accepted this server", r.Actor)).WithHint("lightweb relay list")
		}
		if same && before.State == dbinstance.RelayPending { // the relay may still answer the earlier Follow
			r.Follow = before.Follow
		}
		r.CreatedAt = before.CreatedAt
	}
	if err := rs.in.DB.Instance.Relays.Save(ctx, r, now); err != nil {
		return Relay{}, err
	}
	if err := rs.in.Relays.Send(ctx, r, rs.in.Relays.FollowActivity(r)); err != nil {
		if fault.Of(err) == nil {
			return r, err
		}
		return r, fault.Wrap(fault.KindOf(err), fmt.Sprintf("send Follow to %s: %s", r.Inbox, fault.Public(err)), err).
			WithHint("the relay stays pending: the same command sends the Follow again")
	}
	if sent, err := rs.in.DB.Instance.Relays.Find(ctx, r.Actor); err == nil && sent != nil { // the relay may have answered already
		r = *sent
	}
	return r, nil
}

// parseAddress parses the address of a relay. It refuses this server and servers that the policy
// refuses.
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

// lookUp fetches the actor at the address, or the actor that owns the inbox at the address, and
// guesses the style.
func (rs Relays) lookUp(ctx context.Context, id vocab.ID) (dbinstance.Relay, error) {
	base, isInbox := strings.CutSuffix(string(id), "/inbox")
	if !isInbox {
		a, err := rs.in.Actors.Fresh(ctx, id)
		if err != nil {
			return dbinstance.Relay{}, err
		}
		if a.Inbox == "" {
			return dbinstance.Relay{}, fault.New(fault.Protocol, fmt.Sprintf("%s has no inbox", a.ID))
		}
		return dbinstance.Relay{Actor: a.ID.Canonical(), Inbox: a.Inbox, Style: dbinstance.RelayLitePub}, rs.in.Gate.Check(a.Inbox.Host())
	}
	var failed error
	for _, at := range []string{base + "/actor", id.Origin() + "/actor", base, id.Origin() + "/relay"} {
		if at == id.Origin() {
			continue
		}
		a, err := rs.in.Actors.Fresh(ctx, vocab.ID(at))
		switch {
		case err == nil && (a.Inbox.Same(id) || a.SharedInbox.Same(id)):
			return dbinstance.Relay{Actor: a.ID.Canonical(), Inbox: id, Style: dbinstance.RelayMastodon}, nil
		case err == nil:
			err = fault.New(fault.Protocol, fmt.Sprintf("%s has another inbox than %s", a.ID, id))
		}
		if kind := fault.KindOf(err); failed == nil || fault.KindOf(failed) == fault.NotFound && kind != fault.NotFound {
			failed = err
		}
		if kind := fault.KindOf(err); kind != fault.NotFound && kind != fault.Gone && kind != fault.Protocol {
			break // another address would fail too
		}
	}
	return dbinstance.Relay{}, fault.Wrap(fault.KindOf(failed), fmt.Sprintf("the actor of the relay with the inbox %s was not found", id), failed).
		WithHint("name the actor: lightweb relay add ACTOR --style mastodon")
}

// RelayRemoval is the result of Remove.
type RelayRemoval struct {
	Relay
	Undone  bool   `json:"undone"`            // the relay accepted the Undo
	Problem string `json:"problem,omitempty"` // why Undone is false
}

// Remove ends the subscription to the relay whose actor or inbox has the given address. It sends
// the Undo of the Follow, and removes the stored relay even if the Undo cannot be sent. The fault
// is NotFound when there is no such relay.
func (rs Relays) Remove(ctx context.Context, address string) (RelayRemoval, error) {
	all, err := rs.in.DB.Instance.Relays.All(ctx)
	if err != nil {
		return RelayRemoval{}, err
	}
	id := vocab.IDOf(address)
	n := slices.IndexFunc(all, func(r dbinstance.Relay) bool { return r.Actor.Same(id) })
	if n < 0 {
		n = slices.IndexFunc(all, func(r dbinstance.Relay) bool { return r.Inbox.Same(id) })
	}
	if n < 0 {
		return RelayRemoval{}, fault.New(fault.NotFound, fmt.Sprintf("there is no relay %.200q", address)).WithHint("lightweb relay list")
	}
	r := all[n]
	removal := RelayRemoval{Relay: r, Undone: true}
	if err := rs.in.Relays.Send(ctx, r, rs.in.Relays.UndoActivity(r)); err != nil {
		if ctx.Err() != nil {
			return RelayRemoval{}, err
		}
		removal.Undone, removal.Problem = false, fault.Public(err)
		rs.in.Log.DebugContext(ctx, "relay not told", "actor", r.Actor, "err", err)
	}
	_, err = rs.in.DB.Instance.Relays.Remove(ctx, r.Actor)
	return removal, err
}
