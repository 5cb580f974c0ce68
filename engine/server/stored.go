package server

import (
	"context"
	"net/http"
	"reflect"

	"github.com/google/uuid"
	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// stored is an object or activity of a user in the form that is shown, with its audience.
type stored struct {
	vocab.Addressing
	doc     vocab.Doc
	deleted bool
}

// storedDocuments serves users' activities and objects.
type storedDocuments struct{ *access }

func (s *storedDocuments) getActivity(a *answer, r *http.Request, p httprouter.Params) error {
	return s.getStored(a, r, p, "/activities/", findActivity)
}

func (s *storedDocuments) getObject(a *answer, r *http.Request, p httprouter.Params) error {
	if s.local.HasPages() && prefersPage(r) {
		is, err := s.hasPage(r, p)
		if err != nil {
			return err
		}
		if is {
			a.varyByForm()
			a.addVary(whoAsks...)
			a.sendElsewhere(s.local.PostPage(s.idOf(p) + "/objects/" + vocab.ID(p.ByName("thing"))))
			return nil
		}
	}
	return s.getStored(a, r, p, "/objects/", findObject)
}

// hasPage reports whether the object that the path names has a page. It reports false if the
// reader's host is blocked.
func (s *storedDocuments) hasPage(r *http.Request, p httprouter.Params) (bool, error) {
	if s.checkSigner(r) != nil || !isOwnPart(p.ByName("thing")) {
		return false, nil
	}
	u, err := s.findResident(r, p)
	if err != nil { // getStored refuses such a user
		return false, nil
	}
	found, err := s.forAll(r, u, s.local.ID(u)+"/objects/"+vocab.ID(p.ByName("thing")), findObject)
	return found.doc != nil && !found.deleted && !isForServers(found.doc), err
}

// finding looks for an activity or object of the user me by its id. If the parameter public is
// true, it finds only a public one.
type finding func(ctx context.Context, tx *user.Tx, me, id vocab.ID, public bool) (stored, error)

// getStored serves one activity or object of a user to senders who may read it. For other senders
// it does not exist. Neither the answer nor the work for the answer shows them more, because
// getStored looks for a document that is not public only after it has identified the sender.
func (s *storedDocuments) getStored(a *answer, r *http.Request, p httprouter.Params, folder string, find finding) error {
	contentType, err := a.chooseDocument(r)
	if err != nil {
		return err
	}
	a.addVary(whoAsks...)
	a.setCache(cachePrivate)
	if err := s.admitReader(a, r); err != nil {
		return err
	}
	u, err := s.findResident(r, p)
	if err != nil {
		return err
	}
	if !isOwnPart(p.ByName("thing")) {
		return errNothing
	}
	id := s.local.ID(u) + vocab.ID(folder+p.ByName("thing"))
	found, err := s.forAll(r, u, id, find)
	if err == nil && found.doc == nil {
		found, err = s.forViewer(a, r, u, id, find)
	}
	if err != nil {
		return err
	}
	if audience.IsPublic(found.Addressing) {
		a.setCache(s.cachePolicy())
	}
	return a.sendStored(r, contentType, found)
}

// isOwnPart reports whether this server can have made the last part of an id. Other parts are
// not worth a search.
func isOwnPart(s string) bool {
	id, err := uuid.Parse(s)
	return err == nil && id.String() == s
}

// forAll looks for an activity or object that everybody may read. In secure mode it finds
// nothing.
func (s *storedDocuments) forAll(r *http.Request, u vocab.Username, id vocab.ID, find finding) (found stored, err error) {
	if s.secureMode {
		return stored{}, nil
	}
	err = s.readAsStranger(r, u, func(ctx context.Context, tx *user.Tx) (err error) {
		found, err = find(ctx, tx, s.local.ID(u), id, true)
		return err
	})
	return found, err
}

// forViewer looks for an activity or object that the sender of the request may read. If it finds
// nothing, the fault is NotFound.
func (s *storedDocuments) forViewer(a *answer, r *http.Request, u vocab.Username, id vocab.ID, find finding) (found stored, err error) {
	viewer, err := s.identifyViewer(a, r)
	if err != nil {
		return stored{}, err
	}
	if viewer == "" {
		return stored{}, errNothing
	}
	var is standing
	err = s.readAsStranger(r, u, func(ctx context.Context, tx *user.Tx) (err error) {
		if found, err = find(ctx, tx, s.local.ID(u), id, false); err != nil {
			return err
		}
		is, err = standingOf(ctx, tx, viewer)
		return err
	})
	if err == nil && (found.doc == nil || !s.mayRead(u, viewer, is, found.Addressing)) {
		err = errNothing
	}
	return found, err
}

// mayRead reports whether the actor in the parameter viewer may read a document of the user u
// with this addressing. The user u always may. All users of this server may read a local
// document, and anybody may read a public one. Any other document may be read by the actors that
// it names and, if it names u's followers, by accepted followers. An actor that got the document
// only through a group may not read it, and neither may an actor that u blocks.
func (s *storedDocuments) mayRead(u vocab.Username, viewer vocab.ID, is standing, to vocab.Addressing) bool {
	return audience.Of(to, s.local.ID(u), s.local.Followers(u)).MaySee(s.viewerOfUser(u, viewer, is))
}

// viewerOfUser describes an actor's standing to a user in the form that package audience uses.
func (s *access) viewerOfUser(u vocab.Username, actor vocab.ID, is standing) audience.Viewer {
	v := audience.Viewer{ID: actor, Blocked: is.blocked}
	if is.follows {
		v.Circles = []vocab.ID{s.local.Followers(u)}
	}
	return v
}

// standing tells whether a user blocks an actor, and whether the actor follows the user.
type standing struct{ blocked, follows bool }

func standingOf(ctx context.Context, tx *user.Tx, actor vocab.ID) (standing, error) {
	block, err := tx.Blocks.Find(ctx, user.Outbound, actor)
	if err != nil {
		return standing{}, err
	}
	follows, err := tx.Relationships.IsAccepted(ctx, user.Follower, actor)
	return standing{block != nil, follows}, err
}

func (a *answer) sendStored(r *http.Request, contentType string, found stored) error {
	d := found.doc.WithoutHidden()
	if d["@context"] == nil {
		d["@context"] = vocab.WithQuoteTerms(vocab.Context(), d)
	}
	switch {
	case found.deleted:
		a.send(http.StatusGone, contentType, d.JSON())
	case audience.IsPublic(found.Addressing):
		a.sendTagged(r, contentType, d.JSON())
	default:
		a.send(http.StatusOK, contentType, d.JSON())
	}
	return nil
}

// findObject returns an object of the user. The recipients of a deleted object come from its
// Create, because the object itself does not name them any more.
func findObject(ctx context.Context, tx *user.Tx, me, id vocab.ID, public bool) (stored, error) {
	look := tx.Objects.Find
	if public {
		look = tx.Objects.FindPublic
	}
	row, err := look(ctx, id)
	if err != nil || row == nil {
		return stored{}, err
	}
	o, err := row.Parse()
	if err != nil {
		return stored{}, err
	}
	if stands, err := handler.Stands(ctx, tx, o); err != nil || !stands {
		return stored{}, err
	}
	found := stored{doc: o.Doc, deleted: row.DeletedAt != nil}
	if found.deleted {
		create, err := tx.Activities.Latest(ctx, vocab.Create, me, id)
		if err != nil || create == nil {
			return found, err
		}
		a, err := create.Parse()
		if err != nil {
			return stored{}, err
		}
		found.Addressing = a.Addressing
		return found, nil
	}
	found.Addressing = o.Addressing
	return found, nil
}

// findActivity returns an activity of the user.
func findActivity(ctx context.Context, tx *user.Tx, _, id vocab.ID, public bool) (stored, error) {
	look := tx.Activities.Find
	if public {
		look = tx.Activities.FindPublic
	}
	row, err := look(ctx, id)
	if err != nil || row == nil {
		return stored{}, err
	}
	a, err := row.Parse()
	if err != nil {
		return stored{}, err
	}
	docs, err := activityDocs(ctx, tx, []user.Activity{*row})
	if err != nil {
		return stored{}, err
	}
	return stored{Addressing: a.Addressing, doc: docs[0]}, nil
}

// activityDocs returns activities in the form that is shown. An object that an activity carries
// is shown as it is stored now, so that text that the author has removed is not served. A proof
// that does not cover the shown document is left out. Activities of others are shown as in feeds.
// Of an activity that cannot be read, only the id and the type are shown.
func activityDocs(ctx context.Context, tx *user.Tx, rows []user.Activity) ([]vocab.Doc, error) {
	docs := make([]vocab.Doc, len(rows))
	var brought []vocab.ID
	for i, row := range rows {
		d, err := vocab.ParseDoc(row.Raw)
		if err != nil {
			d = vocab.Doc{"id": string(row.URI), "type": row.Type}
		}
		docs[i] = d
		if isCarrier(row, d) {
			brought = append(brought, row.Object)
		}
	}
	now, err := carriedNow(ctx, tx, brought)
	if err != nil {
		return nil, err
	}
	for i, row := range rows {
		if row.Direction == user.Inbound {
			docs[i] = showReceived(docs[i], now[row.Object], isCarrier(row, docs[i]))
			continue
		}
		if d := now[row.Object].doc; isCarrier(row, docs[i]) && !reflect.DeepEqual(d, docs[i].Sub("object")) {
			docs[i]["object"] = string(row.Object)
			if d != nil {
				docs[i]["object"] = d
			}
			delete(docs[i], "proof")
		}
		if docs[i].Hides() {
			docs[i] = docs[i].WithoutHidden()
			delete(docs[i], "proof")
		}
	}
	return docs, nil
}

// carried is an object as it is stored now, with its text in the form that readers see.
type carried struct{ doc, readable vocab.Doc }

func carriedNow(ctx context.Context, tx *user.Tx, ids []vocab.ID) (map[vocab.ID]carried, error) {
	now := map[vocab.ID]carried{}
	if len(ids) == 0 {
		return now, nil
	}
	objects, err := tx.Objects.FindAll(ctx, ids)
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		parsed, err := o.Parse()
		if err != nil {
			continue // then it is shown by its id
		}
		delete(parsed.Doc, "@context")
		now[o.URI] = carried{parsed.Doc, vocab.ReadableOf(parsed.Doc, o.Readable)}
	}
	return now, nil
}

// showReceived returns an activity of another actor as the user sees it. An object that it
// carries is shown as it is stored now.
func showReceived(d vocab.Doc, now carried, carries bool) vocab.Doc {
	kind, _ := d.Type()
	out := vocab.ShowActivity(d, now.doc != nil, handler.HasEmoji(kind))
	if d["@context"] != nil {
		out["@context"] = d["@context"]
	}
	if carries && now.doc != nil {
		out["object"] = vocab.Show(now.doc, now.readable, nil)
	}
	return out
}

func isCarrier(row user.Activity, d vocab.Doc) bool {
	return row.Object != "" && handler.HasWords(row.Type) && d.Sub("object") != nil
}
