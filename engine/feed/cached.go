package feed

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/cache"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Cached is the Store in users' databases with a cache in front of it. The index of the cache
// has a line for each entry. The documents in the cache are activities and objects in the form
// that is shown, and cards of actors. The gate checks the entries after they are read from the
// cache.
type Cached struct {
	*Database
	cache    *cache.Cache
	actorTTL time.Duration
	log      *slog.Logger
	flights  flights // reads of pages that are not cached
}

// NewCached returns the feeds of a database with the cache c. Cached cards expire after
// actorTTL.
func NewCached(d *Database, c *cache.Cache, actorTTL time.Duration, log *slog.Logger) *Cached {
	return &Cached{Database: d, cache: c, actorTTL: actorTTL, log: log}
}

// Cards is the name of a list that has no pages. Its token is read together with each feed, and
// is the revision of the cached cards.
const Cards = "cards"

// Page implements Store.
func (c *Cached) Page(ctx context.Context, u vocab.Username, feed string, after *user.Place, limit int) (Stored, error) {
	if after != nil && after.Offset == 0 || !slices.Contains(All, feed) { // the offset is not known, or the feed has no index
		return c.Database.Page(ctx, u, feed, after, limit)
	}
	part := c.cache.Read(ctx, cache.Query{User: u, List: feed, Beside: Cards, After: markOf(after), Offset: offsetOf(after), Limit: limit})
	if part.IsHeld {
		if stored, whole := c.assemble(ctx, u, part, offsetOf(after)); whole {
			return stored, nil
		}
	}
	return c.shareMiss(ctx, u, feed, after, limit, part)
}

// keep caches a page that was read from the database because the cache did not have all of it. If
// the lines in the cache are outdated, keep removes the feed from the cache instead.
func (c *Cached) keep(ctx context.Context, u vocab.Username, feed string, after *user.Place, part cache.Part, stored Stored) error {
	isFillable := c.cache.IsFillable(part)
	switch {
	case part.Beside == "" || !part.IsHeld && !isFillable:
		return nil
	case part.IsHeld && isOutdated(part.Lines, stored.Entries):
		return c.cache.Drop(ctx, u, []string{feed}, nil)
	}
	err := c.cache.Keep(ctx, u, c.documents(u, stored, part.Beside))
	if isFillable {
		err = errors.Join(err, c.fill(ctx, u, feed, after, part))
	}
	return err
}

// isOutdated reports whether the lines name other revisions than the entries have. That happens
// when a row was written again without a change that a reader sees.
func isOutdated(lines []string, entries []Shown) bool {
	revisions := map[string]bool{}
	for _, line := range lines {
		if row, ok := readLine(line); ok {
			revisions[activityRevision(row)] = true
		}
	}
	return slices.ContainsFunc(entries, func(e Shown) bool { return !revisions[activityRevision(e.line)] })
}

// warnOf logs why a page was not cached. That is no failure: the reader has the page, and the page
// of the next reader is read from the database, too. warnOf does not log that Redis is
// unavailable, because the watcher of Redis logs that.
func (c *Cached) warnOf(ctx context.Context, u vocab.Username, err error) {
	if err != nil && !keyspace.IsAway(err) && ctx.Err() == nil {
		c.log.WarnContext(ctx, "page not cached", "user", u, "err", err)
	}
}

func (c *Cached) fill(ctx context.Context, u vocab.Username, feed string, after *user.Place, part cache.Part) error {
	return c.cache.Fill(ctx, part, func(ctx context.Context, n int) ([]string, error) {
		rows, err := c.lines(ctx, u, feed, after, n)
		lines := make([]string, len(rows))
		for n, row := range rows {
			lines[n] = writeLine(row)
		}
		return lines, err
	})
}

// Committed removes from the cache the pages that a commit made stale, before the writer learns
// that the commit succeeded. If Redis is unavailable, this process remembers that they are
// stale.
func (c *Cached) Committed(ctx context.Context, done user.Commit) { _ = Drop(ctx, c.cache, done) }

// Drop removes from a cache the pages that a commit made stale, and the documents that it stored,
// changed or removed.
func Drop(ctx context.Context, c *cache.Cache, done user.Commit) error {
	var lists []string
	for _, l := range []struct {
		list    string
		changed bool
	}{
		{Main, done.Pages.Has(user.MainFeed)},
		{Notifications, done.Pages.Has(user.NotificationsFeed)},
		{Requests, done.Pages.Has(user.RequestsFeed)},
		{Cards, len(done.Actors) > 0},
	} {
		if l.changed || done.Everything {
			lists = append(lists, l.list)
		}
	}
	if len(lists) == 0 {
		return nil
	}
	return c.Drop(ctx, done.User, lists, documentsOf(done.Touched))
}

// documentsOf returns the keys of the documents that a commit may have changed.
func documentsOf(t user.Touched) []string {
	keys := make([]string, 0, len(t.Objects)+len(t.Actors))
	for _, id := range t.Objects {
		keys = append(keys, documentKey(id))
	}
	for _, id := range t.Actors {
		keys = append(keys, cardKey(id))
	}
	return keys
}

// assemble makes a page from the lines of the index. It reports whether the cache had all the
// documents.
func (c *Cached) assemble(ctx context.Context, u vocab.Username, part cache.Part, offset int) (stored Stored, whole bool) {
	w := &wanted{objects: make(map[vocab.ID]int, len(part.Lines)), cards: make(map[vocab.ID]int, len(part.Lines))}
	if !c.want(w, u, part) || !c.cache.Documents(ctx, u, w.all) {
		return Stored{}, false
	}
	stored.Cards = map[vocab.ID]vocab.Card{}
	for _, row := range w.rows {
		e, ok := readEntry(w.all[row.activity].Body)
		if !ok {
			return Stored{}, false
		}
		e.ID, e.ActivityURI, e.ActorURI, e.Published, e.line = row.ID, row.Activity, row.Actor, row.Published, row.FeedLine
		if row.ObjectURI != "" {
			e.Object = Document(w.all[row.object].Body)
		}
		for _, id := range []vocab.ID{e.ActorURI, e.authorOrActor()} {
			if _, there := stored.Cards[id]; there {
				continue
			}
			if stored.Cards[id], ok = c.cardOf(w, id); !ok {
				return Stored{}, false
			}
		}
		if stored.Cards[e.authorOrActor()].Followers != e.followers {
			return Stored{}, false
		}
		stored.Entries = append(stored.Entries, e)
	}
	if part.More {
		last := w.rows[len(w.rows)-1]
		stored.Next = &user.Place{At: last.Published, ID: last.ID, Offset: offset + len(w.rows)}
	}
	return stored, true
}

// authorOrActor returns the author of the object, or the sender if the author is not known. The
// addressing may name the followers of the returned actor.
func (s Shown) authorOrActor() vocab.ID {
	if s.AuthorURI != "" {
		return s.AuthorURI
	}
	return s.ActorURI
}

// wanted are the lines of a page and the documents that the lines name. The field all has each
// card once. It has an object once more if a line names another revision of the object than the
// line before.
type wanted struct {
	rows    []wantedRow
	all     []cache.Document
	objects map[vocab.ID]int // indexes in all
	cards   map[vocab.ID]int // indexes in all
}

// wantedRow is a line with the indexes of its documents.
type wantedRow struct {
	user.FeedLine
	activity, object int
}

func (w *wanted) add(d cache.Document) int {
	w.all = append(w.all, d)
	return len(w.all) - 1
}

// want adds the lines of a part and their documents to w. It reports whether it could read every
// line.
func (c *Cached) want(w *wanted, u vocab.Username, part cache.Part) bool {
	reader := readerOf(c.profiles.User(u).Languages)
	for _, line := range part.Lines {
		read, ok := readLine(line)
		if !ok {
			return false
		}
		row := wantedRow{FeedLine: read, activity: w.add(cache.Document{Key: documentKey(read.Activity), Revision: activityRevision(read)})}
		if row.ObjectURI != "" {
			n, there := w.objects[read.ObjectURI]
			if revision := objectRevision(read, reader); !there || w.all[n].Revision != revision {
				n = w.add(cache.Document{Key: documentKey(read.ObjectURI), Revision: revision})
				w.objects[read.ObjectURI] = n
			}
			row.object = n
		}
		for _, id := range []vocab.ID{row.Actor, vocab.ID(row.Author)} {
			if _, there := w.cards[id]; there || id == "" {
				continue
			}
			if _, isLocal := c.local.Owner(id); !isLocal {
				w.cards[id] = w.add(cache.Document{Key: cardKey(id), Revision: part.Beside})
			}
		}
		w.rows = append(w.rows, row)
	}
	return true
}

// cardOf returns the card of an actor, and whether it is known.
func (c *Cached) cardOf(w *wanted, id vocab.ID) (vocab.Card, bool) {
	if card, isLocal := c.localCard(id); isLocal {
		return card, true
	}
	n, isWanted := w.cards[id]
	if !isWanted {
		return vocab.Card{}, false
	}
	return readCard(w.all[n].Body)
}

// documents returns the documents of a page in the form that is cached.
func (c *Cached) documents(u vocab.Username, stored Stored, beside string) []cache.Document {
	var all []cache.Document
	reader := readerOf(c.profiles.User(u).Languages)
	for _, e := range stored.Entries {
		if body, ok := writeEntry(e); ok {
			all = append(all, cache.Document{Key: documentKey(e.line.Activity), Revision: activityRevision(e.line), Body: body})
		}
		if e.line.ObjectURI != "" {
			all = append(all, cache.Document{Key: documentKey(e.line.ObjectURI), Revision: objectRevision(e.line, reader), Body: string(e.Object)})
		}
	}
	for id, card := range stored.Cards {
		if _, isLocal := c.local.Owner(id); isLocal {
			continue
		}
		if body, ok := writeCard(card); ok {
			all = append(all, cache.Document{Key: cardKey(id), Revision: beside, Body: body, While: c.actorTTL})
		}
	}
	return all
}

// Keys of documents.
func documentKey(id vocab.ID) string { return cache.Objects + ":" + string(id) } // an activity or an object
func cardKey(id vocab.ID) string     { return cache.Actors + ":" + string(id) }

// Form is the version of the format of documents. A document of another version counts as
// absent.
const Form = "3"

// readerOf returns a text that is the same for all readers who are shown the same documents. These
// are readers of the same languages, as long as the format of documents has the same version.
func readerOf(languages []string) string { return Form + " " + strings.Join(languages, ",") }

// activityRevision includes the actor, because two actors of one server may use the same id.
func activityRevision(row user.FeedLine) string {
	return strings.Join([]string{Form, row.Revision, row.ObjectRevision, string(row.Actor)}, " ")
}

func objectRevision(row user.FeedLine, reader string) string {
	return row.ObjectRevision + " " + reader
}

// markOf returns the mark of a place, or "" for nil. The line of an entry in the index begins
// with the mark of the entry's place.
func markOf(p *user.Place) string {
	if p == nil {
		return ""
	}
	return markAt(p.At, p.ID)
}

func markAt(at time.Time, id uuid.UUID) string {
	return at.UTC().Format(time.RFC3339Nano) + "/" + id.String()
}

// lineFields is the number of fields of a line.
const lineFields = 7

// writeLine writes an entry as a line of the index: its place, activity, object, actor and author,
// and the revisions of activity and object. None of these texts contains a space.
func writeLine(row user.FeedLine) string {
	author := vocab.ID("")
	if id, err := vocab.ParseID(row.Author); err == nil {
		author = id
	}
	return strings.Join([]string{markAt(row.Published, row.ID), string(row.Activity), string(row.ObjectURI), string(row.Actor), string(author), row.Revision, row.ObjectRevision}, " ")
}

// readLine reads a line that writeLine wrote.
func readLine(line string) (row user.FeedLine, ok bool) {
	f := strings.Split(line, " ")
	if len(f) != lineFields {
		return row, false
	}
	at, name, _ := strings.Cut(f[0], "/")
	published, err := time.Parse(time.RFC3339Nano, at) // written in UTC
	if err != nil {
		return row, false
	}
	id, err := uuid.Parse(name)
	return user.FeedLine{FeedEntry: user.FeedEntry{ID: id, Activity: vocab.ID(f[1]), Actor: vocab.ID(f[3]), Published: published},
		ObjectURI: vocab.ID(f[2]), Author: f[4], Revision: f[5], ObjectRevision: f[6]}, err == nil
}

// writeEntry writes an entry as text: its type, visibility, followers, author and voices on a
// line each, and then the activity as it is shown. ok is false if a value does not fit this
// form.
func writeEntry(e Shown) (body string, ok bool) {
	voices := make([]string, len(e.Voices))
	for n, v := range e.Voices {
		if voices[n] = string(v); strings.ContainsAny(voices[n], " \n") {
			return "", false
		}
	}
	return joinLines(e.Type, e.Visibility, string(e.followers), string(e.AuthorURI), strings.Join(voices, " "), string(e.Activity))
}

// readEntry reads what writeEntry wrote.
func readEntry(body string) (e Shown, ok bool) {
	f := strings.SplitN(body, "\n", 6)
	if len(f) != 6 {
		return e, false
	}
	e.Type, e.Visibility, e.followers, e.AuthorURI, e.Activity = f[0], f[1], vocab.ID(f[2]), vocab.ID(f[3]), Document(f[5])
	for v := range strings.SplitSeq(f[4], " ") {
		e.Voices = append(e.Voices, vocab.ID(v))
	}
	return e, true
}

func writeCard(c vocab.Card) (body string, ok bool) {
	return joinLines(c.Name, c.Handle, string(c.Icon), string(c.Followers))
}

// readCard reads what writeCard wrote.
func readCard(body string) (c vocab.Card, ok bool) {
	f := strings.Split(body, "\n")
	if len(f) != 4 {
		return c, false
	}
	return vocab.Card{Name: f[0], Handle: f[1], Icon: vocab.ID(f[2]), Followers: vocab.ID(f[3])}, true
}

// joinLines writes each text on a line of its own. It reports whether each text has only one
// line.
func joinLines(texts ...string) (string, bool) {
	isPlain := !slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(t, "\n") })
	return strings.Join(texts, "\n"), isPlain
}
