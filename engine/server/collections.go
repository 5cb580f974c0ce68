package server

import (
	"context"
	"net/http"
	"strconv"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// collection is a collection of a user, or of an object of a user. In an inbox or outbox, the
// owner sees all activities, and others see only those that are addressed to certain ids. The
// functions count and list get these ids in the argument to, which is nil for the owner. In every
// other collection, the functions ignore that argument.
type collection struct {
	// name is the end of the collection's id: the last one, two or three parts of the path.
	name  string
	shown func(registry.Collections) registry.Visibility // who may read it; nil if everybody may read it, and followers see more items than others
	count func(_ context.Context, _ *user.Tx, to []vocab.ID) (int, error)
	list  func(_ context.Context, _ *user.Tx, to []vocab.ID, after *user.Place, n int) ([]listed, error)

	describe func(_ context.Context, _ *user.Tx, d vocab.Doc) error // completes the collection's document; may be nil
	isMany   bool                                                   // anybody can make up ids of such collections, so their pages are not stored
}

// isWhole reports whether the document of the collection has all its items. Then it has no
// pages.
func (c collection) isWhole() bool { return c.list == nil }

// listed is an item of a collection, with its place.
type listed struct {
	item any // nil if it is not shown
	at   user.Place
}

var (
	inboxCollection     = activityCollection("inbox", user.Inbound)
	outboxCollection    = activityCollection("outbox", user.Outbound)
	followersCollection = relationshipCollection("followers", user.Follower, func(c registry.Collections) registry.Visibility { return c.Followers })
	followingCollection = relationshipCollection("following", user.Following, func(c registry.Collections) registry.Visibility { return c.Following })
)

func activityCollection(name, direction string) collection {
	return collection{
		name: name,
		count: func(ctx context.Context, tx *user.Tx, to []vocab.ID) (int, error) {
			return tx.Activities.Count(ctx, direction, to)
		},
		list: func(ctx context.Context, tx *user.Tx, to []vocab.ID, after *user.Place, n int) ([]listed, error) {
			rows, err := tx.Activities.List(ctx, direction, to, after, n)
			if err != nil {
				return nil, err
			}
			docs, err := activityDocs(ctx, tx, rows)
			if err != nil {
				return nil, err
			}
			items := make([]listed, len(rows))
			for i, row := range rows {
				if direction == user.Outbound {
					// The page has the context once for all items. The proof
					// is left out, too, because it is invalid without the
					// context.
					delete(docs[i], "@context")
					delete(docs[i], "proof")
				}
				items[i] = listed{docs[i], user.Place{At: row.Published, ID: row.ID}}
			}
			return items, nil
		},
	}
}

func relationshipCollection(name, kind string, shown func(registry.Collections) registry.Visibility) collection {
	return collection{
		name:  name,
		shown: shown,
		count: func(ctx context.Context, tx *user.Tx, _ []vocab.ID) (int, error) {
			return tx.Relationships.Count(ctx, kind)
		},
		list: func(ctx context.Context, tx *user.Tx, _ []vocab.ID, after *user.Place, n int) ([]listed, error) {
			rows, err := tx.Relationships.List(ctx, kind, after, n)
			items := make([]listed, len(rows))
			for i, row := range rows {
				items[i] = listed{string(row.Actor), user.Place{At: row.CreatedAt, ID: row.ID}}
			}
			return items, err
		},
	}
}

// collections shows users' collections.
type collections struct {
	*access
	owners   *user.Databases // users' databases, for requests of the users themselves
	profiles Profiles
	pageSize int
	recent   *recentPages
}

// getCollection serves a collection. Followers may see more of it than others, and its owner
// sees all of it.
func (s *collections) getCollection(c collection) handle {
	return func(a *answer, r *http.Request, p httprouter.Params) error {
		contentType, err := a.chooseDocument(r)
		if err != nil {
			return err
		}
		a.addVary(whoAsks...)
		a.setCache(cachePrivate)
		if err := s.admitReader(a, r); err != nil {
			return err
		}
		if s.sendRecent(a, r, contentType, c, p.ByName("user")) {
			return nil
		}
		u, err := s.findResident(r, p)
		if err != nil {
			return err
		}
		viewer, err := s.viewerOf(a, r, c)
		if err != nil {
			return err
		}
		if viewer != s.local.ID(u) && c.shown != nil {
			if c.shown(s.profiles.User(u).Collections) != registry.Public {
				return s.hideCollection(a, r, contentType, c, u)
			}
		}
		return s.serveCollection(a, r, contentType, c, u, viewer)
	}
}

// sendRecent answers an anonymous reader with a stored page that another anonymous reader was
// just shown. It reports whether there was one.
func (s *collections) sendRecent(a *answer, r *http.Request, contentType string, c collection, name string) bool {
	u, err := vocab.ParseUsername(name)
	if err != nil || s.secureMode || !isAnonymous(r) || c.shown != nil && c.shown(s.profiles.User(u).Collections) != registry.Public {
		return false
	}
	return s.sendStored(a, r, contentType, c, u)
}

// sendStored answers with the stored page, and reports whether there was one.
func (s *collections) sendStored(a *answer, r *http.Request, contentType string, c collection, u vocab.Username) bool {
	page, found := s.recent.find(u, recentKey(c, r))
	if found {
		a.sendPublic(r, contentType, page)
	}
	return found
}

// sendPublic answers with a page that everybody may see.
func (a *answer) sendPublic(r *http.Request, contentType string, page []byte) {
	a.setCache(cachePublic)
	a.sendTagged(r, contentType, page)
}

// recentKey names the collection and the part of it that a request asks for.
func recentKey(c collection, r *http.Request) string {
	return c.name + strconv.FormatBool(wantsPage(r)) + r.URL.Query().Get("cursor")
}

// viewerOf returns the actor who asks for a collection. The id is empty if nothing proves who
// asks, or if the answer does not depend on who asks. Outside secure mode, a sender whose
// signature cannot be verified counts as anonymous.
func (s *collections) viewerOf(a *answer, r *http.Request, c collection) (vocab.ID, error) {
	if _, given := bearerToken(r); given || s.secureMode {
		return s.identifyViewer(a, r)
	}
	if c.shown != nil {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	viewer, err := s.identifyViewer(a, r.WithContext(ctx))
	if fault.IsPassing(err) {
		return "", nil
	}
	return viewer, err
}

// getInbox serves the activities that a user received, to that user only (ActivityPub §5.2).
// Other clients do not even learn whether the user exists.
func (s *collections) getInbox(a *answer, r *http.Request, p httprouter.Params) error {
	a.setCache(cachePrivate)
	a.addVary("Authorization")
	t, err := s.authorize(a, r, instance.ScopeRead)
	if err != nil {
		return err
	}
	u := t.User
	if p.ByName("user") != u.String() {
		return fault.New(fault.Forbidden, "the inbox is another user's")
	}
	contentType, err := a.chooseDocument(r)
	if err != nil {
		return err
	}
	return s.serveCollection(a, r, contentType, inboxCollection, u, s.local.ID(u))
}

// serveCollection answers with the collection, or with the page of it that the request asks for.
// It ignores unknown parameters, because peers add their own.
func (s *collections) serveCollection(a *answer, r *http.Request, contentType string, c collection, u vocab.Username, viewer vocab.ID) error {
	id := s.local.ID(u) + "/" + vocab.ID(c.name)
	cursor := r.URL.Query().Get("cursor")
	after, err := feed.DecodeCursor(cursorScope(c, u), cursor)
	if err != nil {
		return err
	}
	keep := func([]byte) {}
	if viewer == "" && !s.secureMode && !c.isMany {
		// A request that is not anonymous, but proves nothing, gets the page of anonymous
		// requests.
		var page []byte
		if page, keep = s.recent.obtain(r.Context(), u, recentKey(c, r)); keep == nil {
			a.sendPublic(r, contentType, page)
			return nil
		}
		defer keep(nil) // does nothing once the page is stored
	}
	var doc vocab.Doc
	read := func(ctx context.Context, tx *user.Tx) error {
		to, err := s.listAudience(ctx, tx, u, viewer)
		if err != nil {
			return err
		}
		if wantsPage(r) && !c.isWhole() {
			doc, err = s.buildPage(ctx, tx, c, u, id, to, cursor, after)
		} else {
			doc, err = buildHead(ctx, tx, c, id, to)
		}
		return err
	}
	if viewer == s.local.ID(u) {
		err = s.owners.Read(r.Context(), u, read)
	} else {
		err = s.readAsStranger(r, u, read)
	}
	if err != nil {
		return err
	}
	if viewer != "" {
		a.send(http.StatusOK, contentType, doc.JSON())
		return nil
	}
	page := doc.JSON()
	keep(page) // before it is sent, because the client may be slow
	a.sendPublic(r, contentType, page)
	return nil
}

// listAudience returns the ids that select the items of u's collections for the actor in the
// parameter viewer. This actor sees the items that are addressed to one of the ids. The result is
// nil for the owner, who sees all items. Direct messages are not listed to others, even if they
// may read each message by its id.
func (s *collections) listAudience(ctx context.Context, tx *user.Tx, u vocab.Username, viewer vocab.ID) ([]vocab.ID, error) {
	if viewer == s.local.ID(u) {
		return nil, nil
	}
	if viewer == "" {
		return audience.Lists(s.local.ID(u), audience.Viewer{}), nil
	}
	is, err := standingOf(ctx, tx, viewer)
	if err != nil {
		return nil, err
	}
	if is.blocked {
		return nil, fault.New(fault.Forbidden, "this is not shown to you")
	}
	return audience.Lists(s.local.ID(u), s.viewerOfUser(u, viewer, is)), nil
}

// firstPage is the query for the first page. Later pages are asked for by cursor.
const firstPage = "page=true"

func wantsPage(r *http.Request) bool {
	q := r.URL.Query()
	return q.Has("page") || q.Has("cursor")
}

// cursorScope names the list that the cursors belong to. A cursor of another list is refused.
func cursorScope(c collection, u vocab.Username) string { return u.String() + "/" + c.name }

// buildHead returns the document of the collection itself.
func buildHead(ctx context.Context, tx *user.Tx, c collection, id vocab.ID, to []vocab.ID) (vocab.Doc, error) {
	head := vocab.Collection{ID: id}
	if !c.isWhole() {
		total, err := c.count(ctx, tx, to)
		if err != nil {
			return nil, err
		}
		head.Total, head.First = total, id+"?"+firstPage
	}
	d := head.Doc()
	if c.describe == nil {
		return d, nil
	}
	return d, c.describe(ctx, tx, d)
}

func (s *collections) buildPage(ctx context.Context, tx *user.Tx, c collection, u vocab.Username, id vocab.ID, to []vocab.ID, cursor string, after *user.Place) (vocab.Doc, error) {
	items, err := c.list(ctx, tx, to, after, s.pageSize+1) // one more, to learn whether a page follows
	if err != nil {
		return nil, err
	}
	p := vocab.Page{ID: id + "?" + firstPage, PartOf: id}
	if cursor != "" {
		p.ID = id + "?cursor=" + vocab.ID(cursor)
	}
	if len(items) > s.pageSize {
		items = items[:s.pageSize]
		p.Next = id + "?cursor=" + vocab.ID(feed.EncodeCursor(cursorScope(c, u), items[len(items)-1].at))
	}
	for _, i := range items {
		if i.item != nil {
			p.Items = append(p.Items, i.item)
		}
	}
	return p.Doc(), nil
}

// hideCollection answers for a collection that only its owner may read. The answer shows that
// the collection exists, but it shows neither the items nor their number.
func (s *collections) hideCollection(a *answer, r *http.Request, contentType string, c collection, u vocab.Username) error {
	if wantsPage(r) {
		return errNothing
	}
	a.setCache(s.cachePolicy())
	a.sendTagged(r, contentType, vocab.Collection{ID: s.local.ID(u) + "/" + vocab.ID(c.name), Total: -1}.Doc().JSON())
	return nil
}
