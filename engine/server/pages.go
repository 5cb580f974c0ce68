package server

import (
	"net/http"
	"strings"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/page"
	"github.com/lightweb/lightweb/engine/thread"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	htmlType = "text/html; charset=utf-8"
	atomType = "application/atom+xml; charset=utf-8"

	feedName   = "feed.atom"
	tagsFolder = "tags"
	maxTag     = 64 // characters of a hashtag
)

// pages shows the public posts of users to people who follow a link.
type pages struct {
	*access
	actors    *actors
	documents *storedDocuments
	profiles  Profiles
	threads   *thread.Reader
	size      int // posts on a page
	recent    *recentPages
}

// pageRequest is the page that a reader asks for.
type pageRequest struct {
	*http.Request
	user   vocab.Username
	path   string // the path after the address of the user's page
	cursor string
	after  *user.Place // the place that the cursor names
}

// scope returns the name of the page. The cursors of the page are bound to this name, and a
// cursor of another page is refused.
func (q pageRequest) scope() string { return q.user.String() + "/@" + q.path }

// pageMaker reads the data of a page, and makes the page.
type pageMaker func(q pageRequest) ([]byte, error)

// getProfile shows a user, with the newest public posts. It serves the actor's document to clients
// that prefer it.
func (s *pages) getProfile(a *answer, r *http.Request, p httprouter.Params) error {
	if s.chooseDocument(a, r) {
		return s.actors.getActor(a, r, p)
	}
	return s.servePage(a, r, p, "", htmlType, s.makeList(""))
}

// chooseDocument reports whether the client gets an ActivityStreams document in place of the
// page. Pixelfed asks for documents at the addresses of pages.
func (s *pages) chooseDocument(a *answer, r *http.Request) bool {
	if !s.local.HasPages() {
		return false
	}
	if prefersDocument(r) { // the answer says itself that it depends on the form
		return true
	}
	a.varyByForm()
	return false
}

// getPost shows a public post with its public thread, or the feed of all posts. It serves the
// post's document to clients that prefer it.
func (s *pages) getPost(a *answer, r *http.Request, p httprouter.Params) error {
	thing := p.ByName("thing")
	switch {
	case thing == feedName:
		return s.servePage(a, r, p, "/"+feedName, atomType, s.makeFeed)
	case isOwnPart(thing) && s.chooseDocument(a, r):
		return s.documents.getObject(a, r, p)
	case isOwnPart(thing):
		return s.servePage(a, r, p, "/"+thing, htmlType, s.makeThread(thing))
	}
	return s.servePage(a, r, p, "", htmlType, makeNothing)
}

// getTag shows the user's public posts with a tag.
func (s *pages) getTag(a *answer, r *http.Request, p httprouter.Params) error {
	tag := strings.ToLower(p.ByName("tag"))
	if p.ByName("thing") != tagsFolder || tag == "" || len([]rune(tag)) > maxTag {
		return s.servePage(a, r, p, "", htmlType, makeNothing)
	}
	return s.servePage(a, r, p, "/"+tagsFolder+"/"+tag, htmlType, s.makeList(tag))
}

func makeNothing(pageRequest) ([]byte, error) { return nil, errNothing }

// servePage answers with a page. Every reader gets the same one.
func (s *pages) servePage(a *answer, r *http.Request, p httprouter.Params, path, contentType string, maker pageMaker) error {
	if !s.local.HasPages() {
		return errNothing
	}
	a.Header().Set("Content-Security-Policy", page.ContentPolicy())
	a.Header().Set("Referrer-Policy", "no-referrer")
	q := pageRequest{Request: r, path: path, cursor: r.URL.Query().Get("cursor")}
	made, err := s.findPage(q, p, maker)
	if err != nil {
		return s.explainAbsence(a, err)
	}
	if contentType == atomType && !s.profiles.User(made.user).Indexable {
		a.Header().Set("X-Robots-Tag", "noindex")
	}
	a.setCache(cachePublic)
	a.sendTagged(r, contentType, made.body)
	return nil
}

// explainAbsence answers with a page for people if the requested page does not exist or was
// deleted. It returns any other error.
func (s *pages) explainAbsence(a *answer, err error) error {
	status, title, words := http.StatusNotFound, "There is nothing here", "The page is not there, or it is not public."
	switch fault.KindOf(err) {
	case fault.NotFound:
	case fault.Gone:
		status, title, words = http.StatusGone, "This is gone", "It was here, and was deleted."
	default:
		return err
	}
	a.setCache("no-store")
	a.send(status, htmlType, page.Notice(s.local.Host(), title, words))
	return nil
}

// madePage is a page, with the user that it is about.
type madePage struct {
	body []byte
	user vocab.Username
}

// findPage returns the page that another reader was just shown, or makes it. It stores no pages
// of tags, because anybody can make up tags.
func (s *pages) findPage(q pageRequest, p httprouter.Params, maker pageMaker) (madePage, error) {
	u, err := s.findResident(q.Request, p)
	if err != nil {
		return madePage{}, err
	}
	q.user = u
	if q.after, err = feed.DecodeCursor(q.scope(), q.cursor); err != nil {
		return madePage{}, err
	}
	var body []byte
	if !strings.HasPrefix(q.path, "/"+tagsFolder) {
		shown, keep := s.recent.obtain(q.Context(), u, "@"+q.path+"?"+q.cursor)
		if keep == nil {
			return madePage{shown, u}, nil
		}
		defer func() { keep(body) }()
	}
	body, err = maker(q)
	return madePage{body, u}, err
}

// addressAfter returns the address of the page that begins after the parameter place, or an empty
// text if place is nil. The parameter path is the address of the first page.
func addressAfter(q pageRequest, path string, place *user.Place) string {
	if place == nil {
		return ""
	}
	return path + "?cursor=" + feed.EncodeCursor(q.scope(), *place)
}
