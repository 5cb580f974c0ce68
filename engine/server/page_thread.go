package server

import (
	"context"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/page"
	"github.com/lightweb/lightweb/engine/thread"
	"github.com/lightweb/lightweb/engine/vocab"
)

// makeThread makes the page of an object of the user.
func (s *pages) makeThread(thing string) pageMaker {
	return func(q pageRequest) ([]byte, error) {
		id := s.local.ID(q.user) + "/objects/" + vocab.ID(thing)
		var row *user.Object
		var around thread.PublicThread
		err := s.readAsStranger(q.Request, q.user, func(ctx context.Context, tx *user.Tx) (err error) {
			if row, err = tx.Objects.FindPublic(ctx, id); err != nil {
				return err
			}
			if err := checkShown(row); err != nil {
				return err
			}
			o, err := row.Parse()
			if err != nil {
				return err
			}
			if isForServers(o.Doc) {
				return errNothing
			}
			around, err = s.threads.Public(ctx, tx, o, q.after, s.size)
			return err
		})
		if err != nil {
			return nil, err
		}
		return s.renderThread(q, *row, around)
	}
}

// isForServers reports whether an object is for servers and not for people. Only a
// QuoteAuthorization is.
func isForServers(d vocab.Doc) bool { return d.Text("type") == vocab.QuoteAuthorization }

// checkShown refuses an object that no page shows. The fault is Gone if the object was public
// and was deleted, and otherwise NotFound.
func checkShown(row *user.Object) error {
	switch {
	case row == nil:
		return errNothing
	case row.DeletedAt != nil:
		return fault.New(fault.Gone, "the post was deleted")
	}
	return nil
}

// renderThread writes the page of a post with the posts around it.
func (s *pages) renderThread(q pageRequest, row user.Object, around thread.PublicThread) ([]byte, error) {
	person := s.describePerson(q.user)
	post, err := s.ownPost(person, row)
	if err != nil {
		return nil, err
	}
	above, err := s.keepPresent(q, around.Ancestors)
	if err != nil {
		return nil, err
	}
	below, err := s.keepPresent(q, around.Answers)
	if err != nil {
		return nil, err
	}
	t := page.Thread{Person: person, Post: post, IsLater: q.after != nil, Above: s.threadPosts(q.user, above, around.Actors), Below: s.threadPosts(q.user, below, around.Actors)}
	if len(above) > 0 {
		t.Post.Answers = ""
	}
	for n := range t.Above[min(1, len(above)):] {
		t.Above[n+1].Answers = ""
	}
	for n, p := range below {
		if p.InReplyTo == row.URI {
			t.Below[n].Answers = ""
		}
	}
	t.Next = func(n int) string {
		if n < len(below) {
			place := below[n-1].Place()
			return addressAfter(q, post.Page, &place)
		}
		return addressAfter(q, post.Page, around.End)
	}
	return t.HTML(), nil
}

// keepPresent returns the posts except those of local users who are suspended or gone.
func (s *pages) keepPresent(q pageRequest, posts []thread.PublicPost) (kept []thread.PublicPost, err error) {
	for _, p := range posts {
		if u, isLocal := s.local.Owner(p.Author); isLocal && u != q.user {
			err := s.checkPresent(q.Request, u)
			if kind := fault.KindOf(err); kind == fault.NotFound || kind == fault.Gone {
				continue
			}
			if err != nil {
				return nil, err
			}
		}
		kept = append(kept, p)
	}
	return kept, nil
}

// threadPosts returns posts of a thread as the page shows them.
func (s *pages) threadPosts(owner vocab.Username, posts []thread.PublicPost, cards map[vocab.ID]vocab.Card) (shown []page.Post) {
	for _, p := range posts {
		card := cards[p.Author]
		post := page.Post{ID: p.URI, Page: webAddress(p.Shown, p.URI), Author: page.Author{Name: card.Name, Handle: card.Handle, Page: string(p.Author)},
			IsOwn: p.Author == s.local.ID(owner), Published: p.Published, Now: s.now(), Doc: p.Shown, Answers: string(p.InReplyTo)}
		if post.Author.Name == "" {
			post.Author.Name = p.Author.Host()
		}
		if p.UpdatedAt != nil {
			post.Updated = *p.UpdatedAt
		}
		shown = append(shown, post)
	}
	return shown
}

// webAddress returns the address where people read an object: its url if that is on the object's
// own server, else its id.
func webAddress(shown vocab.Doc, id vocab.ID) string {
	address := shown.Text("url")
	for _, link := range shown.Subs("url") {
		if link.Text("mediaType") == "text/html" {
			address = link.Text("href")
		}
	}
	if !vocab.IDOf(address).SameOrigin(id) {
		return string(id)
	}
	return address
}
