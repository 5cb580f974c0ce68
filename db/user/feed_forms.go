package user

import "context"

// Form is a feed entry as it was rendered for a reader. KeepForms stores it. It has the rendered
// activity, and the rendered object if the object is stored.
type Form struct {
	FeedLine         // the entry and the revisions from which the form was made
	Activity, Object string
}

// keptForms joins the forms of the activity a and the object o that are stored for one reader
// and the current revisions. If a row has an object without such a form, the form of its
// activity is not used either. OFFSET 0 makes PostgreSQL look the forms up by their ids even
// without statistics of the table.
const keptForms = `
	LEFT JOIN LATERAL (SELECT form FROM shown_forms WHERE id = o.id AND reader = @reader AND activity_revision IS NULL AND object_revision = o.xmin OFFSET 0) AS obf ON true
	LEFT JOIN LATERAL (SELECT form FROM shown_forms WHERE id = a.id AND reader = @reader AND activity_revision = a.xmin AND object_revision IS NOT DISTINCT FROM o.xmin
		AND (o.id IS NULL OR obf.form IS NOT NULL) OFFSET 0) AS af ON true`

// ReadFor makes the feeds read the forms that are stored for a reader. They read documents only
// where there is no such form.
func (t Feed) ReadFor(reader string) { t.reader = reader }

// KeepForms stores how entries are shown to a reader. It skips rows that have changed or that
// another transaction is changing. It locks the rows, so that a later change of a row finds the
// row's form and can remove it.
func (t Feed) KeepForms(ctx context.Context, reader string, forms []Form) error {
	n := len(forms)
	uris, actors, objects, revisions, objectRevisions := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	shown, shownObjects := make([]string, n), make([]string, n)
	for i, f := range forms {
		uris[i], actors[i], objects[i], revisions[i], objectRevisions[i] = string(f.FeedEntry.Activity), string(f.Actor), string(f.ObjectURI), f.Revision, f.ObjectRevision
		shown[i], shownObjects[i] = f.Activity, f.Object
	}
	const kept = ` ON CONFLICT (id) DO UPDATE SET reader = excluded.reader, activity_revision = excluded.activity_revision,
			object_revision = excluded.object_revision, form = excluded.form
		WHERE (shown_forms.*) IS DISTINCT FROM (excluded.*)`
	b := t.unsent.batch()
	b.Queue(`SET LOCAL synchronous_commit = off`) // a form that a crash loses is made again
	b.Queue(`INSERT INTO shown_forms (id, reader, object_revision, form)
		SELECT o.id, @reader, o.xmin, k.form FROM (SELECT DISTINCT ON (uri) * FROM unnest(@objects::text[], @revisions::text[], @shown::text[]) AS k (uri, revision, form)) AS k
			JOIN objects o ON o.uri = k.uri AND o.xmin = nullif(k.revision, '')::xid ORDER BY o.id FOR SHARE OF o SKIP LOCKED`+kept,
		named{"reader": reader, "objects": objects, "revisions": objectRevisions, "shown": shownObjects})
	b.Queue(`INSERT INTO shown_forms (id, reader, activity_revision, object_revision, form)
		SELECT a.id, @reader, a.xmin, nullif(k.object_revision, '')::xid, k.form FROM unnest(@uris::text[], @actors::text[], @revisions::text[], @object_revisions::text[], @shown::text[])
			AS k (uri, actor, revision, object_revision, form) JOIN activities a ON a.uri = k.uri AND a.actor_uri = k.actor AND a.xmin = k.revision::xid
		ORDER BY a.id FOR SHARE OF a SKIP LOCKED`+kept,
		named{"reader": reader, "uris": uris, "actors": actors, "revisions": revisions, "object_revisions": objectRevisions, "shown": shown})
	return t.send(ctx, "keep shown forms", b)
}
