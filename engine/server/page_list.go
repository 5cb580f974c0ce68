package server

import (
	"context"
	"slices"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/page"
)

// makeList makes the page of all posts, or of those with a tag. If no post has the tag, there is
// no page, because otherwise anybody could put words on a page of this server by an address with
// those words as the tag. If the search stopped before the last post and has found none, the page
// is empty, links to the next page, and does not show the tag.
func (s *pages) makeList(tag string) pageMaker {
	return func(q pageRequest) ([]byte, error) {
		l, err := s.readList(q, tag)
		if err == nil && tag != "" && len(l.Posts) == 0 && l.Next(0) == "" {
			err = errNothing
		}
		if err != nil {
			return nil, err
		}
		return l.HTML(), nil
	}
}

// makeFeed makes a page of the Atom feed.
func (s *pages) makeFeed(q pageRequest) ([]byte, error) {
	l, err := s.readList(q, "")
	if err != nil {
		return nil, err
	}
	self := s.local.Page(q.user) + q.path
	if q.cursor != "" {
		self += "?cursor=" + q.cursor
	}
	return l.Atom(self), nil
}

// readList reads the posts of a list, and their author.
func (s *pages) readList(q pageRequest, tag string) (page.List, error) {
	rows, end, err := s.readPosts(q, tag)
	if err != nil {
		return page.List{}, err
	}
	l := page.List{Person: s.describePerson(q.user), Tag: tag}
	rows = slices.DeleteFunc(rows, func(row user.PublicPost) bool {
		post, err := s.ownPost(l.Person, row.Object)
		if err == nil {
			l.Posts = append(l.Posts, post)
		}
		return err != nil // an object that cannot be read is skipped: it must not hide the others
	})
	address := s.local.Page(q.user) + q.path
	if tag != "" {
		address = s.local.TagPage(q.user, tag)
	}
	l.Next = func(n int) string {
		if n < len(rows) {
			place := rows[n-1].Place()
			end = &place
		}
		return addressAfter(q, address, end)
	}
	return l, nil
}

// readPosts reads the posts of a page, and the place where the next page begins. The place is
// nil if there is no next page.
func (s *pages) readPosts(q pageRequest, tag string) (rows []user.PublicPost, end *user.Place, err error) {
	err = s.readAsStranger(q.Request, q.user, func(ctx context.Context, tx *user.Tx) (err error) {
		rows, end, err = tx.Posts.ListPublic(ctx, tag, q.after, s.size+1) // one more tells whether another page follows
		return err
	})
	if len(rows) > s.size {
		rows = rows[:s.size]
		place := rows[s.size-1].Place()
		end = &place
	}
	return rows, end, err
}
