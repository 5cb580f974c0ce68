package server

import (
	"context"
	"fmt"
	"net/http"
	"reflect"

	"github.com/google/uuid"
	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// stored is an object or activity of a user, as it is to be shown, and who may read it.
type stored struct {
	vocab.Addressing
	doc     vocab.Doc
	deleted bool
}

// storedDocuments shows users' activities and objects.
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

// hasPage reports whether there is a page of the object that the path names, for a reader who is
// let in.
func (s *storedDocuments) hasPage(r *http.Request, p httprouter.Params) (bool, error) {
	if s.checkSigner(r) != nil || !isOwnPart(p.ByName("thing")) {
		return false, nil
	}
	u, err := s.findResident(r, p)
	if err != nil { // getStored says the same of the user
		return false, nil
	}
	found, err := s.forAll(r, u, s.local.ID(u)+"/objects/"+vocab.ID(p.ByName("thing")), findObject)
	return found.doc != nil && !found.deleted && !isForServers(found.doc), err
}

// finding looks for a thing of me; with public only for one that is for everybody.
type finding func(ctx context.Context, tx *db.Tx, me, id vocab.ID, public bool) (stored, error)

// getStored serves one thing of a user's to those who may read it. To others it is not there, and
// they can tell neither by the answer nor by what is done for it: what is not for everybody is
// looked for only once it is known who asks.
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

// isOwnPart reports whether the last part of an id may be one that we made: for another one it is
// not worth to look.
func isOwnPart(s string) bool {
	id, err := uuid.Parse(s)
	return err == nil && id.String() == s
}

// forAll looks for what everybody may read; in secure mode that is nothing.
func (s *storedDocuments) forAll(r *http.Request, u vocab.Username, id vocab.ID, find finding) (found stored, err error) {
	if s.secureMode {
		return stored{}, nil
	}
	err = s.readAsStranger(r, u, func(ctx context.Context, tx *db.Tx) (err error) {
		found, err = find(ctx, tx, s.local.ID(u), id, true)
		return err
	})
	return found, err
}

// forViewer looks for what who asks may read; the fault is NotFound.
func (s *storedDocuments) forViewer(a *answer, r *http.Request, u vocab.Username, id vocab.ID, find finding) (found stored, err error) {
	viewer, err := s.identifyViewer(a, r)
	if err != nil {
		return stored{}, err
	}
	if viewer == "" {
		return stored{}, errNothing
	}
	var is standing
	err = s.readAsStranger(r, u, func(ctx context.Context, tx *db.Tx) (err error) {
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

// mayRead reports whether viewer may read something of u's: u itself, an actor that it names, an
// accepted follower when it names u's followers, another user when it is local, or anybody when it
// is public. An actor that only a group names may not, and one that u blocks may no longer.
func (s *storedDocuments) mayRead(u vocab.Username, viewer vocab.ID, is standing, to vocab.Addressing) bool {
	return audience.Of(to, s.local.ID(u), s.local.Followers(u)).MaySee(s.viewerOfUser(u, viewer, is))
}

// viewerOfUser returns how an actor stands to a user, as audiences ask for it.
func (s *access) viewerOfUser(u vocab.Username, actor vocab.ID, is standing) audience.Viewer {
	v := audience.Viewer{ID: actor, Blocked: is.blocked}
	if is.follows {
		v.Circles = []vocab.ID{s.local.Followers(u)}
	}
	return v
}

// standing is how an actor stands to a user.
type standing struct{ blocked, follows bool }

func standingOf(ctx context.Context, tx *db.Tx, actor vocab.ID) (standing, error) {
	block, err := tx.Block(ctx, db.Outbound, actor)
	if err != nil {
		return standing{}, err
	}
	follower, err := tx.Relationship(ctx, db.Follower, actor)
	return standing{block != nil, follower != nil && follower.Status == db.Accepted}, err
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

// findObject returns an object of the user's. Of a deleted one only the Create still tells the
// recipients.
func findObject(ctx context.Context, tx *db.Tx, me, id vocab.ID, public bool) (stored, error) {
	look := tx.Object
	if public {
		look = tx.PublicObject
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
		create, err := tx.LatestActivity(ctx, vocab.Create, me, id)
		if err != nil || create == nil {
			return found, err
		}
		a, err := vocab.ParseActivity(create.Raw)
		if err != nil {
			return stored{}, fmt.Errorf("read stored activity: %w", internalFault(err))
		}
		found.Addressing = a.Addressing
		return found, nil
	}
	found.Addressing = o.Addressing
	return found, nil
}

// findActivity returns an activity of the user's.
func findActivity(ctx context.Context, tx *db.Tx, _, id vocab.ID, public bool) (stored, error) {
	look := tx.Activity
	if public {
		look = tx.PublicActivity
	}
	row, err := look(ctx, id)
	if err != nil || row == nil {
		return stored{}, err
	}
	a, err := vocab.ParseActivity(row.Raw)
	if err != nil {
		return stored{}, fmt.Errorf("read stored activity: %w", internalFault(err))
	}
	docs, err := activityDocs(ctx, tx, []db.Activity{*row})
	if err != nil {
		return stored{}, err
	}
	return stored{Addressing: a.Addressing, doc: docs[0]}, nil
}

// activityDocs returns activities as they are to be shown. The object that an activity carries is
// the one stored now: words that its author took back are not served from the past. A proof that
// does not cover what is shown is left out. Activities of others are shown as in feeds.
func activityDocs(ctx context.Context, tx *db.Tx, rows []db.Activity) ([]vocab.Doc, error) {
	docs := make([]vocab.Doc, len(rows))
	var brought []vocab.ID
	for i, row := range rows {
		d, err := vocab.ParseDoc(row.Raw)
		if err != nil {
			return nil, fmt.Errorf("read stored activity: %w", internalFault(err))
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
		if row.Direction == db.Inbound {
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

// carried is an object as it is stored now, and what readers are shown of its words.
type carried struct{ doc, readable vocab.Doc }

func carriedNow(ctx context.Context, tx *db.Tx, ids []vocab.ID) (map[vocab.ID]carried, error) {
	now := map[vocab.ID]carried{}
	if len(ids) == 0 {
		return now, nil
	}
	objects, err := tx.Objects(ctx, ids)
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		parsed, err := o.Parse()
		if err != nil {
			return nil, err
		}
		delete(parsed.Doc, "@context")
		readable, err := vocab.ParseDoc(o.Readable)
		if o.Readable == nil || err != nil {
			readable = vocab.Readable(parsed.Doc, nil)
		}
		now[o.URI] = carried{parsed.Doc, readable}
	}
	return now, nil
}

// showReceived returns an activity of somebody else's as the user is shown it, with the object
// that it brought as that is now.
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

func isCarrier(row db.Activity, d vocab.Doc) bool {
	return row.Object != "" && handler.HasWords(row.Type) && d.Sub("object") != nil
}

// internalFault keeps what is wrong with our own rows from being told as a fault of the request.
func internalFault(err error) error {
	return fault.Wrap(fault.Internal, "a stored document cannot be read", err)
}
