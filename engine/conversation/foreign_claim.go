package conversation

import (
	"context"
	"net/http"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Bounds on fetching key packages from another server.
const (
	foreignLifetime = 400 * 24 * time.Hour
	claimTime       = 20 * time.Second
	maxPages        = 5  // pages of a collection
	maxForeign      = 20 // packages of one actor that one claim returns
	maxItems        = 50 // documents that are fetched in one claim
)

// ClaimedPackage is a key package of a device that the user may add.
type ClaimedPackage struct {
	Ref     []byte
	Suite   mls.CipherSuite
	Content []byte // the KeyPackage alone, without the MLSMessage around it
}

// ClaimOf returns a key package of each device of an actor, by which the user can add the devices
// to a group. If the actor is on another server, the packages are fetched from that server each
// time, and ClaimOf makes the checks that a host will make.
func (m *Members) ClaimOf(ctx context.Context, u vocab.Username, actor vocab.ID) ([]ClaimedPackage, error) {
	if owner, isLocal := m.Local.Owner(actor); isLocal {
		state, err := m.Users.State(ctx, owner)
		if err == nil && state == instance.UserSuspended {
			err = errNoPackage
		}
		if err != nil {
			return nil, err
		}
		rows, err := m.Registry.Claim(ctx, owner, m.Local.ID(u))
		all := make([]ClaimedPackage, len(rows))
		for i, k := range rows {
			all[i] = ClaimedPackage{k.Ref, mls.CipherSuite(k.Suite), k.Content}
		}
		return all, err
	}
	ctx, cancel := context.WithTimeout(ctx, claimTime)
	defer cancel()
	keys, err := m.Keys.Keys(u)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, "the user's keys cannot be read", err).WithCode("keys_unavailable").WithHint(fault.Hint(err))
	}
	found, answer, err := m.People.Ask(ctx, actor, &keys)
	if err != nil {
		return nil, err
	}
	doc, err := vocab.ParseDoc(answer.Body)
	if err != nil {
		return nil, err
	}
	q := &claimant{Members: m, actor: found.ID, keys: keys, ed25519: found.TakesEd25519()}
	where, err := doc.Ref("keyPackages")
	if err != nil || where.ID == "" && where.Doc == nil || where.ID != "" && !where.ID.SameOrigin(actor) {
		return nil, errNoPackage
	}
	if version, has := doc.Sub("lw:mls").Count("deliveryVersion"); has && version >= 1 {
		err = q.claim(ctx, where.ID)
	} else {
		err = q.read(ctx, where)
	}
	if err == nil && len(q.found) == 0 {
		err = errNoPackage
	}
	return q.found, err
}

// claimant fetches the key packages of one actor from the actor's server.
type claimant struct {
	*Members
	actor   vocab.ID
	keys    transport.Keys
	ed25519 bool
	fetched int
	found   []ClaimedPackage
}

// claim claims packages at a server that also runs Lightweb. Afterwards that server gives a
// claimed one-time package to no other actor.
func (q *claimant) claim(ctx context.Context, collection vocab.ID) error {
	reply, err := q.Hosts.Ask(ctx, transport.Question{Method: http.MethodPost, URL: collection + "/claim", Body: []byte(`{}`), As: q.keys, Ed25519: q.ed25519})
	switch {
	case err != nil:
		return err
	case reply.Status/100 != 2:
		return refusalOf(reply)
	}
	d, err := vocab.ParseDoc(reply.Body)
	if err != nil {
		return badReply(err)
	}
	for _, item := range d.Subs("items") {
		q.take(item)
	}
	return nil
}

// read reads the public packages of an actor. They are in a collection or in its pages. Pages and
// packages are embedded, or are fetched by their URIs.
func (q *claimant) read(ctx context.Context, where vocab.Ref) error {
	page := where.Doc
	for range maxPages {
		if page == nil {
			var err error
			if page, err = q.fetch(ctx, where.ID); err != nil {
				return err
			}
		}
		next, err := q.readItems(ctx, page)
		if err != nil || next.IsZero() || q.isFull() {
			return err
		}
		where, page = next, next.Doc
	}
	return nil
}

// readItems reads the packages in a collection or in a page of it, and returns the next page.
func (q *claimant) readItems(ctx context.Context, page vocab.Doc) (next vocab.Ref, err error) {
	for _, name := range []string{"items", "orderedItems"} {
		items, err := page.Refs(name)
		if err != nil {
			return next, badReply(err)
		}
		for _, item := range items {
			if q.isFull() {
				return next, nil
			}
			d := item.Doc
			if d == nil || d.Text("content") == "" {
				if d, err = q.fetch(ctx, item.ID); fault.KindOf(err) == fault.Gone || fault.KindOf(err) == fault.NotFound {
					continue // the package was replaced meanwhile
				} else if err != nil {
					return next, err
				}
			}
			q.take(d)
		}
	}
	for _, name := range []string{"first", "next"} {
		if next, err = page.Ref(name); err == nil && !next.IsZero() {
			return next, nil
		}
	}
	return vocab.Ref{}, nil
}

// isFull reports whether the bound of packages or of fetched documents is reached.
func (q *claimant) isFull() bool { return len(q.found) >= maxForeign || q.fetched >= maxItems }

// fetch reads a document of the actor's own server, and refuses an id on any other server. The
// document is not cached.
func (q *claimant) fetch(ctx context.Context, id vocab.ID) (vocab.Doc, error) {
	if !id.SameOrigin(q.actor) {
		return nil, badReply(nil)
	}
	q.fetched++
	r, err := q.Hosts.Get(ctx, transport.Request{URL: id, As: &q.keys, Ed25519: q.ed25519, SameOrigin: true})
	switch {
	case err != nil:
		return nil, err
	case r.Status == http.StatusNotFound, r.Status == http.StatusGone:
		return nil, errNoPackage
	case r.Status != http.StatusOK:
		return nil, fault.New(fault.Unavailable, "the actor's server does not show its key packages").WithCode("host_unreachable")
	}
	return vocab.ParseDoc(r.Body)
}

// take adds a package to the result if a host would accept it. Such a package belongs to the
// actor, is not too large, is valid now, and is signed by its device. Other packages are skipped
// without an error, because another device may have a valid one. A package beyond maxForeign is
// skipped, too.
func (q *claimant) take(d vocab.Doc) {
	e, err := readEnvelope(d)
	if err != nil || d.Sealed() != "KeyPackage" || vocab.IDOf(d.Text("attributedTo")) != q.actor || len(e.message) > maxKeyPackage || len(q.found) >= maxForeign {
		return
	}
	k, err := mls.ParseKeyPackage(e.message)
	if err != nil || k.Check(string(q.actor), q.Now(), foreignLifetime) != nil {
		return
	}
	if ref, err := k.Reference(); err == nil {
		q.found = append(q.found, ClaimedPackage{ref, k.Suite, k.Raw})
	}
}
