package server

import (
	"context"
	"net/http"
	"strconv"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// collection is one of the collections that every user has. Its owner sees all of it, others what
// they may: what addresses any of to, all of it when that is nil.
type collection struct {
	name  string                                         // the last part of its id, or the last three
	shown func(registry.Collections) registry.Visibility // who may read it at all; nil: everybody, and followers more of it
	count func(_ context.Context, _ *db.Tx, to []vocab.ID) (int, error)
	list  func(_ context.Context, _ *db.Tx, to []vocab.ID, after *db.Place, n int) ([]listed, error)

	describe func(_ context.Context, _ *db.Tx, d vocab.Doc) error // completes the collection's document; may be nil
	isMany   bool                                                 // there may be many like it, and anybody can make ids up: its pages are not kept
}

// isWhole reports whether the document of the collection has all its items, and pages are none.
func (c collection) isWhole() bool { return c.list == nil }

// listed is an item of a collection, with its place.
type listed struct {
	item any // nil: it is not shown
	at   db.Place
}

var (
	inboxCollection     = activityCollection("inbox", db.Inbound)
	outboxCollection    = activityCollection("outbox", db.Outbound)
	followersCollection = relationshipCollection("followers", db.Follower, func(c registry.Collections) registry.Visibility { return c.Followers })
	followingCollection = relationshipCollection("following", db.Following, func(c registry.Collections) registry.Visibility { return c.Following })
)

func activityCollection(name, direction string) collection {
	return collection{
		name: name,
		count: func(ctx context.Context, tx *db.Tx, to []vocab.ID) (int, error) {
			return tx.CountActivities(ctx, direction, to)
		},
		list: func(ctx context.Context, tx *db.Tx, to []vocab.ID, after *db.Place, n int) ([]listed, error) {
			rows, err := tx.Activities(ctx, direction, to, after, n)
			if err != nil {
				return nil, err
			}
			docs, err := activityDocs(ctx, tx, rows)
			if err != nil {
				return nil, err
			}
			items := make([]listed, len(rows))
			for i, row := range rows {
				if direction == db.Outbound {
					delete(docs[i], "@context") // the page has it, so what the proof covers is not there
					delete(docs[i], "proof")
				}
				items[i] = listed{docs[i], db.Place{At: row.Published, ID: row.ID}}
			}
			return items, nil
		},
	}
}

func relationshipCollection(name, kind string, shown func(registry.Collections) registry.Visibility) collection {
	return collection{
		name:  name,
		shown: shown,
		count: func(ctx context.Context, tx *db.Tx, _ []vocab.ID) (int, error) {
			return tx.CountRelationships(ctx, kind)
		},
		list: func(ctx context.Context, tx *db.Tx, _ []vocab.ID, after *db.Place, n int) ([]listed, error) {
			rows, err := tx.Relationships(ctx, kind, after, n)
			items := make([]listed, len(rows))
			for i, row := range rows {
				items[i] = listed{string(row.Actor), db.Place{At: row.CreatedAt, ID: row.ID}}
			}
			return items, err
		},
	}
}

// collections shows users' collections.
type collections struct {
	*access
	owners   *db.Cluster // the store, for users
	profiles Profiles
	pageSize int
	recent   *recentPages
}

// getCollection serves a collection to everybody, more of it to followers, and all to its owner.
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

// sendRecent answers a reader that nobody knows with a page that another one was just shown, and
// reports whether there is one.
func (s *collections) sendRecent(a *answer, r *http.Request, contentType string, c collection, name string) bool {
	u, err := vocab.ParseUsername(name)
	if err != nil || s.secureMode || !isAnonymous(r) || c.shown != nil && c.shown(s.profiles.User(u).Collections) != registry.Public {
		return false
	}
	page, found := s.recent.find(u, recentKey(c, r))
	if found {
		a.setCache(cachePublic)
		a.sendAs(r, contentType, page)
	}
	return found
}

// recentKey names the collection and what a request wants of it.
func recentKey(c collection, r *http.Request) string {
	return c.name + strconv.FormatBool(wantsPage(r)) + r.URL.Query().Get("cursor")
}

// viewerOf returns who asks for a collection, the empty id when that is nobody or makes no
// difference. A public collection is not refused for a signature that cannot be verified.
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
	if isPassing(err) {
		return "", nil
	}
	return viewer, err
}

// getInbox serves what a user received, to that user only (ActivityPub §5.2). Others learn nothing,
// not even whether there is such a user.
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

// serveCollection answers with the collection, or with the page of it that is asked for. Other
// parameters are ignored: peers add their own.
func (s *collections) serveCollection(a *answer, r *http.Request, contentType string, c collection, u vocab.Username, viewer vocab.ID) error {
	id := s.local.ID(u) + "/" + vocab.ID(c.name)
	cursor := r.URL.Query().Get("cursor")
	after, err := feed.DecodeCursor(cursorScope(c, u), cursor)
	if err != nil {
		return err
	}
	keep := func(tagged) {}
	if viewer == "" && !s.secureMode && !c.isMany {
		keep = s.recent.begin(u, recentKey(c, r))
	}
	var doc vocab.Doc
	read := func(ctx context.Context, tx *db.Tx) error {
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
	page := tag(doc.JSON())
	keep(page)
	a.setCache(cachePublic)
	a.sendAs(r, contentType, page)
	return nil
}

// listAudience returns whose part of u's collections viewer sees: what addresses any of them, nil
// for all. Nobody finds direct messages there, however much they may be read one by one.
func (s *collections) listAudience(ctx context.Context, tx *db.Tx, u vocab.Username, viewer vocab.ID) ([]vocab.ID, error) {
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

// firstPage asks for the page at the beginning; those that follow are asked for by cursor.
const firstPage = "page=true"

func wantsPage(r *http.Request) bool {
	q := r.URL.Query()
	return q.Has("page") || q.Has("cursor")
}

// cursorScope is what the cursors of a collection are good for.
func cursorScope(c collection, u vocab.Username) string { return u.String() + "/" + c.name }

// buildHead returns the document of the collection itself.
func buildHead(ctx context.Context, tx *db.Tx, c collection, id vocab.ID, to []vocab.ID) (vocab.Doc, error) {
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

func (s *collections) buildPage(ctx context.Context, tx *db.Tx, c collection, u vocab.Username, id vocab.ID, to []vocab.ID, cursor string, after *db.Place) (vocab.Doc, error) {
	items, err := c.list(ctx, tx, to, after, s.pageSize+1) // one more tells whether a page follows
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

// hideCollection answers for a collection that is its owner's alone: it is there, and nothing in it
// is told, not even how much.
func (s *collections) hideCollection(a *answer, r *http.Request, contentType string, c collection, u vocab.Username) error {
	if wantsPage(r) {
		return errNothing
	}
	a.setCache(s.cachePolicy())
	a.sendTagged(r, contentType, vocab.Collection{ID: s.local.ID(u) + "/" + vocab.ID(c.name), Total: -1}.Doc().JSON())
	return nil
}
