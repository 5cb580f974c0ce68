package actor

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

// maxJRD is the size of the largest WebFinger answer that is read, in bytes.
const maxJRD = 256 << 10

// GroupType is the type of a Group, such as a community of Lemmy.
const GroupType = "Group"

// linkedType is the property in which Lemmy tells the type of a linked actor.
const linkedType = "https://www.w3.org/ns/activitystreams#type"

// confirmed is the actor to which a handle was found to belong, and the time of that finding.
type confirmed struct {
	id vocab.ID
	at time.Time
}

// Handle returns the actor called user@host. The handle s may begin with @ or acct:. WebFinger
// at the host must lead to the actor, and WebFinger at the actor's own server must lead from the
// actor's user name to the same actor and handle. Both are needed, because one side alone could
// lie about the other. If the host cannot be asked now, Handle returns the actor that was last
// confirmed for the handle.
func (r *Resolver) Handle(ctx context.Context, s string) (*vocab.Actor, error) {
	h, err := parseHandle(strings.TrimSpace(s), "https")
	if err != nil {
		return nil, err
	}
	if r.isLocalHost(h) {
		return r.localHandle(ctx, h)
	}
	if err := r.Gate.Check(h.host); err != nil {
		return nil, err
	}
	name := strings.ToLower(h.String())
	if c, ok := r.handles.get(name); ok && r.Now().Sub(c.at) < r.TTL {
		return r.Resolve(ctx, c.id)
	}
	a, err := r.findByHandle(ctx, h)
	if err == nil {
		r.handles.put(name, confirmed{a.ID, r.Now()})
		return a, nil
	}
	if !isPassing(err) {
		return nil, fmt.Errorf("find %s: %w", h, err)
	}
	row, fail := r.Store.FindByHandle(ctx, name)
	if fail != nil {
		return nil, fail
	}
	if row == nil {
		return nil, fmt.Errorf("find %s: %w", h, err)
	}
	r.Log.DebugContext(ctx, "old copy of a handle used", "actor", row.Actor.ID, "err", err)
	return r.Resolve(ctx, row.Actor.ID)
}

// KnownHandle returns the stored actor for which the handle was last confirmed, or nil if there
// is none. It fetches nothing.
func (r *Resolver) KnownHandle(ctx context.Context, s string) (*vocab.Actor, error) {
	h, err := parseHandle(strings.TrimSpace(s), "https")
	if err != nil {
		return nil, err
	}
	row, err := r.Store.FindByHandle(ctx, strings.ToLower(h.String()))
	if err != nil || row == nil {
		return nil, err
	}
	return row.Actor, nil
}

// isLocalHost reports whether the handle belongs to this server. A port in it that is the
// default of this server's scheme, such as 80 for http, makes no difference.
func (r *Resolver) isLocalHost(h handle) bool {
	return vocab.ID(r.Local.schemeOf()+"://"+h.host+"/").Host() == r.Local.host
}

func (r *Resolver) localHandle(ctx context.Context, h handle) (*vocab.Actor, error) {
	u, ok := r.Local.userOfHandle(handle{h.user, r.Local.host})
	switch {
	case !ok:
		return nil, fault.New(fault.NoUser, "there is no such user here")
	case u.IsZero():
		return r.Local.instanceActor()
	}
	return r.localActor(ctx, r.Local.ID(u))
}

// findByHandle finds the actor of a handle over the network, and stores the handle that the
// actor's own server confirms.
func (r *Resolver) findByHandle(ctx context.Context, asked handle) (*vocab.Actor, error) {
	f := fingers{r, map[handle]found{}}
	known, err := f.followHandle(ctx, asked)
	if err != nil {
		return nil, err
	}
	a, err := r.Resolve(ctx, known.id)
	if err != nil {
		return nil, err
	}
	own, err := f.followHandle(ctx, handle{a.PreferredUsername, a.ID.Host()})
	if err != nil {
		return nil, err
	}
	if !a.ID.Same(known.id) || !own.id.Same(a.ID) || !own.subject.isSame(known.subject) {
		return nil, fault.Wrap(fault.Protocol, "the handle and the actor do not belong to each other",
			fmt.Errorf("%s leads to %s, which is known as %s", asked, known.id, own.subject))
	}
	row, err := r.recallActor(ctx, a.ID)
	if err != nil || row == nil || row.Gone {
		return a, err
	}
	named := *row
	named.Handle = strings.ToLower(own.subject.String())
	return a, r.Keeper.Save(ctx, named)
}

// fingers queries WebFinger, once for each handle.
type fingers struct {
	*Resolver
	asked map[handle]found
}

// found is an answer of WebFinger: the account that it is about, and the id of that account's
// actor.
type found struct {
	subject handle
	id      vocab.ID
}

// followHandle queries WebFinger for h. If the answer is about an account of another name, it
// also queries that name, and both answers must name the same actor. Otherwise one host could
// link a name of another host to any actor.
func (f fingers) followHandle(ctx context.Context, h handle) (found, error) {
	first, err := f.askHost(ctx, h)
	if err != nil || first.subject.isSame(h) {
		return first, err
	}
	second, err := f.askHost(ctx, first.subject)
	if err == nil && (!second.subject.isSame(first.subject) || !second.id.Same(first.id)) {
		err = fault.Wrap(fault.Protocol, "the handle leads from one to another",
			fmt.Errorf("%s leads to %s, and that to %s and %s", h, first.subject, second.subject, second.id))
	}
	return second, err
}

func (f fingers) askHost(ctx context.Context, h handle) (found, error) {
	account := handle{strings.ToLower(h.user), h.host}
	if known, ok := f.asked[account]; ok {
		return known, nil
	}
	if h.user == "" || h.host == "" || f.isLocalHost(h) {
		return found{}, fault.Wrap(fault.Protocol, "the actor has no handle", fmt.Errorf("asked for %s", h))
	}
	if err := f.Gate.Check(h.host); err != nil {
		return found{}, err
	}
	leave, err := f.queue.enterQueue(ctx, h.host)
	if err != nil {
		return found{}, err
	}
	defer leave()
	res, err := f.queryHost(ctx, "https", h)
	if k := fault.KindOf(err); f.AllowHTTP && (k == fault.Unavailable || k == fault.Forbidden) {
		res, err = f.queryHost(ctx, "http", h)
	}
	if err != nil {
		return found{}, err
	}
	if err := checkStatus(res.Status); err != nil {
		return found{}, err
	}
	got, err := readJRD(res.Body, h)
	if err != nil {
		return found{}, fault.Wrap(fault.Protocol, "the peer's WebFinger answer names no actor", err)
	}
	f.asked[account] = got
	return got, nil
}

// queryHost sends one query. The query is not signed, because WebFinger is public (RFC 7033 §9).
func (f fingers) queryHost(ctx context.Context, scheme string, h handle) (*transport.Response, error) {
	id, err := vocab.ParseID(scheme + "://" + h.host + "/.well-known/webfinger?resource=" + url.QueryEscape("acct:"+h.String()))
	if err != nil {
		return nil, err
	}
	return f.Fetch.Get(ctx, transport.Request{URL: id, Accept: "application/jrd+json, application/json;q=0.9", Limit: maxJRD})
}

// readJRD reads the answer to a query for h (RFC 7033 §4.4). If the subject of the answer is no
// handle or is missing, the subject is h. On Lemmy a person and a community may have the same
// handle; then the answer has a link to each of them, the one to the community last. Of several
// links readJRD takes the one to a Group, or else the last.
func readJRD(body []byte, h handle) (found, error) {
	d, err := vocab.ParseDoc(body)
	if err != nil {
		return found{}, err
	}
	got := found{subject: h}
	if subject, err := parseHandle(d.Text("subject"), "https"); err == nil {
		got.subject = subject
	}
	for _, link := range d.Subs("links") {
		if link.Text("rel") != "self" || !transport.IsActivityMediaType(link.Text("type")) {
			continue
		}
		id, err := vocab.ParseID(link.Text("href"))
		if err != nil {
			continue
		}
		got.id = id
		if link.Sub("properties").Text(linkedType) == GroupType {
			break
		}
	}
	if got.id == "" {
		return found{}, errors.New("no self link to an actor")
	}
	return got, nil
}
